//! What MCP servers say of their tools: hints, for nobody vouches for them.

use serde_json::Value;
use squall_journal::record::Kind;

use super::Trace;
use super::attempt::{Attempt, json};

/// What a server lists of a tool's conduct.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// `readOnlyHint`: it changes nothing.
    pub(crate) reads_only: Option<bool>,
    /// `idempotentHint`: twice is as once.
    pub(crate) is_idempotent: Option<bool>,
}

impl Trace {
    /// What the server of a call has listed of the tool, in this invocation.
    pub(crate) fn hints(&self, attempt: &Attempt, tool: &str) -> Hints {
        let lists = self.attempts.iter().filter(|one| {
            one.kind == Kind::Mcp
                && one.tools.is_empty()
                && one.host_and_port == attempt.host_and_port
        });
        let answers = lists.filter_map(|one| json(self.exchange(one).response.as_ref()?));
        let mut found = answers.filter_map(|answer| annotations(&answer, tool));
        found.next_back().unwrap_or_default()
    }
}

fn annotations(answer: &Value, tool: &str) -> Option<Hints> {
    let tools = answer.pointer("/result/tools")?.as_array()?;
    let listed = tools
        .iter()
        .find(|listed| listed.get("name").and_then(Value::as_str) == Some(tool))?;
    let hint = |name| listed.get("annotations")?.get(name)?.as_bool();
    Some(Hints {
        reads_only: hint("readOnlyHint"),
        is_idempotent: hint("idempotentHint"),
    })
}
