//! Annotations of tools by MCP servers. They are hints, because nothing verifies them.

use serde_json::Value;
use squall_journal::record::Kind;

use super::Trace;
use super::attempt::{Attempt, json};

/// A server's annotations of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// `readOnlyHint`: the tool has no side effects.
    pub(crate) reads_only: Option<bool>,
    /// `idempotentHint`: repeating a call has no further effect.
    pub(crate) is_idempotent: Option<bool>,
}

impl Trace {
    /// The annotations of the tool by the call's server, in this invocation.
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
