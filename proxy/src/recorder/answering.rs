//! Hears whether a model has answered a request that tells it something else of tools' results, while
//! the answer passes.
//!
//! A request that got no answer is made again, and is to tell the model the same. It may come as soon
//! as the agent has what it takes for none: what an agent has of an answer was read before it was
//! handed on. None of its bytes waits for anything.

use http::HeaderMap;
use squall_dialects::codec::Coding;
use squall_dialects::{Answered, Dialect, Target};

use super::decoding::Decoding;

/// A request, and its answer as far as it has come.
pub(crate) struct Answering {
    request: u64,
    decoding: Decoding,
    answer: Answered,
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
            Ok(_) => dialect.form(Target::new(target), None, answer),
            Err(_) => None,
        };
        Self {
            request,
            decoding: Decoding::of(coding.ok().flatten()),
            answer: Answered::new(dialect, form),
        }
    }

    /// These bytes of the answer's body are the agent's next.
    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        let answer = &mut self.answer;
        self.decoding.push(bytes, |plain| answer.push(plain));
    }

    /// Those were the last: the request, if a model has answered it.
    pub(crate) fn end(self) -> Option<u64> {
        self.answer.end().then_some(self.request)
    }
}
