//! MCP responses that rules change.

use http::{Method, Response};
use squall_dialects::mcp::Call;
use squall_profiles::decide::Decision;
use squall_profiles::faults::rpc_answer::{OUT_OF_BAND, RpcChange};
use squall_profiles::plan::VerdictIndex;

use super::{Exchange, rule};
use crate::body::AgentBody;
use crate::faults::Ledger as _;
use crate::faults::edit;

impl Exchange {
    /// Changes an MCP server's responses to the calls that each rule matches. A response to no call
    /// is changed like any other body, except a session's event stream.
    pub(super) async fn edit_rpc(
        &self,
        mut answer: Response<AgentBody>,
        decision: &Decision,
    ) -> Response<AgentBody> {
        for edit in &decision.plan.edits {
            let call = self.classified.rpc_call(rule(decision, edit.0));
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
        change: RpcChange,
        calls: Vec<Call>,
        answer: Response<AgentBody>,
        verdict: VerdictIndex,
    ) -> Response<AgentBody> {
        let context = self.context();
        Box::pin(edit::mcp::apply(change, calls, answer, verdict, &context)).await
    }
}
