//! The faults to apply to one exchange.
//!
//! A plan is the only interface between decision and execution. Faults write it ([`crate::fault`]);
//! the proxy executes it and reports which rules it applied. If a fault seems to need an `if` in
//! the proxy's core, extend the plan instead.

use std::time::Duration;

use http::StatusCode;
use squall_dialects::WireReply;
use squall_dialects::model::ModelError;

use crate::allowance::OverAllowance;
use crate::canary::Canary;
use crate::changes::{
    Amount, Injection, McpEdit, Padding, Poisoning, ResultChange, SchemaDrift, Slices, StreamFault,
    Throttle, TlsFailure, Tools, WaitPoint,
};
use crate::dice::Dice;
use crate::payloads::{Chosen, PayloadName};

/// Index of a rule's verdict in an exchange. Each part of a plan refers to its rule by it.
pub type VerdictIndex = u16;

/// The faults to apply to one exchange, each with its rule.
#[derive(Debug, Default)]
pub struct Plan {
    /// Delays before the request is forwarded or the synthetic response is sent.
    pub wait_before: Vec<(VerdictIndex, Duration)>,
    /// Delays between the arrival of the upstream's response head and its delivery.
    pub wait_after: Vec<(VerdictIndex, Duration)>,
    /// Synthetic response or failure; the request does not reach the upstream.
    pub instead: Option<(VerdictIndex, PlannedAnswer)>,
    /// Replaces the upstream's response, which is discarded.
    pub afterwards: Option<(VerdictIndex, Substitute)>,
    /// Changes to the request, in order.
    pub request_edits: Vec<(VerdictIndex, RequestEdit)>,
    /// Changes to the upstream's response, in order.
    pub edits: Vec<(VerdictIndex, Edit)>,
    /// How the response is transferred (for bandwidth, also the request).
    pub shape: Shape,
    /// What happens to a WebSocket's bytes on their way to the agent, in order.
    pub websocket: Vec<(VerdictIndex, SocketFault)>,
    /// Canaries in injected content; planted once the rule is applied.
    pub canaries: Vec<Planting>,
}

/// A canary that a rule injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planting {
    /// The rule's verdict.
    pub by: VerdictIndex,
    /// Which canary.
    pub canary: Canary,
    /// The payload that carries it; `None` for the payload given in the rule.
    pub payload: Option<PayloadName>,
}

impl Plan {
    /// True if the plan does nothing.
    pub fn is_empty(&self) -> bool {
        self.wait_before.is_empty()
            && self.wait_after.is_empty()
            && self.instead.is_none()
            && self.afterwards.is_none()
            && self.request_edits.is_empty()
            && self.edits.is_empty()
            && self.shape.is_empty()
            && self.websocket.is_empty()
    }

    /// Adds a wait; delays of several rules add up. Zero does nothing.
    pub fn wait(&mut self, verdict: VerdictIndex, place: WaitPoint, wait: Duration) {
        match place {
            WaitPoint::Request => self.wait_before.push((verdict, wait)),
            WaitPoint::Response => self.wait_after.push((verdict, wait)),
        }
    }

    /// Whether the synthetic response repeats values from the request's headers.
    pub fn mentions_headers(&self) -> bool {
        let answer = self.instead.as_ref().map(|(_, answer)| answer);
        matches!(answer, Some(PlannedAnswer::ModelError(ModelError::Auth)))
    }

    /// Sends a synthetic response instead of forwarding, unless an earlier rule decides the
    /// response.
    pub fn answer(&mut self, verdict: VerdictIndex, answer: PlannedAnswer) -> Result<(), Bypass> {
        self.answer_is_open()?;
        self.instead = Some((verdict, answer));
        Ok(())
    }

    /// Adds the limit and the wait to the rate limit error, if this rule decides the response with
    /// one.
    pub(crate) fn limited(&mut self, verdict: VerdictIndex, over: OverAllowance) {
        if let Some((by, PlannedAnswer::ModelError(error))) = &mut self.instead
            && *by == verdict
            && let ModelError::RateLimit { .. } = error
        {
            *error = ModelError::RateLimit {
                scope: over.scope,
                retry_after: over.wait,
                figures: Some(over.figures),
            };
        }
    }

