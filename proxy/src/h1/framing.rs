//! Where messages begin and end on a connection, and what is refused on the way.
//!
//! The tracker is pure: bytes in, a verdict out, the same for every way the bytes are cut up.
//! What it passes is passed unchanged. A head, and a trailer section, is passed only when it is
//! complete and found good; body bytes are passed as they come.

use std::collections::VecDeque;

use super::FramingError;
use super::body::{Body, Then};
use super::head::{Head, HeadScan, RequestLine};
use super::shapes::names;

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
    /// It hangs on the answer to the latest request whether what follows is HTTP.
    /// Go on with [`Requests::upgraded`] or [`Requests::not_upgraded`].
    Undecided,
    /// What follows is refused, for good.
    Refused(FramingError),
}

/// Where a connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Position {
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
    spelt: VecDeque<Spelt>,
    begun: bool,
    head_refused: bool,
}

/// The names of a request's fields as the agent spelt them, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spelt(Vec<u8>);

impl Spelt {
    /// The names, from the first to the last.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let names = self.0.split(|b| *b == b'\n');
        names.take_while(|name| !name.is_empty())
    }
}

impl Requests {
    /// A connection on which nothing came yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head,
            scan: HeadScan::new(),
            spelt: VecDeque::new(),
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
                        self.spelt.push_back(Spelt(names(rest, self.scan.fields())));
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
    pub(crate) fn upgraded(&mut self) {
        if let State::Undecided = self.state {
            self.state = State::Switched;
        }
    }

    /// The request to change the protocol was not granted: the next request follows.
    pub(crate) fn not_upgraded(&mut self) {
        if let State::Undecided = self.state {
            self.state = State::Head;
        }
    }

    /// Refuses the head that has begun, and everything behind it, for `error`.
    pub(crate) fn refuse_head(&mut self, error: FramingError) {
        self.state = State::Refused(error);
        self.head_refused = true;
    }

    /// Whether it was a head that was refused, and not part of a body.
    pub(crate) fn is_head_refused(&self) -> bool {
        self.head_refused
    }

    /// How the fields of the heads are spelt that were passed since this was last asked.
    pub(crate) fn spelt(&mut self) -> impl Iterator<Item = Spelt> {
        self.spelt.drain(..)
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

#[cfg(test)]
mod tests;
