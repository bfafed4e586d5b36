//! Where messages begin and end on a connection, and what is refused on the way.
//!
//! The tracker is pure: bytes in, a verdict out, the same for every way the bytes are cut up.
//! What it passes is passed unchanged. A head, and a trailer section, is passed only when it is
//! complete and found good; body bytes are passed as they come.

use std::collections::VecDeque;

use super::FramingError;
use super::body::{BodyFraming, BodyProgress};
use super::head::{HeadScan, RequestLine, SectionHead};
use super::shapes::names;

/// Bounds on a head, and on a trailer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of it, line ends included.
    pub header_bytes: usize,
    /// Fields in it.
    pub header_count: usize,
}

/// What became of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramingProgress {
    /// How many of them, from the first, may be passed on. The others have to be shown again, with
    /// what comes behind them.
    pub passed: usize,
    /// Why the others may not, if there are others.
    pub next: NextStep,
}

/// What is to be done after some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Come again with more.
    More,
    /// It hangs on the answer to the latest request whether what follows is HTTP.
    /// Go on with [`Requests::upgraded`] or [`Requests::not_upgraded`].
    Undecided,
    /// What follows is refused, for good.
    Refused(FramingError),
}

/// Where a connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestPosition {
    /// Before a message.
    #[default]
    Between,
    /// Within a head.
    Head,
    /// Within a body, or its trailers.
    Body,
    /// Behind a request to change the protocol that is not answered yet.
    Undecided,
    /// In another protocol: everything passes.
    Switched,
    /// Behind the last byte that will be passed.
    Refused,
}

#[derive(Debug)]
enum RequestPhase {
    Head,
    Body { body: BodyFraming, upgrade: bool },
    Undecided,
    Switched,
    Refused(FramingError),
}

impl RequestPhase {
    fn position(&self, begun: bool) -> RequestPosition {
        match self {
            Self::Head if begun => RequestPosition::Head,
            Self::Head => RequestPosition::Between,
            Self::Body { .. } => RequestPosition::Body,
            Self::Undecided => RequestPosition::Undecided,
            Self::Switched => RequestPosition::Switched,
            Self::Refused(_) => RequestPosition::Refused,
        }
    }
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
    /// A connection on which nothing came yet.
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

    /// Looks at `bytes`, which begin where the bytes passed so far end.
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
                    match advance.then {
                        Ok(BodyProgress::More) => break NextStep::More,
                        Ok(BodyProgress::End) if *upgrade => self.state = RequestPhase::Undecided,
                        Ok(BodyProgress::End) => self.state = RequestPhase::Head,
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

    /// The request to change the protocol was granted: what follows is not HTTP/1.
    pub(crate) fn upgraded(&mut self) {
        if let RequestPhase::Undecided = self.state {
            self.state = RequestPhase::Switched;
        }
    }

    /// The request to change the protocol was not granted: the next request follows.
    pub(crate) fn not_upgraded(&mut self) {
        if let RequestPhase::Undecided = self.state {
            self.state = RequestPhase::Head;
        }
    }

    /// Refuses the head that has begun, and everything behind it, for `error`.
    pub(crate) fn refuse_head(&mut self, error: FramingError) {
        self.state = RequestPhase::Refused(error);
        self.head_refused = true;
    }

    /// Whether it was a head that was refused, and not part of a body.
    pub(crate) fn is_head_refused(&self) -> bool {
        self.head_refused
    }

    /// The field names of the heads that were passed since this was last asked.
    pub(crate) fn take_names(&mut self) -> impl Iterator<Item = OriginalNames> {
        self.original_names.drain(..)
    }

    /// Where the connection is after the last bytes.
    pub fn position(&self) -> RequestPosition {
        self.state.position(self.begun)
    }
}

/// What a complete request head leads to.
fn accept(
    found: Option<(usize, SectionHead<RequestLine>)>,
) -> Result<Option<(usize, RequestPhase)>, FramingError> {
    let Some((length, head)) = found else {
        return Ok(None);
    };
    let Some(line) = head.opening else {
        return Err(FramingError::RequestLine);
    };
    // Old clients send CONNECT without Host, and its target says it all.
    if line.minor == 1 && head.hosts == 0 && !line.connect {
        return Err(FramingError::MissingHost);
    }
    if line.minor == 0 && head.chunked {
        return Err(FramingError::TransferEncoding);
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
