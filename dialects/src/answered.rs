//! Whether a model has answered: read from an answer as it passes.
//!
//! An agent that gets an error, be it in the middle of a stream, or only the beginning of an answer
//! asks again. So a model has answered once the agent has its words up to where it says that it ends.

use crate::dialect::{AnswerForm, Dialect};
use crate::documents::Documents;

/// Reads one answer from a copy of its bytes: never fails, never keeps more than its limits.
#[derive(Debug)]
pub struct Answered {
    documents: Documents,
    /// It cannot be read: its head is all that is known.
    unread: bool,
    finished: bool,
    failed: bool,
}

impl Answered {
    /// Of an answer whose head has come, and says that it is none of an error; `None`: its form cannot
    /// be read.
    pub fn new(dialect: &'static dyn Dialect, form: Option<AnswerForm>) -> Self {
        Self {
            documents: Documents::new(dialect, form),
            unread: form.is_none(),
            finished: false,
            failed: false,
        }
    }

    /// Some bytes of the answer's body, without content coding.
    pub fn push(&mut self, chunk: &[u8]) {
        let (finished, failed) = (&mut self.finished, &mut self.failed);
        self.documents.push(chunk, |reading| {
            *finished |= !reading.finishes.is_empty();
            *failed |= reading.error.is_some();
        });
    }

    /// The answer's body is over: whether a model has answered. Of what cannot be read it is taken for
    /// granted.
    pub fn end(mut self) -> bool {
        let (finished, failed) = (&mut self.finished, &mut self.failed);
        self.documents.end(|reading| {
            *finished |= !reading.finishes.is_empty();
            *failed |= reading.error.is_some();
        });
        self.unread || (self.finished && !self.failed)
    }
}
