//! Where messages begin and end on a connection, and what is refused on the way.
//!
//! Both trackers are pure: bytes in, a verdict out, the same for every way the bytes are cut up.
//! What they pass is passed unchanged. A head, and a trailer section, is passed only when it is
//! complete and found good; body bytes are passed as they come.

use http::Method;

use super::FramingError;
use super::body::{Advance, Body, Then};
use super::head::{Head, HeadScan, RequestLine, StatusLine};

/// Bounds on a head, and on a trailer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of it, line ends included.
    pub header_bytes: usize,
    /// Fields in it.
    pub header_count: usize,
}

/// What became of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How many of them, from the first, may be passed on. The others have to be shown again, with
    /// what comes behind them.
    pub passed: usize,
    /// Why the others may not, if there are others.
    pub next: Next,
}

/// What is to be done after some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Come again with more.
    More,
    /// Requests only: it hangs on the answer to the latest request whether what follows is HTTP.
    /// Go on with [`Requests::upgraded`] or [`Requests::not_upgraded`].
    Undecided,
    /// What follows is refused, for good.
    Refused(FramingError),
}

/// Where a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Before a message.
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
enum State {
    Head,
    Body { body: Body, upgrade: bool },
    Undecided,
    Switched,
    Refused(FramingError),
}

impl State {
    fn position(&self, begun: bool) -> Position {
        match self {
            Self::Head if begun => Position::Head,
            Self::Head => Position::Between,
            Self::Body { .. } => Position::Body,
            Self::Undecided => Position::Undecided,
            Self::Switched => Position::Switched,
            Self::Refused(_) => Position::Refused,
        }
    }
}

/// The requests on one connection.
#[derive(Debug)]
pub struct Requests {
    limits: Limits,
    state: State,
    scan: HeadScan<RequestLine>,
    begun: bool,
    head_refused: bool,
}

impl Requests {
    /// A connection on which nothing came yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head,
            scan: HeadScan::new(),
            begun: false,
            head_refused: false,
        }
    }

    /// Looks at `bytes`, which begin where the bytes passed so far end.
    pub fn advance(&mut self, bytes: &[u8]) -> Progress {
        let mut passed = 0;
        let next = loop {
            let rest = &bytes[passed..];
            match &mut self.state {
                State::Head => match self.scan.advance(rest, self.limits).and_then(accept) {
                    Ok(Some((length, state))) => {
                        passed += length;
                        self.state = state;
                    }
                    Ok(None) => {
                        self.begun = !rest.is_empty();
                        break Next::More;
                    }
                    Err(error) => self.refuse_head(error),
                },
                State::Body { body, upgrade } => {
                    let advance = body.advance(rest, self.limits);
                    passed += advance.passed;
                    match advance.then {
                        Ok(Then::More) => break Next::More,
                        Ok(Then::End) if *upgrade => self.state = State::Undecided,
                        Ok(Then::End) => self.state = State::Head,
                        Err(error) => self.state = State::Refused(error),
                    }
                }
                State::Undecided => break Next::Undecided,
                State::Switched => {
                    passed = bytes.len();
                    break Next::More;
                }
                State::Refused(error) => break Next::Refused(*error),
            }
        };
        Progress { passed, next }
    }

    /// The request to change the protocol was granted: what follows is not HTTP/1.
    pub fn upgraded(&mut self) {
        if let State::Undecided = self.state {
            self.state = State::Switched;
        }
    }

    /// The request to change the protocol was not granted: the next request follows.
    pub fn not_upgraded(&mut self) {
        if let State::Undecided = self.state {
            self.state = State::Head;
        }
    }

    /// Refuses the head that has begun, and everything behind it, for `error`.
    pub fn refuse_head(&mut self, error: FramingError) {
        self.state = State::Refused(error);
        self.head_refused = true;
    }

    /// Whether it was a head that was refused, and not part of a body.
    pub fn is_head_refused(&self) -> bool {
        self.head_refused
    }

    /// Where the connection is after the last bytes.
    pub fn position(&self) -> Position {
        self.state.position(self.begun)
    }
}

