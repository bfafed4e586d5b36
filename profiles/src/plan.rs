//! What will be done to one exchange.
//!
//! A plan is the whole interface between deciding and doing: faults write it ([`crate::fault`]),
//! the proxy carries it out and reports back which rules it could apply. If a fault needs an `if`
//! in the proxy's core, the plan lacks a word.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use squall_dialects::model::ModelError;

use crate::allowance::OverAllowance;
use crate::canary::Canary;
use crate::changes::{
    Amount, Injection, McpEdit, Padding, Poisoning, ResultChange, SchemaDrift, Slices, StreamFault,
    Throttle, TlsFailure, Tools, WaitPoint,
};
use crate::dice::Dice;
use crate::payloads::{Chosen, PayloadName};

/// A rule's place among the verdicts of an exchange; what a part of the plan points back to.
pub type VerdictIndex = u16;

/// What will be done to one exchange, and which rules said so.
#[derive(Debug, Default)]
pub struct Plan {
    /// Waits before the request is forwarded or the synthetic response is sent.
    pub wait_before: Vec<(VerdictIndex, Duration)>,
    /// Waits after the upstream's head has come, before it is passed on.
    pub wait_after: Vec<(VerdictIndex, Duration)>,
    /// The exchange is answered or failed without reaching the upstream.
    pub instead: Option<(VerdictIndex, Answer)>,
    /// The upstream is reached, its answer thrown away, and this given instead.
    pub afterwards: Option<(VerdictIndex, Substitute)>,
    /// Changes to the request on its way upstream, in order.
    pub request_edits: Vec<(VerdictIndex, RequestEdit)>,
    /// Changes to the upstream's answer, in order.
    pub edits: Vec<(VerdictIndex, Edit)>,
    /// What the transport does with the answer (and, for bandwidth, with the request).
    pub shape: Shape,
    /// Canaries in what rules put in: planted once the rule is applied.
    pub canaries: Vec<Planting>,
}

/// A canary that a rule puts before the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planting {
    /// The rule's verdict.
    pub by: VerdictIndex,
    /// Which canary.
    pub canary: Canary,
    /// The payload that carries it; `None` for the only one that is given in the rule.
    pub payload: Option<PayloadName>,
}

impl Plan {
    /// True when nothing at all will be done.
    pub fn is_empty(&self) -> bool {
        self.wait_before.is_empty()
            && self.wait_after.is_empty()
            && self.instead.is_none()
            && self.afterwards.is_none()
            && self.request_edits.is_empty()
            && self.edits.is_empty()
            && self.shape.is_empty()
    }

    /// Adds a wait; delays of several rules add up. Zero does nothing.
    pub fn wait(&mut self, verdict: VerdictIndex, place: WaitPoint, wait: Duration) {
        match place {
            WaitPoint::Request => self.wait_before.push((verdict, wait)),
            WaitPoint::Response => self.wait_after.push((verdict, wait)),
        }
    }

    /// Whether the made-up answer mentions what stands in the request's headers.
    pub fn mentions_headers(&self) -> bool {
        let answer = self.instead.as_ref().map(|(_, answer)| answer);
        matches!(answer, Some(Answer::ModelError(ModelError::Auth)))
    }

    /// Answers without reaching the upstream, unless an earlier rule decides the answer.
    pub fn answer(&mut self, verdict: VerdictIndex, answer: Answer) -> Result<(), Bypass> {
        self.answer_is_open()?;
        self.instead = Some((verdict, answer));
        Ok(())
    }

