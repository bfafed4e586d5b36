//! What will be done to one exchange.
//!
//! A plan is the whole interface between deciding and doing: faults write it ([`crate::fault`]),
//! the proxy carries it out and reports back which rules it could apply. If a fault needs an `if`
//! in the proxy's core, the plan lacks a word.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use squall_dialects::model::ModelError;

use crate::fault::{SchemaDrift, Slices, StreamFault, Throttle, TlsFailure};
use crate::trigger::NotDrawn;

/// A rule's place in [`Plan::verdicts`]; what a part of the plan points back to.
pub type VerdictIndex = u16;

/// What will be done to one exchange, and which rules said so.
#[derive(Debug, Default)]
pub struct Plan {
    /// One entry per eligible rule, in order of precedence.
    pub verdicts: Vec<Verdict>,
    /// Waits before the request is forwarded (or the made-up answer is sent).
    pub wait_before: Vec<(VerdictIndex, Duration)>,
    /// Waits after the upstream's head has come, before it is passed on.
    pub wait_after: Vec<(VerdictIndex, Duration)>,
    /// The exchange is answered or failed without reaching the upstream.
    pub instead: Option<(VerdictIndex, Answer)>,
    /// The upstream is reached, its answer thrown away, and this given instead.
    pub afterwards: Option<(VerdictIndex, Substitute)>,
    /// Changes to the upstream's answer, in order.
    pub edits: Vec<(VerdictIndex, Edit)>,
    /// What the transport does with the answer (and, for bandwidth, with the request).
    pub shape: Shape,
}

impl Plan {
    /// True when nothing at all will be done.
    pub fn is_empty(&self) -> bool {
        self.wait_before.is_empty()
            && self.wait_after.is_empty()
            && self.instead.is_none()
            && self.afterwards.is_none()
            && self.edits.is_empty()
            && self.shape.is_empty()
    }
}

/// What became of one eligible rule in one exchange.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The rule.
    pub rule: Arc<crate::rule::Rule>,
    /// What became of it.
    pub outcome: Outcome,
    /// Which matching exchange of the scope this was for the rule, from 1.
    pub ordinal: u64,
    /// The draw in parts per million and what it had to be below, when one was made.
    pub drawn: Option<Draw>,
}

/// A draw and its bar, both in hits per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// What was drawn, 0 to 999 999.
    pub value: u32,
    /// The rule fires when `value` is below this.
    pub below: u32,
}

/// What became of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its trigger did not fire, and why.
    NotDrawn(NotDrawn),
    /// It fired and is in the plan, but has not been carried out yet.
    Chosen,
    /// It was carried out.
    Applied,
    /// It fired but could not be carried out, and why.
    Bypassed(String),
}

/// An answer (or the lack of one) that Squall makes up.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A complete HTTP response.
    Reply(Reply),
    /// A provider's own error, to be put into the words of the exchange's dialect.
    ModelError(ModelError),
    /// A 3xx whose `Location` is the request's own URL, as the agent wrote it.
    RedirectToSelf(StatusCode),
    /// Hold for this long, then close without an answer (h2: `RST_STREAM` `CANCEL`).
    Hold(Duration),
    /// Reset the connection at once (h2: `RST_STREAM` `REFUSED_STREAM`; CONNECT: before its 200).
    Refuse,
    /// A 502 whose problem body says that the name could not be resolved.
    DnsFailure,
    /// Fail the intercepted TLS handshake; only at a CONNECT.
    Tls(TlsFailure),
}

/// A complete response that no upstream sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Status.
    pub status: StatusCode,
    /// Headers, `content-type` included; `content-length` is added when it is sent.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// What is given in place of an upstream's answer once it has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Substitute {
    /// A made-up answer: the upstream did it, the agent hears that it failed.
    Answer(Answer),
    /// Reset the connection (h2: `RST_STREAM` `INTERNAL_ERROR`).
    Reset,
    /// The previous answer that this rule saw in this scope.
    Stale,
    /// The latest answer that this rule saw to another call (another fingerprint) in this scope.
    Swapped,
}

/// A change to the upstream's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Valid framing, body cut short.
    Truncate(Amount),
    /// One field of a JSON body changed.
    Drift(SchemaDrift),
    /// A model's answer changed or paced event by event, through its dialect.
    Stream(StreamFault),
}

/// How much of a body is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// That many bytes.
    Bytes(u64),
    /// That share, in parts per million.
    Share(u32),
}

/// What the transport does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// Bandwidth towards the agent.
    pub down: Option<(VerdictIndex, Throttle)>,
    /// Bandwidth towards the upstream.
    pub up: Option<(VerdictIndex, Throttle)>,
    /// Small writes with pauses.
    pub slices: Option<(VerdictIndex, Slices)>,
    /// Wait between the last body byte and the end of the message.
    pub slow_close: Option<(VerdictIndex, Duration)>,
    /// Where the body ends before its time.
    pub cut: Option<(VerdictIndex, Cut)>,
}

impl Shape {
    /// True when nothing is shaped.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A body that ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Encoded body bytes that still reach the agent.
    pub after_bytes: u64,
    /// How it ends.
    pub ending: Ending,
}

/// How a connection ends under a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// FIN with the framing incomplete (h2: `RST_STREAM` `INTERNAL_ERROR`).
    Close,
    /// RST (h2: `RST_STREAM` `INTERNAL_ERROR`).
    Reset,
}
