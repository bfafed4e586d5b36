//! Which tools models have called, by the ids of the calls.
//!
//! Where a provider keeps the conversation, a request brings the result and the call's id, and not the
//! call, which names the tool. That stood in an answer which the agent got before.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use squall_dialects::model::Conversation;

/// Most calls that one scope remembers.
const CALLS: usize = 4096;

/// The tools that the models of one scope have called, the latest 4,096 of them.
#[derive(Debug, Default)]
pub struct Called(Mutex<CallTable>);

#[derive(Debug, Default)]
struct CallTable {
    tools: HashMap<String, String>,
    /// Ids of calls, oldest first.
    order: VecDeque<String>,
}

impl Called {
    /// A model has called `tool`. An id that comes again is the later call's.
    pub fn note(&self, id: String, tool: String) {
        self.table().note(id, tool, CALLS);
    }

    /// Names the tools of the results whose calls stand elsewhere.
    pub(super) fn name(&self, conversation: &mut Conversation<'_>) {
        let results = conversation.tool_results.iter_mut();
        let mut nameless = results.filter(|result| result.tool.is_none()).peekable();
        if nameless.peek().is_none() {
            return;
        }
        let table = self.table();
        for result in nameless {
            let tool = result.call.as_deref().and_then(|id| table.tools.get(id));
            result.tool = tool.cloned().map(Cow::Owned);
        }
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        // The table is whole at every step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallTable {
    fn note(&mut self, id: String, tool: String, most: usize) {
        if self.tools.insert(id.clone(), tool).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > most
            && let Some(oldest) = self.order.pop_front()
        {
            self.tools.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_call_is_forgotten_first() {
        let mut table = CallTable::default();
        for (id, tool) in [("1", "a"), ("2", "b"), ("1", "c"), ("3", "d")] {
            table.note(id.to_owned(), tool.to_owned(), 2);
        }
        let known = |id: &str| table.tools.get(id).map(String::as_str);
        assert_eq!(
            [known("1"), known("2"), known("3")],
            [None, Some("b"), Some("d")]
        );
        assert_eq!(table.order.len(), 2);
    }
}
