//! What is kept, counted and read of an exchange's bytes while they pass.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use squall_dialects::mcp::{self, Asked};
use squall_dialects::{Dialect, Tally};
use squall_profiles::facts::Kind;
use squall_profiles::spending::Charge;
use squall_profiles::verdict::{RuleVerdict, VerdictOutcome};

use super::ExchangeLog;
use crate::egress::BodySearch;
use crate::recorder::{Answering, CallTap, ExchangeNote, Meter, ModelTraffic, Traffic};

/// Bytes of a model call's request and of its answer, and of an MCP request, that are kept for
/// reading; what is longer is read as far as it was kept.
pub(in crate::exchange) const MODEL_BYTES: usize = 1 << 20;

/// What reads the bytes of one exchange.
#[derive(Default)]
pub(in crate::exchange) struct Taps {
    request_bytes: u64,
    response_bytes: u64,
    /// What the collector reads: a model call, an MCP request, what is recorded.
    pub(in crate::exchange) traffic: Option<Box<Traffic>>,
    /// What is kept of the answer is copied: on HTTP/2 a piece that nobody holds any more is one
    /// that was sent, and a break waits for that.
    pub(in crate::exchange) copies: bool,
    /// What a rule has read of the answer that it let pass.
    pub(super) heard: Option<Box<Tally>>,
    /// The beginning of its answer may show that it is the event stream of an MCP session.
    pub(in crate::exchange) may_begin_session: bool,
    /// The calls of a request that calls several tools.
    pub(in crate::exchange) calls: Option<Box<Asked>>,
    /// Reads the call at once, where a rule with a budget matches it.
    meter: Option<Box<Meter>>,
    /// Reads which tools the model calls, where a rule may ask for their results later.
    pub(in crate::exchange) called: Option<Box<CallTap>>,
    /// Reads whether a model answers, where it is told something else of tools' results.
    pub(in crate::exchange) answering: Option<Box<Answering>>,
    /// Looks for canaries in the request's body, once any are planted.
    pub(super) search: Option<Box<BodySearch>>,
}

impl Taps {
    /// Charges a budget for what the model call uses up.
    pub(super) fn meter(&mut self, charge: Option<Charge>) {
        self.meter = charge.map(Meter::new).map(Box::new);
    }

    /// The tokens out that the answer announces are Squall's own count.
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
        if let Some(traffic) = &mut self.traffic {
            if let Some(model) = &mut traffic.model {
                model.answer_head(headers);
                if let Some(meter) = &mut self.meter {
                    meter.begin(model);
                }
            }
            traffic.captured_head(status, headers);
        }
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
        if let Some(asked) = &self.calls {
            let tools = asked.tools();
            let named = called(asked, &note.verdicts);
            note.calls(named.as_deref(), &tools);
        }
    }

    /// What is left for the collector to read of an exchange that is over.
    pub(super) fn finish(mut self, note: &mut ExchangeNote) -> Option<Box<Traffic>> {
        if let Some((llm, tokens)) = self.meter.take().and_then(|meter| meter.finish()) {
            note.spend(llm.model.as_deref(), tokens);
            note.llm = Some(Box::new(llm));
            if let Some(traffic) = &mut self.traffic {
                traffic.model = None;
            }
        } else if note.outcome == squall_journal::record::Outcome::Ok
            && let Some(heard) = self.heard.take()
            && let Some(model) = self.model()
        {
            // Of an answer that was changed by another rule, or cut off, the agent got other bytes.
            model.was_heard(heard);
        }
        self.traffic
    }
}

impl ExchangeLog {
    /// What reads the exchange's bytes.
    pub(in crate::exchange) fn taps(&self) -> std::cell::RefMut<'_, Taps> {
        self.taps.borrow_mut()
    }

    /// The head of the answer that the agent gets, where it is recorded.
    pub(crate) fn captured_head(&self, status: StatusCode, headers: &HeaderMap) {
        if let Some(traffic) = &mut self.taps().traffic {
            traffic.captured_head(status, headers);
        }
    }

    /// The answer broke off before its end.
    pub(crate) fn broke_off(&self) {
        if let Some(traffic) = &mut self.taps().traffic {
            traffic.broke_off();
        }
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
        if let Some(traffic) = &mut self.taps().traffic {
            traffic.turned_out(dialect);
        }
    }

    /// The head of the answer, for reading what comes.
    pub(crate) fn answer_head(&self, status: StatusCode, headers: &HeaderMap) {
        self.taps().answer_head(status, headers);
    }

    /// Request body bytes came from the agent, on their way upstream.
    pub(crate) fn sent_upstream(&self, bytes: &Bytes) {
        if self.looks_for_canaries() {
            self.look_in_body(bytes);
        }
        let mut taps = self.taps();
        taps.request_bytes += bytes.len() as u64;
        if let Some(traffic) = &mut taps.traffic {
            traffic.request(bytes);
        }
    }

    /// Answer body bytes went to the agent.
    pub(crate) fn sent_to_agent(&self, bytes: &Bytes) {
        let mut taps = self.taps();
        taps.response_bytes += bytes.len() as u64;
        if std::mem::take(&mut taps.may_begin_session) && mcp::begins_session(bytes) {
            self.note(|note| note.kind = Kind::Mcp);
        }
        if let Some(called) = &mut taps.called {
            called.answer(bytes, self.chaos.called());
        }
        taps.answer(bytes);
    }

    /// All of the answer is the agent's next.
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

/// The tool that a request of several calls is listed under: the first that is called, unless rules
/// were applied about others alone.
fn called(asked: &Asked, verdicts: &[RuleVerdict]) -> Option<String> {
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
