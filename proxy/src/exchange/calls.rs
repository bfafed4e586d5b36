//! MCP calls that rules are about: answered in the server's place, or their answers changed, while
//! others of the same list go on.

use http::{Method, Request, Response};
use squall_dialects::mcp::{self, Call};
use squall_profiles::decide::Decision;
use squall_profiles::faults::mcp_answer::{Change, OUT_OF_BAND};
use squall_profiles::plan::{Answer, ToolSays, VerdictIndex};

use super::request_body::RequestBody;
use super::{Exchange, rule};
use crate::body::AgentBody;
use crate::faults::Ledger as _;
use crate::faults::edit;

/// MCP calls that were not sent on, and what is said to them.
pub(super) struct TakenOut {
    pub(super) verdict: VerdictIndex,
    pub(super) calls: Vec<Call>,
    pub(super) says: Change,
}

impl Exchange {
    /// Takes those MCP calls out of a list that a rule answers in the server's place: the server
    /// hears of the others alone, and answers them.
    pub(super) fn take_out(
        &self,
        verdict: VerdictIndex,
        answer: &Answer,
        request: &mut Request<RequestBody>,
        decision: &Decision,
    ) -> Option<TakenOut> {
        let Answer::Tool(made) = answer else {
            return None;
        };
        let calls = self.in_part(verdict, decision)?;
        // Beside a broken answer nobody could read the others.
        if made.says == ToolSays::Broken {
            return None;
        }
        let left = mcp::Asked::without(request.body().whole()?, &calls)?;
        edit::fits(request.headers_mut(), left.len() as u64);
        request.body_mut().replace(left.into());
        Some(TakenOut {
            verdict,
            calls,
            says: Change::Beside(made.says.clone()),
        })
    }

    /// Changes an MCP server's answers to the calls that each rule is about. What answers no call
    /// is changed as any other body, but for a session's event stream.
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

    /// Changes the answers to some calls.
    pub(super) async fn change(
        &self,
        change: Change,
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

    /// The calls that a rule is about, if there are others in their batch.
    pub(super) fn in_part(&self, verdict: VerdictIndex, decision: &Decision) -> Option<Vec<Call>> {
        let call = self.classified.mcp_call(rule(decision, verdict))?;
        call.leaves_others().then_some(call.meant)
    }
}
