//! Hears which tools a model calls while its answer passes, for rules about their results.
//!
//! Where the provider keeps the conversation, the agent's next request brings results without the calls
//! that name the tools. It may come as soon as the agent has the call: what an agent has of an answer
//! was read before it was handed on. None of its bytes waits for anything.

use http::HeaderMap;
use squall_dialects::codec::Coding;
use squall_dialects::{CalledTools, Dialect, Target};
use squall_profiles::faults::model_input::Called;

use super::decoding::Decoding;

/// One answer, on its way into what a scope's models have called.
pub(crate) struct CallTap {
    dialect: &'static dyn Dialect,
    /// Path and query of the upstream's URL.
    target: String,
    /// From the answer's head on.
    reading: Option<(Decoding, CalledTools)>,
}

impl CallTap {
    /// For a call in `dialect` of which no answer has come.
    pub(crate) fn new(dialect: &'static dyn Dialect, target: &str) -> Self {
        Self {
            dialect,
            target: target.to_owned(),
            reading: None,
        }
    }

    /// The answer's head has come. A body in a coding that nobody knows is not read.
    pub(crate) fn begin(&mut self, headers: &HeaderMap) {
        let form = self.dialect.form(Target::new(&self.target), headers);
        self.reading = Coding::of(headers)
            .ok()
            .map(|coding| (Decoding::of(coding), CalledTools::new(self.dialect, form)));
    }

    /// These bytes of the answer's body are the agent's next.
    pub(crate) fn answer(&mut self, bytes: &[u8], called: &Called) {
        if let Some((decoding, calls)) = &mut self.reading {
            decoding.push(bytes, |plain| note(calls.push(plain), called));
        }
    }

    /// Those were the last.
    pub(crate) fn end(&mut self, called: &Called) {
        if let Some((_, calls)) = &mut self.reading {
            note(calls.end(), called);
        }
    }
}

fn note(calls: Vec<(String, String)>, called: &Called) {
    for (id, tool) in calls {
        called.note(id, tool);
    }
}
