//! The steps of an edit as a body.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use squall_dialects::codec::Encoder;
use squall_profiles::faults::llm_stream::Step;
use squall_profiles::plan::Ending;

use super::source::{Source, Sourced};
use crate::broken::Broken;
use crate::carry_out::Report;
use crate::carry_out::body::AgentBody;
use crate::carry_out::flush::{AgentSide, Break};
use crate::carry_out::hold::Hold;
use crate::carry_out::whole::Lease;

/// Bytes up to which steps are put together in one frame.
const FRAME: usize = 64 << 10;

/// A body that is what an editor's steps say.
pub(super) struct Played {
    from: From,
    steps: VecDeque<Step>,
    encoder: Option<Encoder>,
    hold: Option<Hold>,
    /// Comes when there are no more steps.
    end: End,
    trailers: Option<Frame<Bytes>>,
    agent: AgentSide,
    report: Report,
}

/// Where further steps come from.
enum From {
    Upstream(Box<Source>),
    /// Nothing is edited: the upstream's own bytes.
    Untouched(VecDeque<Bytes>, AgentBody),
    /// All steps are there; the memory they take is given back with them.
    Nowhere(#[expect(dead_code, reason = "held for its drop")] Option<Lease>),
}

enum End {
    Clean,
    Broken(Box<Break>),
}

impl Played {
    /// Plays what the editor makes of an answer while it comes.
    pub(super) fn live(source: Source, agent: AgentSide, report: Report) -> Self {
        let from = From::Upstream(Box::new(source));
        Self::new(from, VecDeque::new(), None, agent, report)
    }

    /// Plays steps that are all known, and encoded.
    pub(super) fn complete(
        steps: Vec<Step>,
        trailers: Option<HeaderMap>,
        lease: Lease,
        agent: AgentSide,
        report: Report,
    ) -> Self {
        let trailers = trailers.map(Frame::trailers);
        Self::new(
            From::Nowhere(Some(lease)),
            steps.into(),
            trailers,
            agent,
            report,
        )
    }

    fn new(
        from: From,
        steps: VecDeque<Step>,
        trailers: Option<Frame<Bytes>>,
        agent: AgentSide,
        report: Report,
    ) -> Self {
        Self {
            from,
            steps,
            encoder: None,
            hold: None,
            end: End::Clean,
            trailers,
            agent,
            report,
        }
    }

    /// Takes what the source gave.
    fn take(&mut self, mut source: Box<Source>, sourced: Sourced) {
        if self.encoder.is_none()
            && let Some(encoder) = source.encoder()
        {
            match encoder {
                Ok(encoder) => self.encoder = Some(encoder),
                Err(error) => {
                    let broken = not_encoded(&error);
                    self.report.bypassed(broken.why());
                    return self.break_off(broken);
                }
            }
        }
        if source.editor().touched() {
            self.report.applied();
        }
        if source.editor().counts_anew() {
            self.report.counted_anew();
        }
        match sourced {
            Sourced::Steps(steps) => {
                self.steps.extend(steps);
                self.from = From::Upstream(source);
            }
            Sourced::End {
                steps,
                trailers,
                complete,
            } => {
                self.note_untouched(&source, "the fault changed nothing");
                if let Some(tally) = source.heard() {
                    self.report.heard(tally);
                }
                self.steps.extend(steps);
                // A coding that lacks its end upstream lacks it here.
                if complete {
                    self.steps.push_back(Step::Finish);
                }
                self.trailers = trailers;
            }
            Sourced::Broken(steps, broken) => {
                self.note_untouched(&source, "the upstream broke off");
                self.steps.extend(steps);
                self.break_off(broken);
            }
            Sourced::Unreadable(beginning, why) => {
                self.report.bypassed(why.to_string());
                self.from = From::Untouched(beginning, source.into_body());
            }
        }
    }

    fn note_untouched(&mut self, source: &Source, otherwise: &str) {
        if !source.editor().touched() {
            let why = source.editor().untouched_because();
            self.report
                .bypassed(why.unwrap_or_else(|| otherwise.into()));
        }
    }

    fn break_off(&mut self, broken: Broken) {
        self.from = From::Nowhere(None);
        self.end = End::Broken(Box::new(Break::new(self.agent.clone(), broken)));
    }

