//! Executes the parts of a plan that change responses and bodies.
//!
//! The exchange decides the order; each part takes a response and returns one:
//!
//! ```text
//! agent's request ─▶ rewrite::apply ─▶ upstream
//!
//! upstream's response ─▶ edit::apply ─▶ shape::apply ─▶ agent
//!                           ▲
//! answer::make ─────────────┘  (synthetic responses enter here, or go directly to shape)
//! recall::Recall             (responses stored for `stale` and `swapped`)
//! ```
//!
//! Every part reports to the [`Ledger`] when it takes effect, not when it is set up. For example, a
//! cut after the end of the body is a bypassed rule. A body that no rule changes stays the
//! upstream's own, byte for byte and frame for frame.

use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use squall_dialects::Tally;
use squall_profiles::plan::VerdictIndex;

use crate::body::agent::{AbortAfterFlush, AgentSide};
use crate::body::buffer::Inspect;
use crate::body::whole::{Unfinished, Whole};
use crate::body::{self, AgentBody};

pub(crate) mod answer;
pub(crate) mod edit;
pub(crate) mod hold;
pub(crate) mod recall;
pub(crate) mod rewrite;
pub(crate) mod shape;

/// Receives reports about executed parts of a plan; metrics change immediately.
pub(crate) trait Ledger {
    /// The rule behind this verdict took effect.
    fn applied(&self, verdict: VerdictIndex);
    /// The rule fired but could not take effect.
    fn bypassed(&self, verdict: VerdictIndex, why: String);
    /// The rule changed results of these tools in a model's input.
    fn changed_results(&self, verdict: VerdictIndex, tools: Vec<String>);
    /// A fault held the exchange back for this long.
    fn delayed(&self, by: Duration);
    /// A rule has ended the connection.
    fn ended_by_rule(&self) {}
    /// The exchange waited this long for the upstream.
    fn waited(&self, by: Duration) {
        let _ = by;
    }
    /// From now on, the output tokens in the response are a rule's count.
    fn counted_anew(&self) {}
    /// A rule has read the whole response and did not change it.
    fn tallied(&self, tally: Box<Tally>) {
        drop(tally);
    }
}

/// The context for executing a plan on an exchange.
#[derive(Clone)]
pub(crate) struct FaultContext {
    /// Receives the reports.
    pub ledger: Rc<dyn Ledger>,
    /// The connection to the agent.
    pub agent: AgentSide,
    /// The request's method: a response to HEAD has no body.
    pub method: Method,
    /// Whether the exchange is a message on a WebSocket.
    pub on_websocket: bool,
    /// Seed of synthetic variety (such as slice sizes), from this exchange's draw.
    pub seed: u64,
    /// Seed of synthetic names of the agent's account.
    pub account: u64,
    /// Memory limits for edits of whole bodies.
    pub inspect: Inspect,
}

impl FaultContext {
    /// Reads a whole response body; the time counts as waiting for the upstream.
    pub(crate) async fn collect(&self, body: AgentBody) -> Result<Whole, (AgentBody, Unfinished)> {
        let begun = Instant::now();
        let collected = body::whole::collect(body, &self.inspect).await;
        self.ledger.waited(begun.elapsed());
        collected.map_err(|(rest, why)| {
            let rest = body::boxed(AbortAfterFlush::new(rest, self.agent.clone()));
            (rest, why)
        })
    }
}

/// Reports about one rule's part of a plan while a body passes.
#[derive(Clone)]
pub(crate) struct VerdictReport {
    ledger: Rc<dyn Ledger>,
    verdict: VerdictIndex,
    done: bool,
    reports_bypass: bool,
}

impl VerdictReport {
    pub(crate) fn new(context: &FaultContext, verdict: VerdictIndex) -> Self {
        Self {
            ledger: Rc::clone(&context.ledger),
            verdict,
            done: false,
            reports_bypass: true,
        }
    }

    /// Reports that the rule took effect; only the first call counts.
    pub(crate) fn applied(&mut self) {
        if !std::mem::replace(&mut self.done, true) {
            self.ledger.applied(self.verdict);
        }
    }

    /// Reports that the rule could not take effect; ignored once it has.
    pub(crate) fn bypassed(&mut self, why: impl Into<String>) {
        if !std::mem::replace(&mut self.done, true) && self.reports_bypass {
            self.ledger.bypassed(self.verdict, why.into());
        }
    }

    /// Lets another part of the same rule report a bypass.
    pub(crate) fn without_bypass(mut self) -> Self {
        self.reports_bypass = false;
        self
    }

    /// Reports that the output tokens in the response are the rule's count. Call it before the
    /// agent can have them.
    pub(crate) fn counted_anew(&self) {
        self.ledger.counted_anew();
    }

    /// Reports the tally of a response that the rule has read to its end and did not change.
    pub(crate) fn tallied(&self, tally: Box<Tally>) {
        self.ledger.tallied(tally);
    }

    pub(crate) fn ledger(&self) -> &Rc<dyn Ledger> {
        &self.ledger
    }
}

/// Whether a response can have a body (RFC 9110 §6.4.1).
pub(crate) fn has_body(method: &Method, status: StatusCode) -> bool {
    *method != Method::HEAD
        && !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
        && !(*method == Method::CONNECT && status.is_success())
}

#[cfg(test)]
pub(crate) mod testing;
