//! What is kept, counted and read of an exchange's bytes while they pass.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use squall_dialects::Dialect;
use squall_dialects::mcp::{self, Asked};
use squall_profiles::facts::Kind;

use super::ExchangeLog;
use crate::recorder::{CallTap, Capture, McpTraffic, ModelTraffic, Traffic};

/// Bytes of a model call's request and of its answer, and of an MCP request, that are kept for
/// reading; what is longer is read as far as it was kept.
const MODEL_BYTES: usize = 1 << 20;

impl ExchangeLog {
    /// Keeps a copy of the model call for the journal to read, off the forwarding path.
    /// `named` is the dialect that the user says the endpoint speaks.
    pub(crate) fn read_model(
        &self,
        dialect: &'static dyn Dialect,
        named: Option<&'static dyn Dialect>,
        target: &str,
        agent: Version,
    ) {
        self.copies.set(agent == Version::HTTP_2);
        *self.traffic.borrow_mut() = Some(Box::new(Traffic {
            model: Some(ModelTraffic::new(dialect, named, target)),
            capture: None,
        }));
    }

    /// Keeps heads and bodies too; to be called after [`Self::read_model`].
    pub(crate) fn capture(&self, capture: Capture, agent: Version) {
        self.copies.set(agent == Version::HTTP_2);
        let mut traffic = self.traffic.borrow_mut();
        traffic.get_or_insert_default().capture = Some(Box::new(capture));
    }

    /// The head of the answer that the agent gets, where it is recorded.
    pub(crate) fn captured_head(&self, status: StatusCode, headers: &HeaderMap) {
        if let Some(traffic) = self.traffic.borrow_mut().as_mut() {
            traffic.captured_head(status, headers);
        }
    }

    /// The answer broke off before its end.
    pub(crate) fn broke_off(&self) {
        let mut traffic = self.traffic.borrow_mut();
        if let Some(capture) = traffic.as_mut().and_then(|it| it.capture.as_mut()) {
            capture.broke_off();
        }
    }

    /// Keeps a copy of the request for the journal to read what an MCP server is asked, if it turns
    /// out to be one.
    pub(crate) fn read_mcp(&self, kind: Kind) {
        *self.mcp.borrow_mut() = Some(Box::new(McpTraffic::new(kind == Kind::Mcp)));
    }

    /// The first bytes of the answer show whether it is the event stream of an MCP session.
    pub(crate) fn may_begin_session(&self) {
        self.may_begin_session.set(true);
    }

    /// What the body says that the exchange is.
    pub(crate) fn turned_out(
        &self,
        kind: Kind,
        dialect: Option<&'static dyn Dialect>,
        tool: Option<&str>,
    ) {
        self.note(|note| {
            note.kind = kind;
            note.dialect = dialect.map(Dialect::name);
            note.tool = tool.map(Arc::from);
        });
        self.mcp.take();
        match dialect {
            None => {
                if let Some(traffic) = self.traffic.borrow_mut().as_mut() {
                    traffic.model = None;
                }
            }
            Some(dialect) => self.of_model(|model| model.speaks(dialect)),
        }
    }

    /// What an MCP server is asked: where several tools are called, a rule may be about one of them.
    pub(crate) fn calls_tools(&self, asked: &Asked) {
        if asked.tools().len() > 1 {
            *self.calls.borrow_mut() = Some(Box::new(asked.clone()));
        }
    }

    /// Reads which tools the model calls in its answer, in `dialect`; `target` is path and query of the
    /// upstream's URL.
    pub(crate) fn hear_calls(&self, dialect: &'static dyn Dialect, target: &str) {
        *self.heard_calls.borrow_mut() = Some(Box::new(CallTap::new(dialect, target)));
    }

    /// The model asked for, as the whole body tells.
    pub(crate) fn asked(&self, name: &str) {
        self.of_model(|model| model.asked(name));
    }

    /// The head of the answer, for reading what comes.
    pub(crate) fn answer_head(&self, status: StatusCode, headers: &HeaderMap) {
        if let Some(calls) = self.heard_calls.borrow_mut().as_mut() {
            calls.begin(headers);
        }
        if let Some(traffic) = self.traffic.borrow_mut().as_mut() {
            if let Some(model) = &mut traffic.model {
                model.answer_head(headers);
                if let Some(meter) = self.meter.borrow_mut().as_mut() {
                    meter.begin(model);
                }
            }
            traffic.captured_head(status, headers);
        }
    }

    pub(super) fn of_model(&self, tell: impl FnOnce(&mut ModelTraffic)) {
        let mut traffic = self.traffic.borrow_mut();
        if let Some(model) = traffic.as_mut().and_then(|it| it.model.as_mut()) {
            tell(model);
        }
    }

    /// Request body bytes came from the agent, on their way upstream.
    pub(crate) fn sent_upstream(&self, bytes: &Bytes) {
        self.request_bytes
            .set(self.request_bytes.get() + bytes.len() as u64);
        if self.chaos.planted().any() {
            self.look_in_body(bytes);
        }
        if let Some(traffic) = self.traffic.borrow_mut().as_mut() {
            traffic.request(bytes, MODEL_BYTES);
        }
        if let Some(mcp) = self.mcp.borrow_mut().as_mut() {
            mcp.request(bytes, MODEL_BYTES);
        }
    }

    /// Answer body bytes went to the agent.
    pub(crate) fn sent_to_agent(&self, bytes: &Bytes) {
        self.response_bytes
            .set(self.response_bytes.get() + bytes.len() as u64);
        if self.may_begin_session.take() && mcp::begins_session(bytes) {
            self.note(|note| note.kind = Kind::Mcp);
        }
        if let Some(calls) = self.heard_calls.borrow_mut().as_mut() {
            calls.answer(bytes, self.chaos.called());
        }
        if let Some(answering) = self.tells.borrow_mut().as_mut() {
            answering.answer(bytes);
        }
        if let Some(meter) = self.meter.borrow_mut().as_mut()
            && meter.reads()
        {
            meter.answer(bytes);
            let mut traffic = self.traffic.borrow_mut();
            if let Some(capture) = traffic.as_mut().and_then(|it| it.capture.as_mut()) {
                capture.answer(&Bytes::copy_from_slice(bytes));
            }
            return;
        }
        if let Some(traffic) = self.traffic.borrow_mut().as_mut() {
            if self.copies.get() {
                traffic.answer(&Bytes::copy_from_slice(bytes), MODEL_BYTES);
            } else {
                traffic.answer(bytes, MODEL_BYTES);
            }
        }
    }

    /// All of the answer is the agent's next.
    pub(crate) fn sent_all(&self) {
        if let Some(calls) = self.heard_calls.borrow_mut().as_mut() {
            calls.end(self.chaos.called());
        }
        if let Some(meter) = self.meter.borrow_mut().as_mut() {
            meter.end();
        }
    }
}
