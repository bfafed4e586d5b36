//! Checks while a response passes whether the model answers a request with changed tool results.
//!
//! An agent repeats a request that got no answer, and the repetition must have the same changes. It
//! may arrive as soon as the agent has received the failure. So each piece is read before it is
//! passed on, without delaying it.

use http::HeaderMap;
use squall_dialects::codec::Coding;
use squall_dialects::model::Reading;
use squall_dialects::{AnswerReader, Dialect, Target};

use crate::body::decoding::Decoding;

/// A request, and the state of its response.
pub(crate) struct Answering {
    request: u64,
    decoding: Decoding,
    answer: AnswerReader,
    outcome: ModelOutcome,
}

/// Whether a model has answered. An agent repeats a request after an error, even in the middle of a
/// stream, and after an incomplete response.
#[derive(Default)]
struct ModelOutcome {
    /// The response cannot be parsed; only its head is known.
    unread: bool,
    finished: bool,
    failed: bool,
}

impl ModelOutcome {
    fn note(&mut self, reading: &Reading<'_>) {
        self.finished |= !reading.finishes.is_empty();
        self.failed |= reading.error.is_some();
    }
}

impl Answering {
    /// For a request in `dialect` to `target` (path and query of the upstream's URL) with this
    /// response head. A body in an unknown coding is not read.
    pub(crate) fn new(
        request: u64,
        dialect: &'static dyn Dialect,
        target: &str,
        answer: &HeaderMap,
    ) -> Self {
        let coding = Coding::of(answer);
        let form = match &coding {
            Ok(_) => dialect.form(Target::new(target), answer),
            Err(_) => None,
        };
        Self {
            request,
            decoding: Decoding::of(coding.ok().flatten()),
            answer: AnswerReader::new(dialect, form),
            outcome: ModelOutcome {
                unread: form.is_none(),
                ..ModelOutcome::default()
            },
        }
    }

    /// Reads bytes of the response's body before the agent gets them.
    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        let (answer, outcome) = (&mut self.answer, &mut self.outcome);
        self.decoding.push(bytes, |plain| {
            answer.push(plain, |reading| outcome.note(reading));
        });
    }

    /// The body has ended: returns the request if a model has answered it.
    pub(crate) fn end(mut self) -> Option<u64> {
        let outcome = &mut self.outcome;
        self.answer.end(|reading| outcome.note(reading));
        let answered = outcome.unread || (outcome.finished && !outcome.failed);
        answered.then_some(self.request)
    }
}
