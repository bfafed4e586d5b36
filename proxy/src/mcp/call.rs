//! Answers to MCP calls that Squall makes up.

use bytes::Bytes;
use squall_dialects::WireReply;
use squall_dialects::mcp::{self, Asked, Call, Head, Layout};
use squall_profiles::faults::mcp_answer::said;
use squall_profiles::plan::{Reply, ToolAnswer, ToolSays};

/// What an MCP server is asked, as one rule sees it.
#[derive(Debug, Clone)]
pub(crate) struct McpCall<'a> {
    /// What the head says.
    pub head: &'a Head,
    /// What the body asks, when it was read and asks something.
    pub asked: Option<&'a Asked>,
    /// The calls that the rule is about.
    pub meant: Vec<Call>,
}

impl McpCall<'_> {
    /// Whether results say of what type they are, as they do since 2026-07-28.
    pub(crate) fn typed(&self) -> bool {
        self.head.method.is_some()
    }

    /// Whether the request holds calls that the rule is not about, whose answers an answer made up
    /// for all of it would lose.
    pub(crate) fn leaves_others(&self) -> bool {
        let all = self.asked.map_or(0, |asked| asked.requests().count());
        !self.meant.is_empty() && self.meant.len() < all
    }

    /// A tool's made-up answer in MCP's form; or why there is none.
    pub(crate) fn answer(&self, answer: &ToolAnswer) -> Result<Reply, String> {
        match &answer.says {
            ToolSays::Status(message) => return Ok(self.with_status(&answer.plain, message)),
            // Nothing but HTTP can say it where no result is waited for.
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
        // Of each call apart: what is said may name its tool.
        let calls: Vec<_> = self
            .meant
            .iter()
            .map(|call| (call, said(&answer.says, call)))
            .collect();
        let calls: Vec<_> = calls
            .iter()
            .map(|(call, said)| (*call, said.as_says()))
            .collect();
        let layout = Layout {
            accepts: self.head.accepts,
            batch: self.asked.is_some_and(|asked| asked.batch),
            typed: self.typed(),
        };
        Ok(reply(mcp::answer(&calls, layout)))
    }

    /// What a server says that has lost the session.
    pub(crate) fn session_expired(&self) -> Result<Reply, String> {
        if self.head.session {
            Ok(reply(mcp::session_expired()))
        } else {
            Err("the request belongs to no session".to_owned())
        }
    }

    fn with_status(&self, plain: &Reply, message: &str) -> Reply {
        let id = match &self.meant[..] {
            [only] => only.id.as_ref(),
            _ => None,
        };
        let mut reply = plain.clone();
        // A media type that was given stays with what it was given for.
        reply.body = Bytes::from(mcp::error_body(id, message));
        reply
    }

    /// Whether the request was read and holds a call; or why not.
    pub(crate) fn can_be_answered(&self) -> Result<(), String> {
        if self.asked.is_none() {
            return Err("the request's body was not read, or holds no call".to_owned());
        }
        Ok(())
    }

    /// Whether the request was read and is one of those that get no result: a notification, a
    /// stream to listen on, the end of a session.
    fn waits_for_none(&self) -> bool {
        self.meant.is_empty()
    }
}

fn reply(wire: WireReply) -> Reply {
    Reply {
        status: wire.status,
        headers: wire.headers,
        body: wire.body,
    }
}
