//! An answer's bytes as they come, read document by document: a whole answer at its end, events of a
//! stream as soon as they are there.

use crate::answer::{AnswerForm, Event};
use crate::dialect::Dialect;
use crate::json::{Document, close_string};
use crate::model::Reading;
use crate::stream::{Frame, Framing, Splitter};

/// Bytes of an answer that is one JSON document, up to which it is read; a longer one is not.
pub(crate) const ANSWER_LIMIT: usize = 1 << 20;

/// Bytes of one event of a stream, up to which it is read; a longer one is passed over.
pub(crate) const EVENT_LIMIT: usize = 256 << 10;

/// Reads an answer from a copy of its bytes: never fails, never keeps more than its limits.
#[derive(Debug)]
pub struct AnswerReader {
    dialect: &'static dyn Dialect,
    state: State,
}

/// An answer as far as it has come.
#[derive(Debug)]
enum State {
    /// Nothing that can be read, or nothing more.
    Unread,
    Json(Vec<u8>),
    Stream(Framing, Splitter),
}

impl AnswerReader {
    /// Of an answer in this form; `None`: nothing is read.
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

    /// Some bytes of the answer's body, without content coding.
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

    /// The last bytes of an answer of which some before were left out: read from the first event that
    /// is known to begin, in framings where that can be told.
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

    /// The answer is over: a whole one is read now. Nothing that is pushed later is read.
    pub fn end(&mut self, each: impl FnMut(&Reading<'_>)) {
        match std::mem::replace(&mut self.state, State::Unread) {
            State::Unread => {}
            State::Json(body) => self.document(body, each),
            State::Stream(_, mut splitter) => self.events(&splitter.finish(), each),
        }
    }

    /// Reads a whole answer; of one that broke off what has come of it.
    fn document(&self, mut body: Vec<u8>, mut each: impl FnMut(&Reading<'_>)) {
        if let Ok(document) = Document::parse(&body) {
            each(&self.dialect.read(Event::unnamed(&document)));
            return;
        }
        close_string(&mut body);
        if let Some(document) = Document::parse_prefix(&body) {
            let mut reading = self.dialect.read(Event::unnamed(&document));
            // It has not ended, whatever it says of that at its beginning.
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

/// Where an event begins for sure in a stretch of a stream.
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
