//! Synthetic responses to calls of MCP and A2A.

use bytes::Bytes;
use squall_dialects::WireReply;
use squall_dialects::a2a::AgentCall;
use squall_dialects::mcp::{self, Call, Head, Layout, RpcRequest};
use squall_profiles::faults::rpc_answer::says_of;
use squall_profiles::plan::{ToolAnswer, ToolSays};

/// A request of MCP or A2A, as one rule sees it.
#[derive(Debug, Clone)]
pub(crate) struct RpcCall<'a> {
    /// What the head shows.
    pub head: &'a Head,
    /// The request in the body, if it was read and contains one.
    pub request: Option<&'a RpcRequest>,
    /// The calls that the rule matches.
    pub meant: Vec<Call>,
}

impl RpcCall<'_> {
    /// Whether results have a type field, as since MCP 2026-07-28.
    pub(crate) fn typed(&self) -> bool {
        self.head.method.is_some()
    }

    /// Whether the request has calls that the rule does not match. A single synthetic response
    /// would lose theirs.
    pub(crate) fn leaves_others(&self) -> bool {
        let all = self.request.map_or(0, |asked| asked.requests().count());
        !self.meant.is_empty() && self.meant.len() < all
    }

    /// A tool's or agent's synthetic response in the format of its protocol, or why there is none.
    pub(crate) fn answer(&self, answer: &ToolAnswer) -> Result<WireReply, String> {
        match &answer.says {
            ToolSays::Status(message) => return Ok(self.with_status(&answer.plain, message)),
            // Without an expected result, only HTTP can report the failure.
            ToolSays::Failure(message) if self.waits_for_none() => {
                let message = message.as_deref();
                let words = answer.plain.status.canonical_reason();
                let message = message.or(words).unwrap_or("error");
                return Ok(self.with_status(&answer.plain, message));
            }
            ToolSays::Text(_)
            | ToolSays::Failure(_)
            | ToolSays::ProtocolError { .. }
            | ToolSays::Nothing
            | ToolSays::Broken => {}
        }
        self.can_be_answered()?;
        if self.meant.is_empty() {
            return Err("the request waits for no answer".to_owned());
        }
        let is_result = !matches!(
            answer.says,
            ToolSays::Failure(_) | ToolSays::ProtocolError { .. }
        );
        if is_result && !self.meant.iter().all(Call::has_result) {
            return Err(
                "its result is neither a message nor a task, and only errors are supported"
                    .to_owned(),
            );
        }
        let says = says_of(&answer.says);
        let calls: Vec<_> = self.meant.iter().map(|call| (call, says)).collect();
        let layout = Layout {
            accepts: self.head.accepts,
            batch: self.request.is_some_and(|asked| asked.batch),
            typed: self.typed(),
        };
        Ok(mcp::answer(&calls, layout))
    }

    /// Whether the agent reads an event stream. One of A2A does so for some methods only.
    pub(crate) fn takes_events(&self) -> bool {
        let mut agents = self.meant.iter().filter_map(|call| call.agent.as_ref());
        self.head.accepts.stream && agents.all(AgentCall::streams)
    }

    /// The response of a server that has lost the session.
    pub(crate) fn session_expired(&self) -> Result<WireReply, String> {
        if self.head.session {
            Ok(mcp::session_expired())
        } else {
            Err("the request belongs to no session".to_owned())
        }
    }

    fn with_status(&self, plain: &WireReply, message: &str) -> WireReply {
        let id = match &self.meant[..] {
            [only] => only.id.as_ref(),
            _ => None,
        };
        let mut reply = plain.clone();
        // The media type only applied to the replaced body.
        reply.body = Bytes::from(mcp::error_body(id, message));
        reply
    }

    /// Whether the request was read and has a call; otherwise why not.
    pub(crate) fn can_be_answered(&self) -> Result<(), String> {
        if self.request.is_none() {
            return Err("the request's body was not read, or holds no call".to_owned());
        }
        Ok(())
    }

    /// Whether the request was read and expects no result: a notification, a stream to listen on,
    /// the end of a session.
    fn waits_for_none(&self) -> bool {
        self.meant.is_empty()
    }
}