    /// Replaces the upstream's response, unless an earlier rule decides the response.
    pub fn substitute(&mut self, verdict: VerdictIndex, by: Substitute) -> Result<(), Bypass> {
        self.answer_is_open()?;
        self.afterwards = Some((verdict, by));
        Ok(())
    }

    /// Changes the request, after the changes of earlier rules.
    pub fn edit_request(&mut self, verdict: VerdictIndex, edit: RequestEdit) {
        self.request_edits.push((verdict, edit));
    }

    /// Draws a canary, adds it to `payload`, and records that the rule plants it.
    pub fn plant(&mut self, by: VerdictIndex, payload: Chosen<'_>, dice: &mut Dice) -> String {
        let canary = Canary::draw(dice);
        self.canaries.push(Planting {
            by,
            canary,
            payload: payload.name,
        });
        canary.carried_by(payload.text)
    }

    /// Changes the upstream's response, after the changes of earlier rules.
    pub fn edit(&mut self, verdict: VerdictIndex, edit: Edit) {
        self.edits.push((verdict, edit));
    }

    /// Changes a model's answer. If several rules decide its content or its end, only the first
    /// applies.
    pub fn edit_answer(&mut self, verdict: VerdictIndex, fault: StreamFault) -> Result<(), Bypass> {
        let decides =
            |edit: &Edit| matches!(edit, Edit::Stream(fault) if fault.decides_the_answer());
        let mut edits = self.edits.iter();
        if fault.decides_the_answer()
            && let Some((first, _)) = edits.find(|(_, edit)| decides(edit))
        {
            return Err(Bypass::Taken(*first, DECIDES));
        }
        self.edit(verdict, Edit::Stream(fault));
        Ok(())
    }

    /// Ends the body early, unless an earlier rule does.
    pub fn cut(&mut self, verdict: VerdictIndex, cut: Cut) -> Result<(), Bypass> {
        place_once(&mut self.shape.cut, verdict, cut, "ends the body early")
    }

    /// Limits the bandwidth to the agent (`down`), to the upstream (`up`) or both, unless an
    /// earlier rule does.
    pub fn throttle(
        &mut self,
        verdict: VerdictIndex,
        throttle: Throttle,
        down: bool,
        up: bool,
    ) -> Result<(), Bypass> {
        let mut placed = Err(Bypass::Taken(verdict, ""));
        for (wanted, slot) in [(down, &mut self.shape.down), (up, &mut self.shape.up)] {
            if wanted {
                let here = place_once(slot, verdict, throttle, "limits the bandwidth");
                placed = if placed.is_ok() { placed } else { here };
            }
        }
        placed
    }

    /// Delivers bodies in pieces, unless an earlier rule does.
    pub fn slice(&mut self, verdict: VerdictIndex, slices: Slices) -> Result<(), Bypass> {
        place_once(&mut self.shape.slices, verdict, slices, "slices the body")
    }

    /// Delays the end of the message, unless an earlier rule does.
    pub fn close_slowly(&mut self, verdict: VerdictIndex, wait: Duration) -> Result<(), Bypass> {
        place_once(&mut self.shape.slow_close, verdict, wait, "closes slowly")
    }

    /// Changes what a WebSocket carries to the agent, if a rule selects one.
    pub(crate) fn change_websocket(&mut self, verdict: VerdictIndex, change: SocketChange) {
        let message = None;
        self.websocket
            .push((verdict, SocketFault { message, change }));
    }

    /// Adds the plan of a fault alone, as it acts on a WebSocket from a message on.
    pub(crate) fn on_websocket(
        &mut self,
        verdict: VerdictIndex,
        message: Option<u64>,
        alone: Self,
    ) {
        let waits = alone.wait_before.into_iter();
        let mut changes: Vec<_> = waits.map(|(_, wait)| SocketChange::Delay(wait)).collect();
        changes.extend(alone.websocket.into_iter().map(|(_, fault)| fault.change));
        if !alone.shape.is_empty() {
            changes.push(SocketChange::Shape(alone.shape));
        }
        let faults = changes.into_iter();
        self.websocket
            .extend(faults.map(|change| (verdict, SocketFault { message, change })));
    }

