//! Faults on an answer that is one JSON document.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use squall_dialects::Dialect;
use squall_dialects::json::{Document, Edits, Kind, raw_length};
use squall_dialects::model::{Delta, Finish, Reading, Usage};
use squall_dialects::tokens;

use super::budget::{self, Budget, Share};
use super::{DEFAULT_HOLD, Step, pace, too_short};
use crate::fault::StreamFault;
use crate::plan::Ending;

/// Holds an answer until it is complete, then applies the fault to it.
#[derive(Debug)]
pub(super) struct WholeEditor {
    fault: StreamFault,
    dialect: &'static dyn Dialect,
    limit: usize,
    state: State,
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
    pub(super) fn new(fault: &StreamFault, dialect: &'static dyn Dialect) -> Self {
        let state = State::Holding(BytesMut::new());
        Self {
            fault: fault.clone(),
            dialect,
            limit: DEFAULT_HOLD,
            state,
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

    pub(super) fn finish(&mut self) -> Vec<Step> {
        let State::Holding(held) = &self.state else {
            return Vec::new();
        };
        let document = match Document::parse(held) {
            Ok(document) => document,
            Err(error) => return self.pass(format!("the answer is {error}")),
        };
        let reading = self.dialect.read_answer(&document);
        let steps = match self.fault {
            StreamFault::Truncate { max_tokens } => {
                truncate(&document, &reading, max_tokens, self.dialect)
            }
            StreamFault::Cut { after_tokens } => break_off(&document, &reading, after_tokens),
            StreamFault::Slow {
                time_to_first_token,
                tokens_per_second,
            } => {
                let tokens = match reading.usage {
                    Some(Usage {
                        output: Some(output),
                        ..
                    }) if written(&reading) > 0 => output,
                    _ => written(&reading),
                };
                let wait = time_to_first_token + pace(tokens, tokens_per_second);
                let slowed = || vec![Step::Wait(wait), Step::Emit(Bytes::copy_from_slice(held))];
                (tokens > 0 && !wait.is_zero()).then(slowed)
            }
        };
        if let Some(steps) = steps {
            self.state = State::Touched;
            return steps;
        }
        let wanted = match self.fault {
            StreamFault::Truncate { max_tokens: wanted }
            | StreamFault::Cut {
                after_tokens: wanted,
            } => wanted,
            StreamFault::Slow { .. } => 0,
        };
        let reason = too_short(written(&reading), wanted);
        self.pass(reason)
    }

    pub(super) fn broke_off(&mut self) -> Vec<Step> {
        self.pass("the upstream broke off".to_owned())
    }

    pub(super) fn touched(&self) -> bool {
        matches!(self.state, State::Touched)
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

fn emit(bytes: Bytes) -> Vec<Step> {
    if bytes.is_empty() {
        Vec::new()
    } else {
        vec![Step::Emit(bytes)]
    }
}

/// Tokens that the model wrote where the agent sees them.
fn written(reading: &Reading<'_>) -> u64 {
    reading.deltas.iter().map(Delta::tokens).sum()
}

/// Every choice cut after `max_tokens` tokens. `None`: none is longer.
fn truncate(
    document: &Document<'_>,
    reading: &Reading<'_>,
    max_tokens: u64,
    dialect: &dyn Dialect,
) -> Option<Vec<Step>> {
    let mut edits = Edits::new(document);
    let mut budgets: BTreeMap<u64, Budget> = BTreeMap::new();
    let mut cut: BTreeSet<u64> = BTreeSet::new();
    for delta in &reading.deltas {
        let budget = budgets
            .entry(delta.choice)
            .or_insert_with(|| Budget::new(max_tokens));
        let share = budget.spend(delta, document);
        if share != Share::All {
            budget::cut(&mut edits, document, delta, share);
            cut.insert(delta.choice);
        }
    }
    if cut.is_empty() {
        return None;
    }
    for finished in reading
        .finishes
        .iter()
        .filter(|end| cut.contains(&end.choice))
    {
        dialect.put_finish(&mut edits, document, finished, Some(&Finish::Length));
    }
    budget::forget_mirrors(&mut edits, reading, |choice| cut.contains(&choice));
    if let Some(usage) = &reading.usage {
        let kept = budgets.values().map(Budget::spent).sum();
        budget::count_anew(&mut edits, usage, kept);
    }
    Some(emit(Bytes::from(edits.apply())))
}

/// The document up to the end of its `after_tokens`th token, then the break. `None`: it has fewer.
fn break_off(
    document: &Document<'_>,
    reading: &Reading<'_>,
    after_tokens: u64,
) -> Option<Vec<Step>> {
    let total = written(reading);
    if total == 0 || total < after_tokens {
        return None;
    }
    let mut deltas: Vec<_> = reading.deltas.iter().collect();
    deltas.sort_by_key(|delta| delta.place);
    let mut left = after_tokens;
    for delta in deltas {
        let cost = delta.tokens();
        if cost < left || cost == 0 {
            left -= cost;
            continue;
        }
        let value = document.value(delta.place);
        let kept = tokens::take(&delta.text, left).len();
        let raw = match value.kind() {
            Kind::String => raw_length(value.raw(), kept),
            _ => kept,
        };
        let end = value.span().start + raw;
        let sent = Bytes::copy_from_slice(&document.text().as_bytes()[..end]);
        return Some(vec![Step::Emit(sent), Step::End(Ending::Close)]);
    }
    None
}
