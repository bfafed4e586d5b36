//! Tracks message boundaries on a connection, and rejects invalid framing.
//!
//! The tracker is pure, and its result does not depend on how the bytes are split. Accepted bytes
//! pass unchanged. A head or a trailer section is passed only when complete and valid; body bytes
//! are passed as they arrive.

use std::collections::VecDeque;

use super::FramingError;
use super::body::BodyFraming;
use super::casing::names;
use super::head::{HeadScan, RequestLine, SectionHead};

/// Limits of a head and of a trailer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes, including line ends.
    pub header_bytes: usize,
    /// Fields.
    pub header_count: usize,
}

/// The result for some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramingProgress {
    /// How many of the first bytes may be passed on. Pass the others again, together with the bytes
    /// that follow.
    pub passed: usize,
    /// Why the remaining bytes were not passed, if there are any.
    pub next: NextStep,
}

/// The next step after some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Call again with more bytes.
    More,
    /// The response to the latest request decides whether HTTP follows. Continue with
    /// [`Requests::upgraded`] or [`Requests::not_upgraded`].
    Undecided,
    /// All following bytes are rejected.
    Refused(FramingError),
}

#[derive(Debug)]
enum RequestPhase {
    Head,
    Body { body: BodyFraming, upgrade: bool },
    Undecided,
    Switched,
    Refused(FramingError),
}

/// The requests on one connection.
#[derive(Debug)]
pub struct Requests {
    limits: HeadLimits,
    state: RequestPhase,
    scan: HeadScan<RequestLine>,
    original_names: VecDeque<OriginalNames>,
    begun: bool,
    head_refused: bool,
}

/// The names of a request's fields in the agent's casing and order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OriginalNames(Vec<u8>);

impl OriginalNames {
    /// The names, from the first to the last.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let names = self.0.split(|b| *b == b'\n');
        names.take_while(|name| !name.is_empty())
    }
}

impl Requests {
    /// A connection without bytes.
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            state: RequestPhase::Head,
            scan: HeadScan::new(),
            original_names: VecDeque::new(),
            begun: false,
            head_refused: false,
        }
    }

    /// Checks `bytes`, which follow the bytes passed so far.
    pub fn advance(&mut self, bytes: &[u8]) -> FramingProgress {
        let mut passed = 0;
        let next = loop {
            let rest = &bytes[passed..];
            match &mut self.state {
                RequestPhase::Head => match self.scan.advance(rest, self.limits).and_then(accept) {
                    Ok(Some((length, state))) => {
                        self.original_names
                            .push_back(OriginalNames(names(rest, self.scan.fields())));
                        passed += length;
                        self.state = state;
                    }
                    Ok(None) => {
                        self.begun = !rest.is_empty();
                        break NextStep::More;
                    }
                    Err(error) => self.refuse_head(error),
                },
                RequestPhase::Body { body, upgrade } => {
                    let advance = body.advance(rest, self.limits);
                    passed += advance.passed;
                    match advance.is_end {
                        Ok(false) => break NextStep::More,
                        Ok(true) if *upgrade => self.state = RequestPhase::Undecided,
                        Ok(true) => self.state = RequestPhase::Head,
                        Err(error) => self.state = RequestPhase::Refused(error),
                    }
                }
                RequestPhase::Undecided => break NextStep::Undecided,
                RequestPhase::Switched => {
                    passed = bytes.len();
                    break NextStep::More;
                }
                RequestPhase::Refused(error) => break NextStep::Refused(*error),
            }
        };
        FramingProgress { passed, next }
    }

    /// The upgrade was accepted: HTTP/1 ends here.
    pub(crate) fn upgraded(&mut self) {
        if let RequestPhase::Undecided = self.state {
            self.state = RequestPhase::Switched;
        }
    }

    /// The upgrade was not accepted: the next request follows.
    pub(crate) fn not_upgraded(&mut self) {
        if let RequestPhase::Undecided = self.state {
            self.state = RequestPhase::Head;
        }
    }

    /// Rejects the current head and everything after it with `error`.
    pub(crate) fn refuse_head(&mut self, error: FramingError) {
        self.state = RequestPhase::Refused(error);
        self.head_refused = true;
    }

    /// Whether a head was rejected, rather than part of a body.
    pub(crate) fn is_head_refused(&self) -> bool {
        self.head_refused
    }

    /// The field names of the heads that were passed since the last call.
    pub(crate) fn take_names(&mut self) -> impl Iterator<Item = OriginalNames> {
        self.original_names.drain(..)
    }

    /// Whether a head has begun and is incomplete.
    pub(crate) fn is_in_head(&self) -> bool {
        self.begun && matches!(self.state, RequestPhase::Head)
    }

    /// Whether the response to an upgrade request decides what follows.
    pub(crate) fn is_undecided(&self) -> bool {
        matches!(self.state, RequestPhase::Undecided)
    }

    /// Whether everything that follows is rejected.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.state, RequestPhase::Refused(_))
    }
}

/// The result of a complete request head.
fn accept(
    found: Option<(usize, SectionHead<RequestLine>)>,
) -> Result<Option<(usize, RequestPhase)>, FramingError> {
    let Some((length, head)) = found else {
        return Ok(None);
    };
    let Some(line) = head.opening else {
        return Err(FramingError::REQUEST_LINE);
    };
    // Old clients send CONNECT without Host; its target has the same information.
    if line.minor == 1 && head.hosts == 0 && !line.connect {
        return Err(FramingError::MISSING_HOST);
    }
    if line.minor == 0 && head.chunked {
        return Err(FramingError::TRANSFER_ENCODING);
    }
    let upgrade = line.connect || (head.upgrade && line.minor == 1);
    let body = match head.content_length {
        _ if head.chunked => BodyFraming::chunked(),
        Some(bytes) => BodyFraming::Length(bytes),
        None => BodyFraming::Length(0),
    };
    Ok(Some((length, RequestPhase::Body { body, upgrade })))
}

#[cfg(test)]
mod tests;