    /// Carries out the next step; `None`: it gives nothing to the agent.
    fn step(&mut self, step: Step) -> Result<Option<Bytes>, Broken> {
        match step {
            Step::Emit(bytes) => {
                let bytes = self.with_what_follows(bytes);
                let bytes = match &mut self.encoder {
                    None => bytes,
                    Some(encoder) => encoder
                        .push(&bytes)
                        .map_err(|error| not_encoded(&error))?
                        .into(),
                };
                Ok(Some(self.last_before_a_break(bytes)))
            }
            Step::Wait(duration) => {
                self.hold = Some(Hold::lasting(duration, self.report.ledger()));
                Ok(None)
            }
            Step::End(ending) => {
                self.report.applied();
                self.steps.clear();
                self.break_off(broken(ending));
                Ok(None)
            }
            Step::Finish => {
                self.steps.clear();
                self.from = From::Nowhere(None);
                let end = self.encoder.take().map(Encoder::finish).transpose();
                end.map(|end| end.map(Bytes::from))
                    .map_err(|error| not_encoded(&error))
            }
        }
    }

    /// What goes to the agent at the same moment goes in one frame: each costs hyper a chunk of its
    /// own.
    fn with_what_follows(&mut self, first: Bytes) -> Bytes {
        let emitted = |step: &Step| match step {
            Step::Emit(bytes) => Some(bytes.len()),
            Step::Wait(_) | Step::End(_) | Step::Finish => None,
        };
        let more = self.steps.iter().map_while(emitted);
        let (mut frames, mut length) = (0, first.len());
        for more in more {
            if length + more > FRAME {
                break;
            }
            (frames, length) = (frames + 1, length + more);
        }
        if frames == 0 {
            return first;
        }
        let mut frame = BytesMut::with_capacity(length);
        frame.extend_from_slice(&first);
        for step in self.steps.drain(..frames) {
            if let Step::Emit(bytes) = step {
                frame.extend_from_slice(&bytes);
            }
        }
        frame.freeze()
    }

    /// Watches `bytes` leave if the connection is to break after them.
    fn last_before_a_break(&mut self, bytes: Bytes) -> Bytes {
        let Some(Step::End(ending)) = self.steps.front() else {
            return bytes;
        };
        let (end, bytes) = Break::after(self.agent.clone(), broken(*ending), bytes);
        self.report.applied();
        self.steps.clear();
        self.from = From::Nowhere(None);
        self.end = End::Broken(Box::new(end));
        bytes
    }

    /// What is left when there are no more steps.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.end {
            End::Broken(end) => Poll::Ready(ready!(end.poll(cx)).map(Err)),
            End::Clean => Poll::Ready(self.trailers.take().map(Ok)),
        }
    }
}

fn broken(ending: Ending) -> Broken {
    match ending {
        Ending::Close => Broken::close("closed in the middle of an answer by a rule").by_rule(),
        Ending::Reset => Broken::reset("reset in the middle of an answer by a rule").by_rule(),
    }
}

fn not_encoded(error: &std::io::Error) -> Broken {
    Broken::close(format!("the body cannot be compressed again: {error}"))
}

impl Body for Played {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        loop {
            if let Some(hold) = &mut this.hold {
                ready!(Pin::new(hold).poll(cx));
                this.hold = None;
            }
            if let Some(step) = this.steps.pop_front() {
                match this.step(step) {
                    Ok(Some(bytes)) if !bytes.is_empty() => {
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                    Ok(_) => {}
                    Err(broken) => {
                        this.steps.clear();
                        this.break_off(broken);
                    }
                }
                continue;
            }
            match std::mem::replace(&mut this.from, From::Nowhere(None)) {
                From::Nowhere(_) => return this.poll_end(cx),
                From::Untouched(mut beginning, mut body) => {
                    let frame = match beginning.pop_front() {
                        Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                        None => Pin::new(&mut body).poll_frame(cx),
                    };
                    this.from = From::Untouched(beginning, body);
                    return frame;
                }
                From::Upstream(mut source) => match source.poll(cx) {
                    Poll::Ready(sourced) => this.take(source, sourced),
                    Poll::Pending => {
                        this.from = From::Upstream(source);
                        return Poll::Pending;
                    }
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let gives_nothing = |step: &Step| match step {
            Step::Emit(bytes) => bytes.is_empty() && self.encoder.is_none(),
            Step::Finish => self.encoder.is_none(),
            Step::Wait(_) | Step::End(_) => false,
        };
        matches!((&self.from, &self.end), (From::Nowhere(_), End::Clean))
            && self.hold.is_none()
            && self.trailers.is_none()
            && self.steps.iter().all(gives_nothing)
    }

    fn size_hint(&self) -> SizeHint {
        // How long it gets shows when it is played; the head says it where it is known.
        SizeHint::new()
    }
}
