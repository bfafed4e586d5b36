//! Reads while a response passes which tools the model calls, for rules about their results.
//!
//! If the provider stores the conversation, the next request contains results without the calls
//! that name the tools. It may arrive as soon as the agent has the call. So each piece is read
//! before it is passed on, without delaying it.

use http::HeaderMap;
use squall_dialects::codec::Coding;
use squall_dialects::{CalledTools, Dialect, Target};
use squall_profiles::faults::model_input::Called;

use crate::body::decoding::Decoding;

/// Reads one response, and adds its calls to those of the scope's models.
pub(crate) struct CallTap {
    dialect: &'static dyn Dialect,
    /// Path and query of the upstream's URL.
    target: String,
    /// Set once the response's head has arrived.
    reading: Option<(Decoding, CalledTools)>,
}

impl CallTap {
    /// For a call in `dialect` before its response.
    pub(crate) fn new(dialect: &'static dyn Dialect, target: &str) -> Self {
        Self {
            dialect,
            target: target.to_owned(),
            reading: None,
        }
    }

    /// Starts with the response's head. A body in an unknown coding is not read.
    pub(crate) fn begin(&mut self, headers: &HeaderMap) {
        let form = self.dialect.form(Target::new(&self.target), headers);
        self.reading = Coding::of(headers)
            .ok()
            .map(|coding| (Decoding::of(coding), CalledTools::new(self.dialect, form)));
    }

    /// Reads bytes of the response's body before the agent gets them.
    pub(crate) fn answer(&mut self, bytes: &[u8], called: &Called) {
        if let Some((decoding, calls)) = &mut self.reading {
            decoding.push(bytes, |plain| note(calls.push(plain), called));
        }
    }

    /// The body has ended.
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
