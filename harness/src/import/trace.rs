//! Traces of agents without HTTP: calls of tools and models in order, as a session.

use serde_json::Value;
use squall_journal::tape::{ModelSource, Session, ToolResponse};

use super::Imported;
use super::message::{TracedModelCall, response};

/// What one trace has.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) source: String,
    pub(super) captured_at: Option<String>,
    pub(super) input: Option<String>,
    pub(super) failure: Option<String>,
    /// In order of their start.
    pub(super) tools: Vec<TracedToolCall>,
    pub(super) models: Vec<TracedModelCall>,
    /// Other parts, and why they are left out.
    pub(super) others: Vec<(String, &'static str)>,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct TracedToolCall {
    pub(super) name: String,
    pub(super) result: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) latency_ms: u64,
}

impl Trace {
    /// Adds its session. One model response that cannot be written leaves out all: the rest would answer other calls.
    pub(super) fn add_to(self, imported: &mut Imported) {
        let mut session = Session {
            id: self.id,
            name: self.name,
            source: Some(self.source),
            captured_at: self.captured_at,
            input: self.input.into_iter().collect(),
            expected_failure: self.failure,
            ..Session::default()
        };
        for tool in self.tools {
            let has_result = tool.result.is_some() || tool.error.is_some();
            if !has_result {
                let what = format!("a call of tool {} in {}", tool.name, session.id);
                imported.leave_out(what, "the trace does not have its result");
                continue;
            }
            session.tool_responses.push(ToolResponse {
                tool: tool.name,
                status: if tool.error.is_some() { 0 } else { 200 },
                latency_ms: tool.latency_ms,
                response: tool
                    .result
                    .or(tool.error.map(Value::from))
                    .unwrap_or_default(),
            });
        }
        let mut missing = 0;
        for (call, number) in self.models.iter().zip(1..) {
            match response(call) {
                Ok(written) => session.llm_responses.push(written),
                Err(why) => {
                    missing += 1;
                    let name = call.model.as_deref().unwrap_or("a model");
                    imported.leave_out(
                        format!("response {number} of {name} in {}", session.id),
                        why,
                    );
                }
            }
        }
        if missing > 0 {
            let left = std::mem::take(&mut session.llm_responses).len();
            session.models = Some(ModelSource::Live);
            if left > 0 {
                let what = format!("{left} other model responses in {}", session.id);
                imported.leave_out(
                    what,
                    "responses are replayed in order, and one of them is missing",
                );
            }
        }
        for (what, why) in self.others {
            imported.leave_out(format!("{what} in {}", session.id), why);
        }
        imported.sessions.push(session);
    }
}

/// Milliseconds between two times in nanoseconds.
pub(super) fn elapsed_ms(start: u64, end: u64) -> u64 {
    (end.saturating_sub(start) / 1_000_000).min(86_400_000)
}
