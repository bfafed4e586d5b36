//! Traces of agents without HTTP: calls of tools and models in order, as a session.

use serde_json::Value;
use squall_journal::tape::{ModelSource, Session, ToolResponse};

use super::Imported;
use super::message::{TracedCall, response};

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
    pub(super) tools: Vec<TracedCall>,
    pub(super) models: Vec<TracedCall>,
    /// Other parts, and why they are left out.
    pub(super) others: Vec<(String, &'static str)>,
}

/// What a part of a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Tool,
    Model,
    Search,
    Http,
    Other,
}

impl Trace {
    /// Adds a part. `input` is the last message of the user in it.
    pub(super) fn add(
        &mut self,
        kind: CallKind,
        call: TracedCall,
        input: impl FnOnce() -> Option<String>,
    ) {
        match kind {
            CallKind::Tool => self.tools.push(call),
            CallKind::Model => {
                self.input = self.input.take().or_else(input);
                self.models.push(call);
            }
            CallKind::Search => {
                let why = "results of retrievers and embeddings are not replayed";
                self.others.push((call.name, why));
            }
            CallKind::Http => {
                let why = "a span of HTTP has no bodies; record the traffic, or trace the tool";
                self.others.push((call.name, why));
            }
            CallKind::Other => {}
        }
    }

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
            let status = if tool.error.is_some() { 0 } else { 200 };
            let Some(response) = tool.output.or(tool.error.map(Value::from)) else {
                let what = format!("a call of tool {} in {}", tool.name, session.id);
                imported.leave_out(what, "the trace does not have its result");
                continue;
            };
            session.tool_responses.push(ToolResponse {
                tool: tool.name,
                status,
                latency_ms: tool.latency_ms,
                response,
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
