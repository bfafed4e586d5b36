//! Which tools models have called, by the ids of the calls.
//!
//! If a provider stores the conversation, a request contains a result with the call's id, but not
//! the call with the tool's name. That was in an earlier answer.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use squall_dialects::model::Conversation;

use crate::fifo_map::FifoMap;

/// Most calls that one scope remembers.
const CALLS: usize = 4096;

/// The tools that the models of one scope have called, the latest 4,096 of them.
#[derive(Debug)]
pub struct Called(Mutex<FifoMap<String, String>>);

impl Default for Called {
    fn default() -> Self {
        Self(Mutex::new(FifoMap::new(CALLS)))
    }
}

impl Called {
    /// A model has called `tool`. An id that comes again is the later call's.
    pub fn note(&self, id: String, tool: String) {
        *self.table().entry(id, String::new()) = tool;
    }

    /// Names the tools of results whose calls are not in the request.
    pub(super) fn name(&self, conversation: &mut Conversation<'_>) {
        let results = conversation.tool_results.iter_mut();
        let mut nameless = results.filter(|result| result.tool.is_none()).peekable();
        if nameless.peek().is_none() {
            return;
        }
        let table = self.table();
        for result in nameless {
            let tool = result.call.as_deref().and_then(|id| table.values.get(id));
            result.tool = tool.cloned().map(Cow::Owned);
        }
    }

    fn table(&self) -> MutexGuard<'_, FifoMap<String, String>> {
        // The table is consistent after every step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
