//! Hears whether a model has answered a request that tells it something else of tools' results, while
//! the answer passes.
//!
//! A request that got no answer is made again, and is to tell the model the same. It may come as soon
//! as the agent has what it takes for none: what an agent has of an answer was read before it was
//! handed on. None of its bytes waits for anything.

use http::HeaderMap;
use squall_dialects::codec::Coding;
use squall_dialects::model::Reading;
use squall_dialects::{AnswerReader, Dialect, Target};

use super::decoding::Decoding;

/// A request, and its answer as far as it has come.
pub(crate) struct Answering {
    request: u64,
    decoding: Decoding,
    answer: AnswerReader,
    outcome: ModelOutcome,
}

/// Whether a model has answered: an agent that gets an error, be it in the middle of a stream, or only
/// the beginning of an answer asks again.
#[derive(Default)]
struct ModelOutcome {
    /// The answer cannot be read: its head is all that is known.
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
    /// Of a request in `dialect` to `target`, path and query of the upstream's URL, whose answer has
    /// this head. A body in a coding that nobody knows is not read.
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

    /// These bytes of the answer's body are the agent's next.
    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        let (answer, outcome) = (&mut self.answer, &mut self.outcome);
        self.decoding.push(bytes, |plain| {
            answer.push(plain, |reading| outcome.note(reading));
        });
    }

    /// Those were the last: the request, if a model has answered it.
    pub(crate) fn end(mut self) -> Option<u64> {
        let outcome = &mut self.outcome;
        self.answer.end(|reading| outcome.note(reading));
        let answered = outcome.unread || (outcome.finished && !outcome.failed);
        answered.then_some(self.request)
    }
}
