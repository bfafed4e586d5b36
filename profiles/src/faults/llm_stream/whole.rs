//! Faults on an answer that is one JSON document.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use squall_dialects::json::Document;
use squall_dialects::model::{Reading, Usage};

use super::breaking::parted;
use super::call::Call;
use super::ending::{self, EndedAnswer};
use super::rewriting;
use super::{DEFAULT_HOLD, Step, pace, too_short, written};
use crate::changes::{Rewrite, StreamFault};
use crate::plan::Ending;

/// Holds an answer until it is complete, then applies the fault to it.
#[derive(Debug)]
pub(super) struct WholeEditor {
    job: Job,
    limit: usize,
    state: State,
}

/// What a fault does to a whole answer.
#[derive(Debug)]
enum Job {
    End(EndedAnswer),
    Break {
        after_tokens: u64,
    },
    Slow {
        first: Duration,
        tokens_per_second: Option<f64>,
    },
    Stall {
        after_tokens: u64,
        wait: Duration,
    },
    Rewrite(Rewrite),
    /// There are no events here.
    OfStreams,
}

#[derive(Debug)]
enum State {
    /// Held so far.
    Holding(BytesMut),
    /// Nothing more is done, and why.
    Passing(String),
    /// The fault was applied.
    Touched,
}

impl WholeEditor {
    pub(super) fn new(fault: &StreamFault) -> Self {
        let job = match fault {
            StreamFault::Truncate { max_tokens } => Job::End(EndedAnswer::at_most(*max_tokens)),
            StreamFault::Instead(instead) => Job::End(EndedAnswer::instead_of(*instead)),
            StreamFault::Cut { after_tokens } => Job::Break {
                after_tokens: *after_tokens,
            },
            StreamFault::Slow {
                time_to_first_token,
                tokens_per_second,
            } => Job::Slow {
                first: *time_to_first_token,
                tokens_per_second: *tokens_per_second,
            },
            StreamFault::Stall { after_tokens, wait } => Job::Stall {
                after_tokens: *after_tokens,
                wait: *wait,
            },
            StreamFault::Rewrite(rewrite) => Job::Rewrite(rewrite.clone()),
            StreamFault::Error { .. }
            | StreamFault::Repeat { .. }
            | StreamFault::Unterminated
            | StreamFault::WholeForStream => Job::OfStreams,
        };
        Self {
            job,
            limit: DEFAULT_HOLD,
            state: State::Holding(BytesMut::new()),
        }
    }

    pub(super) fn hold_at_most(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        match &mut self.state {
            State::Holding(held) => {
                held.extend_from_slice(chunk);
                if held.len() <= self.limit {
                    return Vec::new();
                }
                let reason = format!("the answer is longer than {} bytes", self.limit);
                self.pass(reason)
            }
            State::Passing(_) => emit(Bytes::copy_from_slice(chunk)),
            State::Touched => Vec::new(),
        }
    }

    pub(super) fn finish(&mut self, call: &mut Call) -> Vec<Step> {
        let State::Holding(held) = &self.state else {
            return Vec::new();
        };
        let edited = match Document::parse(held) {
            Ok(document) => self.job.done(&document, call),
            Err(error) => Err(format!("the answer is {error}")),
        };
        match edited {
            Ok(steps) => {
                self.state = State::Touched;
                steps
            }
            Err(reason) => self.pass(reason),
        }
    }

    pub(super) fn broke_off(&mut self) -> Vec<Step> {
        self.pass("the upstream broke off".to_owned())
    }

    pub(super) fn touched(&self) -> bool {
        matches!(self.state, State::Touched)
    }

    pub(super) fn counts_anew(&self) -> bool {
        self.touched() && matches!(self.job, Job::End(_))
    }

    pub(super) fn untouched_because(&self) -> Option<String> {
        match &self.state {
            State::Passing(reason) => Some(reason.clone()),
            State::Holding(_) | State::Touched => None,
        }
    }

    /// Hands out what is held, as it came.
    fn pass(&mut self, reason: String) -> Vec<Step> {
        match &mut self.state {
            State::Holding(held) => {
                let held = std::mem::take(held).freeze();
                self.state = State::Passing(reason);
                emit(held)
            }
            State::Passing(_) | State::Touched => Vec::new(),
        }
    }
}

impl Job {
    /// What the agent gets; or why it is the answer as it came.
    fn done(&self, document: &Document<'_>, call: &mut Call) -> Result<Vec<Step>, String> {
        let mut reading = call.dialect.read(squall_dialects::Event::unnamed(document));
        call.count(&mut reading);
        match self {
            Self::End(how) => ending::whole(how, document, &reading, call).map(emit),
            Self::Break { after_tokens } => {
                let parts = parted(document, &reading, *after_tokens);
                let (sent, _) = parts.ok_or_else(|| too_short(written(&reading), *after_tokens))?;
                Ok(vec![Step::Emit(sent), Step::End(Ending::Close)])
            }
            Self::Slow {
                first,
                tokens_per_second,
            } => {
                let tokens = counted(&reading);
                let wait = *first + pace(tokens, *tokens_per_second);
                if tokens == 0 || wait.is_zero() {
                    return Err(too_short(written(&reading), 0));
                }
                let all = Bytes::copy_from_slice(document.text().as_bytes());
                Ok(vec![Step::Wait(wait), Step::Emit(all)])
            }
            Self::Stall { after_tokens, wait } => {
                let more = after_tokens.saturating_add(1);
                let parts =
                    parted(document, &reading, *after_tokens).filter(|_| written(&reading) >= more);
                let (before, after) = parts.ok_or_else(|| too_short(written(&reading), more))?;
                Ok(vec![
                    Step::Emit(before),
                    Step::Wait(*wait),
                    Step::Emit(after),
                ])
            }
            Self::Rewrite(rewrite) => rewriting::whole(rewrite, document, &reading, call).map(emit),
            Self::OfStreams => Err("the answer is no stream".to_owned()),
        }
    }
}

/// Tokens of an answer, as the provider counts if it does.
fn counted(reading: &Reading<'_>) -> u64 {
    match reading.usage {
        Some(Usage {
            output: Some(output),
            ..
        }) if written(reading) > 0 => output,
        _ => written(reading),
    }
}

fn emit(bytes: Bytes) -> Vec<Step> {
    if bytes.is_empty() {
        Vec::new()
    } else {
        vec![Step::Emit(bytes)]
    }
}