    /// Removes the parts of the plan that the decided response makes ineffective. Returns the
    /// deciding rule and the rules without any effect. Call it once, after all rules have written.
    pub(crate) fn settle(&mut self) -> Option<(VerdictIndex, Vec<VerdictIndex>)> {
        let (by, forwarded, has_body) = match (&self.instead, &self.afterwards) {
            (Some((by, answer)), _) => (*by, false, answer.has_body()),
            (None, Some((by, Substitute::Answer(answer)))) => (*by, true, answer.has_body()),
            (None, Some((by, Substitute::Reset))) => (*by, true, false),
            (None, Some((_, Substitute::Stale | Substitute::Swapped)) | None) => return None,
        };
        let mut idle: Vec<VerdictIndex> = Vec::new();
        idle.extend(self.edits.drain(..).map(|(verdict, _)| verdict));
        idle.extend(self.websocket.drain(..).map(|(verdict, _)| verdict));
        if !forwarded {
            idle.extend(self.request_edits.drain(..).map(|(verdict, _)| verdict));
            idle.extend(self.wait_after.drain(..).map(|(verdict, _)| verdict));
            idle.extend(self.shape.up.take().map(|(verdict, _)| verdict));
        }
        if !has_body {
            let up = self.shape.up.take();
            idle.extend(self.shape.verdicts());
            self.shape = Shape {
                up,
                ..Shape::default()
            };
        }
        // A rule that limits both directions may remain effective in one of them.
        let at_work = self.shape.verdicts();
        idle.retain(|verdict| !at_work.contains(verdict));
        Some((by, idle))
    }

    fn answer_is_open(&self) -> Result<(), Bypass> {
        let instead = self.instead.as_ref().map(|(verdict, _)| *verdict);
        let afterwards = self.afterwards.as_ref().map(|(verdict, _)| *verdict);
        match instead.or(afterwards) {
            None => Ok(()),
            Some(first) => Err(Bypass::Taken(first, DECIDES)),
        }
    }
}

const DECIDES: &str = "decides the answer";

/// Why a fault has no effect on an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bypass {
    /// An earlier rule already does this.
    Taken(VerdictIndex, &'static str),
    /// The reason, as text.
    Because(String),
}

impl From<&str> for Bypass {
    fn from(why: &str) -> Self {
        Self::Because(why.to_owned())
    }
}

/// Fills a slot that only one rule can have.
fn place_once<T>(
    slot: &mut Option<(VerdictIndex, T)>,
    verdict: VerdictIndex,
    value: T,
    what: &'static str,
) -> Result<(), Bypass> {
    if let Some((first, _)) = slot {
        return Err(Bypass::Taken(*first, what));
    }
    *slot = Some((verdict, value));
    Ok(())
}

/// A synthetic response, or the failure to give one.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedAnswer {
    /// A complete HTTP response.
    Reply(WireReply),
    /// A provider's error, in the format of the exchange's dialect.
    ModelError(ModelError),
    /// A tool's response: plain HTTP, or MCP's format for an MCP call.
    Tool(ToolAnswer),
    /// The 404 of an MCP server that has lost the session.
    SessionExpired,
    /// An MCP server's endless stream of progress notifications at this interval, without a result.
    EndlessProgress(Duration),
    /// A 3xx whose `Location` is the request's own URL, as the agent wrote it.
    RedirectToSelf(StatusCode),
    /// Wait this long, then close without a response (h2: `RST_STREAM` `CANCEL`).
    Hold(Duration),
    /// Reset the connection at once (h2: `RST_STREAM` `REFUSED_STREAM`; CONNECT: before its 200).
    Refuse,
    /// A 502 whose problem body reports that the name could not be resolved.
    DnsFailure,
    /// Fail the intercepted TLS handshake; only at a CONNECT.
    Tls(TlsFailure),
}

