//! Carries out the parts of a plan that touch answers and bodies.
//!
//! Whoever runs an exchange decides the order; each part here takes an answer and gives one back:
//!
//! ```text
//! agent's request ─▶ rewrite::apply ─▶ upstream
//!
//! upstream's answer ─▶ edit::apply ─▶ shape::apply ─▶ agent
//!                         ▲
//! answer::make ───────────┘  (answers no upstream sent come in here, or go straight to the shape)
//! recall::Recall             (answers kept for `stale` and `swapped`)
//! ```
//!
//! Every part reports to the [`Ledger`] at the moment it takes effect, not when it is set up: a
//! cut behind the end of the body is a rule that was bypassed. What no rule touches stays the
//! upstream's own body, byte for byte and frame for frame.

use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, StatusCode, header};
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

/// Where those who carry out a plan report what they did; metrics move at once.
pub(crate) trait Ledger {
    /// The rule behind this verdict took effect.
    fn applied(&self, verdict: VerdictIndex);
    /// The rule fired but could not take effect.
    fn bypassed(&self, verdict: VerdictIndex, why: String);
    /// The rule changed what a model is told of these tools' results.
    fn changed_results(&self, verdict: VerdictIndex, tools: Vec<String>);
    /// A fault held the exchange back for this long.
    fn delayed(&self, by: Duration);
    /// This long the upstream was waited for.
    fn waited(&self, by: Duration) {
        let _ = by;
    }
    /// The tokens out that an answer announces are a rule's count, from here on.
    fn counted_anew(&self) {}
    /// A rule read all of an answer that it let pass as it came: it need not be read again.
    fn heard(&self, tally: Box<Tally>) {
        drop(tally);
    }
}

/// What the parts of a plan need to know of the exchange they are carried out on.
#[derive(Clone)]
pub(crate) struct FaultContext {
    /// Where they report.
    pub ledger: Rc<dyn Ledger>,
    /// The connection to the agent.
    pub agent: AgentSide,
    /// The request's method: an answer to HEAD has no body.
    pub method: Method,
    /// What made-up variety (the size of slices) hangs on: this exchange's draw.
    pub seed: u64,
    /// What made-up names of the agent's account hang on.
    pub account: u64,
    /// How much may be held back for edits of whole bodies.
    pub inspect: Inspect,
}

impl FaultContext {
    /// Collects an answer that has to be held whole; the time that its upstream takes is not Squall's.
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

/// One rule's part of a plan on its way through a body: whom to report to, and about what.
#[derive(Clone)]
pub(crate) struct VerdictReport {
    ledger: Rc<dyn Ledger>,
    verdict: VerdictIndex,
    done: bool,
    tells_bypass: bool,
}

impl VerdictReport {
    pub(crate) fn new(context: &FaultContext, verdict: VerdictIndex) -> Self {
        Self {
            ledger: Rc::clone(&context.ledger),
            verdict,
            done: false,
            tells_bypass: true,
        }
    }

    /// The rule took effect; said once however often it does.
    pub(crate) fn applied(&mut self) {
        if !std::mem::replace(&mut self.done, true) {
            self.ledger.applied(self.verdict);
        }
    }

    /// The rule could not take effect; means nothing once it has.
    pub(crate) fn bypassed(&mut self, why: impl Into<String>) {
        if !std::mem::replace(&mut self.done, true) && self.tells_bypass {
            self.ledger.bypassed(self.verdict, why.into());
        }
    }

    /// Leaves it to another part of the same rule to say that it was bypassed.
    pub(crate) fn without_bypass(mut self) -> Self {
        self.tells_bypass = false;
        self
    }

    /// The rule counted the tokens out that the answer announces; to be called before the agent can
    /// have them.
    pub(crate) fn counted_anew(&self) {
        self.ledger.counted_anew();
    }

    /// The rule read all of the answer, and let it pass as it came.
    pub(crate) fn heard(&self, tally: Box<Tally>) {
        self.ledger.heard(tally);
    }

    pub(crate) fn ledger(&self) -> &Rc<dyn Ledger> {
        &self.ledger
    }
}

/// Whether an answer can have a body at all (RFC 9110 §6.4.1).
pub(crate) fn has_body(method: &Method, status: StatusCode) -> bool {
    *method != Method::HEAD
        && !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
        && !(*method == Method::CONNECT && status.is_success())
}

/// The body's length as the head declares it.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
pub(crate) mod testing;
