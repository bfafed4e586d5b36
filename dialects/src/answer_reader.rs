//! Reads the bytes of a response document by document: a single document at its end, events of a stream as soon as
//! they are complete.

use crate::answer::{AnswerForm, Event};
use crate::dialect::Dialect;
use crate::json::{Document, close_string};
use crate::model::Reading;
use crate::stream::{Frame, Framing, Splitter};

/// Longest JSON document that is read, in bytes; a longer one is ignored.
pub(crate) const ANSWER_LIMIT: usize = 1 << 20;

/// Longest event that is read, in bytes; a longer one is skipped.
pub(crate) const EVENT_LIMIT: usize = 256 << 10;

/// Reads a response from a copy of its bytes. It never fails and never buffers more than its limits.
#[derive(Debug)]
pub struct AnswerReader {
    dialect: &'static dyn Dialect,
    state: State,
}

/// The part of a response that was received.
#[derive(Debug)]
enum State {
    /// Unreadable, or reading has ended.
    Unread,
    Json(Vec<u8>),
    Stream(Framing, Splitter),
}

impl AnswerReader {
    /// A reader for a response of this form; `None`: nothing is read.
    pub fn new(dialect: &'static dyn Dialect, form: Option<AnswerForm>) -> Self {
        let state = match form {
            Some(AnswerForm::Json) => State::Json(Vec::new()),
            Some(AnswerForm::Stream(framing)) => {
                State::Stream(framing, Splitter::new(framing, EVENT_LIMIT))
            }
            None => State::Unread,
        };
        Self { dialect, state }
    }

    /// Reads a chunk of the response body, without content coding.
    pub fn push(&mut self, chunk: &[u8], each: impl FnMut(&Reading<'_>)) {
        match &mut self.state {
            State::Unread => {}
            State::Json(body) if body.len() + chunk.len() > ANSWER_LIMIT => {
                self.state = State::Unread;
            }
            State::Json(body) => body.extend_from_slice(chunk),
            State::Stream(_, splitter) => {
                let frames = splitter.push(chunk);
                self.events(&frames, each);
            }
        }
    }

    /// Reads the last bytes of a response after a gap. Starts at the first certain start of an event, if the
    /// framing has one.
    pub fn resume(&mut self, rest: &[u8], each: impl FnMut(&Reading<'_>)) {
        let begin = match &self.state {
            State::Stream(framing, _) => Some(*framing).zip(next_event(*framing, rest)),
            State::Unread | State::Json(_) => None,
        };
        self.state = State::Unread;
        if let Some((framing, begin)) = begin {
            self.state = State::Stream(framing, Splitter::new(framing, EVENT_LIMIT));
            self.push(&rest[begin..], each);
        }
    }

    /// Ends the response and reads it if it is one document. Later chunks are ignored.
    pub fn end(&mut self, each: impl FnMut(&Reading<'_>)) {
        match std::mem::replace(&mut self.state, State::Unread) {
            State::Unread => {}
            State::Json(body) => self.document(body, each),
            State::Stream(_, mut splitter) => self.events(&splitter.finish(), each),
        }
    }

    /// Reads a single document; after an abort, the part that was received.
    fn document(&self, mut body: Vec<u8>, mut each: impl FnMut(&Reading<'_>)) {
        if let Ok(document) = Document::parse(&body) {
            each(&self.dialect.read(Event::unnamed(&document)));
            return;
        }
        close_string(&mut body);
        if let Some(document) = Document::parse_prefix(&body) {
            let mut reading = self.dialect.read(Event::unnamed(&document));
            // A truncated answer has not ended, even if its start contains a finish reason.
            reading.finishes.clear();
            each(&reading);
        }
    }

    fn events(&self, frames: &[Frame], mut each: impl FnMut(&Reading<'_>)) {
        for frame in frames {
            if let Some(data) = frame.data()
                && let Ok(document) = Document::parse(&data)
            {
                each(&self.dialect.read(Event::of(frame, &document)));
            }
        }
    }
}

/// The first certain start of an event in a part of a stream.
fn next_event(framing: Framing, rest: &[u8]) -> Option<usize> {
    let behind = |end: &[u8]| {
        let mut stretches = rest.windows(end.len());
        stretches
            .position(|bytes| bytes == end)
            .map(|at| at + end.len())
    };
    match framing {
        Framing::Sse => behind(b"\n\n").into_iter().chain(behind(b"\r\n\r\n")).min(),
        Framing::Lines => behind(b"\n"),
        Framing::Array | Framing::AwsEvents | Framing::AwsChunks => None,
    }
}