impl PlannedAnswer {
    /// Whether the agent gets bytes of it that can be shaped.
    pub fn has_body(&self) -> bool {
        match self {
            Self::Reply(_)
            | Self::ModelError(_)
            | Self::Tool(_)
            | Self::SessionExpired
            | Self::EndlessProgress(_)
            | Self::RedirectToSelf(_)
            | Self::DnsFailure => true,
            Self::Hold(_) | Self::Refuse | Self::Tls(_) => false,
        }
    }
}

/// A synthetic tool response.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// The response in plain HTTP.
    pub plain: WireReply,
    /// The outcome, for formats with their own representation of it.
    pub says: ToolSays,
}

/// The outcome that a synthetic tool response reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSays {
    /// Success with this result.
    Text(String),
    /// Failure with this message; `None`: the format's default message.
    Failure(Option<String>),
    /// An HTTP error with the plain response's status and headers; the body follows the format.
    Status(String),
    /// An error of the protocol around the call. Plain HTTP has none.
    ProtocolError {
        /// JSON-RPC's code.
        code: i64,
        /// What went wrong.
        message: String,
    },
    /// Success without a result.
    Nothing,
    /// Success with a truncated result.
    Broken,
}

/// What replaces an upstream's response.
#[derive(Debug, Clone, PartialEq)]
pub enum Substitute {
    /// A synthetic response: the upstream executed the call, but the agent sees this instead.
    Answer(PlannedAnswer),
    /// Reset the connection (h2: `RST_STREAM` `INTERNAL_ERROR`).
    Reset,
    /// The previous response that this rule saw in this scope.
    Stale,
    /// The latest response to a call with another fingerprint that this rule saw in this scope.
    Swapped,
}

/// A change to a model call's request, which is the input of the model.
/// [`rewrite`](crate::faults::model_input::rewrite) applies it.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestEdit {
    /// Changes the results of these tools that are new in this request.
    Results(Tools, ResultChange),
    /// Injects an instruction into a result of one of these tools.
    Inject(Tools, Injection),
    /// Changes a user message.
    Poison(Poisoning),
    /// Adds filler to the user messages.
    Pad(Padding),
    /// Appends this to the agent's system instructions.
    Contradict(String),
    /// Appends this to the newest user message.
    Attach(String),
}

/// A change to the upstream's response.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Shortens the body; the framing stays valid.
    Truncate(Amount),
    /// Changes one field of a JSON body.
    Drift(SchemaDrift),
    /// Injects an instruction into a tool's response.
    Inject(Injection),
    /// Changes the results of MCP calls.
    Mcp(McpEdit),
    /// Changes or delays a model's answer event by event, through its dialect.
    Stream(StreamFault),
}

/// How bodies are transferred.
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
    /// Where the body ends early.
    pub cut: Option<(VerdictIndex, Cut)>,
}

impl Shape {
    /// True when nothing is shaped.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rules that shape bodies.
    pub fn verdicts(&self) -> Vec<VerdictIndex> {
        let throttles = [&self.down, &self.up]
            .into_iter()
            .flatten()
            .map(|(verdict, _)| *verdict);
        let slices = self.slices.iter().map(|(verdict, _)| *verdict);
        let slow_close = self.slow_close.iter().map(|(verdict, _)| *verdict);
        let cut = self.cut.iter().map(|(verdict, _)| *verdict);
        throttles
            .chain(slices)
            .chain(slow_close)
            .chain(cut)
            .collect()
    }
}

/// A change to what a WebSocket carries to the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SocketFault {
    /// The message from the upstream at which it begins, from 1; `None`: the first, or for a delay every
    /// message.
    pub message: Option<u64>,
    /// What happens.
    pub change: SocketChange,
}

/// What happens to a WebSocket from a message on.
#[derive(Debug, Clone, PartialEq)]
pub enum SocketChange {
    /// The message is delayed, or every message.
    Delay(Duration),
    /// The bytes from the message on are shaped.
    Shape(Shape),
    /// Nothing more reaches the agent.
    HalfOpen,
    /// A Close frame with this code takes the message's place; without a frame for 1006.
    Close(u16),
}

/// A body that ends early.
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
