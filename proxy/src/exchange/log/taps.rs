//! What an exchange captures, counts and parses while its bytes pass.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use squall_dialects::mcp::{self, RpcRequest};
use squall_dialects::{Dialect, Tally};
use squall_journal::record::{Outcome, SocketSide};
use squall_profiles::facts::Kind;
use squall_profiles::spending::Charge;
use squall_profiles::verdict::{RuleVerdict, VerdictOutcome};

use super::ExchangeLog;
use crate::egress::BodySearch;
use crate::recorder::{
    Answering, CallTap, Capture, ExchangeNote, Meter, ModelTraffic, SocketTap, Traffic,
};

/// Most bytes captured for parsing: of a model call's request and response each, and of an MCP
/// request. Longer ones are parsed up to this limit.
pub(in crate::exchange) const MODEL_BYTES: usize = 1 << 20;

/// Observers of one exchange's bytes.
#[derive(Default)]
pub(in crate::exchange) struct Taps {
    request_bytes: u64,
    response_bytes: u64,
    /// Input of the collector: a model call, an MCP request, or a recording.
    pub(in crate::exchange) traffic: Option<Box<Traffic>>,
    /// The tally of a response that a rule has read and did not change.
    pub(super) tally: Option<Box<Tally>>,
    /// Whether captured response bytes are copied. On HTTP/2 an abort waits until hyper drops the
    /// sent bytes.
    pub(in crate::exchange) copies: bool,
    /// The start of the response may show that it is an MCP session's event stream.
    pub(in crate::exchange) may_begin_session: bool,
    /// Counts the messages of a WebSocket.
    pub(in crate::exchange) socket: Option<Box<SocketTap>>,
    /// The calls of a request that calls several tools.
    pub(in crate::exchange) calls: Option<Box<RpcRequest>>,
    /// Meters the call immediately, if a rule with a budget matches it.
    meter: Option<Box<Meter>>,
    /// Reads which tools the model calls, if a rule may need their results later.
    pub(in crate::exchange) called: Option<Box<CallTap>>,
    /// Reads whether a model answers, if tool results in its input were changed.
    pub(in crate::exchange) answering: Option<Box<Answering>>,
    /// Searches the request's body for canaries, once any are planted.
    pub(super) search: Option<Box<BodySearch>>,
}

impl Taps {
    /// Charges the model call's usage to a budget.
    pub(super) fn meter(&mut self, charge: Option<Charge>) {
        self.meter = charge.map(Meter::new).map(Box::new);
    }

    /// The output tokens in the response are Squall's own count.
    pub(super) fn counted_anew(&mut self) {
        if let Some(model) = self.model() {
            model.counted_anew();
        }
        if let Some(meter) = &mut self.meter {
            meter.counted_anew();
        }
    }

    pub(in crate::exchange) fn model(&mut self) -> Option<&mut ModelTraffic> {
        self.traffic.as_mut()?.model.as_mut()
    }

    fn answer_head(&mut self, status: StatusCode, headers: &HeaderMap) {
        if let Some(called) = &mut self.called {
            called.begin(headers);
        }
        if let Some(traffic) = &mut self.traffic
            && let Some(model) = &mut traffic.model
        {
            model.answer_head(headers);
            if let Some(meter) = &mut self.meter {
                meter.begin(model);
            }
        }
        if let Some(capture) = self.capture() {
            capture.answer_head(status, headers);
        }
    }

    fn capture(&mut self) -> Option<&mut Capture> {
        self.traffic.as_mut()?.capture.as_deref_mut()
    }

    fn answer(&mut self, bytes: &Bytes) {
        if let Some(answering) = &mut self.answering {
            answering.answer(bytes);
        }
        let is_metered = self.meter.as_ref().is_some_and(|meter| meter.reads());
        if let Some(meter) = self.meter.as_mut().filter(|_| is_metered) {
            meter.answer(bytes);
        }
        if let Some(traffic) = &mut self.traffic {
            let copy;
            let bytes = if self.copies || is_metered {
                copy = Bytes::copy_from_slice(bytes);
                &copy
            } else {
                bytes
            };
            traffic.answer(bytes, is_metered);
        }
    }