    /// Tells the agent of a limit, if this rule decides the answer with one, what is limited and
    /// for how long.
    pub(crate) fn limited(&mut self, verdict: VerdictIndex, over: OverAllowance) {
        if let Some((by, Answer::ModelError(error))) = &mut self.instead
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

    /// Gives something else once the upstream has answered, unless an earlier rule decides the
    /// answer.
    pub fn substitute(&mut self, verdict: VerdictIndex, by: Substitute) -> Result<(), Bypass> {
        self.answer_is_open()?;
        self.afterwards = Some((verdict, by));
        Ok(())
    }

    /// Changes the request, after the changes of earlier rules.
    pub fn edit_request(&mut self, verdict: VerdictIndex, edit: RequestEdit) {
        self.request_edits.push((verdict, edit));
    }

    /// Draws a canary, lets `payload` carry it, and notes that the rule plants it.
    pub fn plant(&mut self, by: VerdictIndex, payload: Chosen<'_>, dice: &mut Dice) -> String {
        let canary = Canary::draw(dice);
        self.canaries.push(Planting {
            by,
            canary,
            payload: payload.name,
        });
        canary.carried_by(payload.text)
    }

    /// Changes the upstream's answer, after the changes of earlier rules.
    pub fn edit(&mut self, verdict: VerdictIndex, edit: Edit) {
        self.edits.push((verdict, edit));
    }

    /// Changes a model's answer. Of several rules that decide what it says or how it ends, the first
    /// does.
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

    /// Limits the bandwidth to the agent (`down`), to the upstream (`up`) or both, where no earlier
    /// rule does.
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

    /// Takes out what an answer decided by a rule leaves nothing to do for. Gives that rule and those that are left
    /// without an effect. Called once all rules have written.
    pub(crate) fn settle(&mut self) -> Option<(VerdictIndex, Vec<VerdictIndex>)> {
        let (by, forwarded, has_body) = match (&self.instead, &self.afterwards) {
            (Some((by, answer)), _) => (*by, false, answer.has_body()),
            (None, Some((by, Substitute::Answer(answer)))) => (*by, true, answer.has_body()),
            (None, Some((by, Substitute::Reset))) => (*by, true, false),
            (None, Some((_, Substitute::Stale | Substitute::Swapped)) | None) => return None,
        };
        let mut idle: Vec<VerdictIndex> = Vec::new();
        idle.extend(self.edits.drain(..).map(|(verdict, _)| verdict));
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
        // A rule that limits both ways may still have its way in one of them.
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
    /// For this reason.
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

/// An answer (or the lack of one) that Squall makes up.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A complete HTTP response.
    Reply(Reply),
    /// A provider's own error, to be put into the words of the exchange's dialect.
    ModelError(ModelError),
    /// A tool's answer: as plain HTTP has it, or in MCP's own form for an MCP call.
    Tool(ToolAnswer),
    /// What an MCP server says that has lost the session: 404.
    SessionExpired,
    /// An MCP server's stream of notifications that a call is being worked on, so far apart, and
    /// never a result.
    EndlessProgress(Duration),
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

impl Answer {
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

/// A tool's answer that no tool gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// As plain HTTP has it.
    pub plain: Reply,
    /// What it says, for forms that have words of their own for that.
    pub says: ToolSays,
}

/// What a tool's made-up answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSays {
    /// It was done, and this came of it.
    Text(String),
    /// It failed: the model is told so. `None`: in the form's own words.
    Failure(Option<String>),
    /// An error of HTTP, with the plain answer's status and headers; the body in the form's words.
    Status(String),
    /// An error of the protocol around the call. Plain HTTP has none.
    ProtocolError {
        /// JSON-RPC's code.
        code: i64,
        /// What went wrong.
        message: String,
    },
    /// It was done, and nothing came of it.
    Nothing,
    /// It was done, but what came of it breaks off.
    Broken,
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

/// A change to a model call's request: to what the model is to read.
/// [`rewrite`](crate::faults::model_input::rewrite) makes it.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestEdit {
    /// The results of these tools that the model has not seen yet change.
    Results(Tools, ResultChange),
    /// An instruction is put into one of these tools' results.
    Inject(Tools, Injection),
    /// A message of the user's says something else.
    Poison(Poisoning),
    /// Filler is added to the user's messages.
    Pad(Padding),
    /// This is added to the agent's own instructions.
    Contradict(String),
    /// This is added to the user's newest message.
    Attach(String),
}

/// A change to the upstream's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Valid framing, body cut short.
    Truncate(Amount),
    /// One field of a JSON body changed.
    Drift(SchemaDrift),
    /// An instruction put into a tool's answer.
    Inject(Injection),
    /// The answers to MCP's calls changed.
    Mcp(McpEdit),
    /// A model's answer changed or paced event by event, through its dialect.
    Stream(StreamFault),
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

    /// The rules that shape.
    fn verdicts(&self) -> Vec<VerdictIndex> {
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
