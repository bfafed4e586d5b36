//! MCP calls in a batch that rules answer or change, while the other calls of the batch proceed.

use http::{Method, Request, Response};
use squall_dialects::mcp::{self, Call};
use squall_profiles::decide::Decision;
use squall_profiles::faults::mcp_answer::{McpChange, OUT_OF_BAND};
use squall_profiles::plan::{PlannedAnswer, ToolSays, VerdictIndex};

use super::request_body::RequestBody;
use super::{Exchange, rule};
use crate::body::AgentBody;
use crate::faults::Ledger as _;
use crate::faults::edit;

/// MCP calls that were not forwarded, and their responses.
pub(super) struct TakenOut {
    pub(super) verdict: VerdictIndex,
    pub(super) calls: Vec<Call>,
    pub(super) says: McpChange,
}

impl Exchange {
    /// Removes the MCP calls that a rule answers from a batch. The server only gets the remaining
    /// calls.
    pub(super) fn take_out(
        &self,
        verdict: VerdictIndex,
        answer: &PlannedAnswer,
        request: &mut Request<RequestBody>,
        decision: &Decision,
    ) -> Option<TakenOut> {
        let PlannedAnswer::Tool(made) = answer else {
            return None;
        };
        let calls = self.in_part(verdict, decision)?;
        // A client could not parse the other responses next to a truncated one.
        if made.says == ToolSays::Broken {
            return None;
        }
        let left = mcp::McpRequest::without(request.body().whole()?, &calls)?;
        edit::fits(request.headers_mut(), left.len() as u64);
        request.body_mut().replace(left.into());
        Some(TakenOut {
            verdict,
            calls,
            says: McpChange::Beside(made.says.clone()),
        })
    }

    /// Changes an MCP server's responses to the calls that each rule matches. A response to no call
    /// is changed like any other body, except a session's event stream.
    pub(super) async fn edit_mcp(
        &self,
        mut answer: Response<AgentBody>,
        decision: &Decision,
    ) -> Response<AgentBody> {
        for edit in &decision.plan.edits {
            let call = self.classified.mcp_call(rule(decision, edit.0));
            let calls = call.map(|call| call.meant).unwrap_or_default();
            answer = match edit::mcp::change(&edit.1) {
                Some(change) if !calls.is_empty() => {
                    self.change(change, calls, answer, edit.0).await
                }
                _ if self.method == Method::GET => {
                    self.log.bypassed(edit.0, OUT_OF_BAND.to_owned());
                    answer
                }
                _ => {
                    let model = self.classified.speaking(&self.target.url);
                    let edit = std::slice::from_ref(edit);
                    edit::apply(edit, answer, model, &self.context()).await
                }
            };
        }
        answer
    }

    /// Changes the responses to some calls.
    pub(super) async fn change(
        &self,
        change: McpChange,
        calls: Vec<Call>,
        answer: Response<AgentBody>,
        verdict: VerdictIndex,
    ) -> Response<AgentBody> {
        let typed = self
            .classified
            .mcp_call(None)
            .is_some_and(|call| call.typed());
        let context = self.context();
        Box::pin(edit::mcp::apply(
            change, calls, typed, answer, verdict, &context,
        ))
        .await
    }

    /// The calls that a rule matches, if their batch has others.
    pub(super) fn in_part(&self, verdict: VerdictIndex, decision: &Decision) -> Option<Vec<Call>> {
        let call = self.classified.mcp_call(rule(decision, verdict))?;
        call.leaves_others().then_some(call.meant)
    }
}