    pub(super) fn fill(&self, note: &mut ExchangeNote) {
        note.request_bytes = self.request_bytes;
        note.response_bytes = self.response_bytes;
        if let Some(socket) = &self.socket {
            note.messages = socket.record().map(Box::new);
        }
        if let Some(asked) = &self.calls {
            let tools = asked.tools();
            let named = called(asked, &note.verdicts);
            note.calls(named.as_deref(), &tools);
        }
    }

    /// The remaining input of the collector after the exchange has ended.
    pub(super) fn finish(mut self, note: &mut ExchangeNote) -> Option<Box<Traffic>> {
        if let Some((llm, tokens)) = self.meter.take().and_then(|meter| meter.finish()) {
            note.spend(llm.model.as_deref(), tokens);
            note.llm = Some(Box::new(llm));
            if let Some(traffic) = &mut self.traffic {
                traffic.model = None;
            }
        } else if note.outcome == Outcome::Ok
            && let Some(tally) = self.tally.take()
            && let Some(model) = self.model()
        {
            // With another outcome the agent got other bytes.
            model.take_tally(tally);
        }
        self.traffic
    }
}

impl ExchangeLog {
    /// The observers of the exchange's bytes.
    pub(in crate::exchange) fn taps(&self) -> std::cell::RefMut<'_, Taps> {
        self.taps.borrow_mut()
    }

    /// Records the head of the response that the agent gets, for a recording.
    pub(crate) fn captured_head(&self, status: StatusCode, headers: &HeaderMap) {
        if let Some(capture) = self.taps().capture() {
            capture.answer_head(status, headers);
        }
    }

    /// Records that the response broke off.
    pub(crate) fn broke_off(&self) {
        if let Some(capture) = self.taps().capture() {
            capture.broke_off();
        }
    }

    /// Updates the observers with the classification of the body.
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
        if let Some(traffic) = &mut self.taps().traffic {
            traffic.turned_out(dialect);
        }
    }

    /// Prepares the observers for a response with this head.
    pub(crate) fn answer_head(&self, status: StatusCode, headers: &HeaderMap) {
        self.taps().answer_head(status, headers);
    }

    /// Observes request body bytes on their way upstream.
    pub(crate) fn sent_upstream(&self, bytes: &Bytes) {
        if self.looks_for_canaries() {
            self.look_in_body(bytes);
        }
        let mut taps = self.taps();
        taps.request_bytes += bytes.len() as u64;
        if let Some(socket) = &mut taps.socket {
            socket.pass(SocketSide::Agent, bytes);
        }
        if let Some(traffic) = &mut taps.traffic {
            traffic.request(bytes);
        }
    }

    /// Observes response body bytes that went to the agent.
    pub(crate) fn sent_to_agent(&self, bytes: &Bytes) {
        let mut taps = self.taps();
        taps.response_bytes += bytes.len() as u64;
        if let Some(socket) = &mut taps.socket {
            socket.pass(SocketSide::Upstream, bytes);
        }
        if std::mem::take(&mut taps.may_begin_session) && mcp::begins_session(bytes) {
            self.note(|note| note.kind = Kind::Mcp);
        }
        if let Some(called) = &mut taps.called {
            called.answer(bytes, self.chaos.called());
        }
        taps.answer(bytes);
    }

    /// The rest of the response is on its way to the agent.
    pub(crate) fn sent_all(&self) {
        let mut taps = self.taps();
        if let Some(called) = &mut taps.called {
            called.end(self.chaos.called());
        }
        if let Some(meter) = &mut taps.meter {
            meter.end();
        }
    }
}

/// The tool under which a request with several calls is listed: the first call's, unless rules were
/// applied to others only.
fn called(asked: &RpcRequest, verdicts: &[RuleVerdict]) -> Option<String> {
    let applied = verdicts
        .iter()
        .filter(|verdict| verdict.outcome == VerdictOutcome::Applied);
    let meant: Vec<String> = applied
        .flat_map(|verdict| verdict.rule.calls_meant(asked))
        .filter_map(|call| call.tool)
        .collect();
    let first = asked.tools().first().map(|tool| (*tool).to_owned())?;
    if meant.contains(&first) {
        return Some(first);
    }
    meant.into_iter().next().or(Some(first))
}