/// What a complete request head leads to.
fn accept(
    found: Option<(usize, Head<RequestLine>)>,
) -> Result<Option<(usize, State)>, FramingError> {
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
        _ if head.chunked => Body::chunked(),
        Some(bytes) => Body::Length(bytes),
        None => Body::Length(0),
    };
    Ok(Some((length, State::Body { body, upgrade })))
}

/// What the request in flight allows its response to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::h1) enum Expected {
    /// No body, whatever the head says.
    Head,
    /// A tunnel when it succeeds.
    Connect,
    /// As the head says.
    Plain,
}

impl From<&Method> for Expected {
    fn from(method: &Method) -> Self {
        match *method {
            Method::HEAD => Self::Head,
            Method::CONNECT => Self::Connect,
            _ => Self::Plain,
        }
    }
}

/// The responses on one connection, of which one request at a time is in flight.
#[derive(Debug)]
pub struct Responses {
    limits: Limits,
    state: State,
    scan: HeadScan<StatusLine>,
    expected: Option<Expected>,
    begun: bool,
}

impl Responses {
    /// A connection on which nothing was asked yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head,
            scan: HeadScan::new(),
            expected: None,
            begun: false,
        }
    }

    /// A request with this method is about to be sent: the next response answers it.
    pub fn expect(&mut self, method: &Method) {
        self.expect_as(method.into());
    }

    pub(in crate::h1) fn expect_as(&mut self, expected: Expected) {
        self.expected = Some(expected);
    }

    /// Looks at `bytes`, which begin where the bytes passed so far end.
    pub fn advance(&mut self, bytes: &[u8]) -> Progress {
        let mut passed = 0;
        let next = loop {
            let rest = &bytes[passed..];
            match &mut self.state {
                State::Head => match self.head(rest) {
                    Ok(Some((length, state))) => {
                        passed += length;
                        self.state = state;
                    }
                    Ok(None) => {
                        self.begun = !rest.is_empty();
                        break Next::More;
                    }
                    Err(error) => self.state = State::Refused(error),
                },
                State::Body { body, .. } => {
                    let Advance { passed: more, then } = body.advance(rest, self.limits);
                    passed += more;
                    match then {
                        Ok(Then::More) => break Next::More,
                        Ok(Then::End) => self.state = State::Head,
                        Err(error) => self.state = State::Refused(error),
                    }
                }
                State::Undecided | State::Switched => {
                    passed = bytes.len();
                    break Next::More;
                }
                State::Refused(error) => break Next::Refused(*error),
            }
        };
        Progress { passed, next }
    }

    /// Whether the latest request is answered to the end, as far as framing tells.
    ///
    /// A body that lasts until the connection closes is complete with [`Self::close`] only.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Head) && self.expected.is_none()
    }

    /// The connection was closed by a FIN: the end of a body that lasts until then.
    pub fn close(&mut self) {
        if let State::Body {
            body: Body::UntilClose,
            ..
        } = self.state
        {
            self.state = State::Head;
        }
    }

    /// Where the connection is after the last bytes.
    pub fn position(&self) -> Position {
        self.state.position(self.begun)
    }

    fn head(&mut self, rest: &[u8]) -> Result<Option<(usize, State)>, FramingError> {
        let expected = match self.expected {
            _ if rest.is_empty() => return Ok(None),
            None => return Err(FramingError::Unsolicited),
            Some(expected) => expected,
        };
        let Some((length, head)) = self.scan.advance(rest, self.limits)? else {
            return Ok(None);
        };
        let Some(line) = head.opening else {
            return Err(FramingError::StatusLine);
        };
        if line.minor == 0 && head.chunked {
            return Err(FramingError::TransferEncoding);
        }
        let none = Body::Length(0);
        let body = match (line.status, expected) {
            // The final response is still to come.
            (100 | 102..=199, _) => return Ok(Some((length, State::Head))),
            (101, _) | (200..=299, Expected::Connect) => {
                self.expected = None;
                return Ok(Some((length, State::Switched)));
            }
            (204 | 304, _) | (_, Expected::Head) => none,
            _ if head.chunked => Body::chunked(),
            _ => head.content_length.map_or(Body::UntilClose, Body::Length),
        };
        self.expected = None;
        Ok(Some((
            length,
            State::Body {
                body,
                upgrade: false,
            },
        )))
    }
}

#[cfg(test)]
mod tests;
