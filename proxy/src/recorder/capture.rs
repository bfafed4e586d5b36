//! Captures an exchange for a recording of its scope or for captured bodies. A worker only stores
//! handles to the bytes and their times; the collector does the rest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use squall_dialects::codec::Coding;
use squall_dialects::stream::{DEFAULT_LIMIT, FrameKind, Framing, Splitter};
use squall_dialects::{AnswerForm, Target};
use squall_journal::record::Outcome;
use squall_journal::redact::Redactor;
use squall_journal::tape::recorded::{Request, is_kept};
use squall_journal::tape::{Answer, Content, Data, Piece, Recorded};
use squall_journal::tape::{exposed, redact};
use squall_profiles::verdict::VerdictOutcome;

use super::ExchangeNote;
use crate::body::buffer::{Buffer, Inspect};
use crate::body::decoding::Decoding;
use crate::tape::Recording;
use crate::tape::key::{self, BODY, Decoded};

/// The bytes of one exchange, both ways.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The recordings of the exchange; empty if only bodies are captured.
    recordings: Vec<Arc<Recording>>,
    /// The note stores the capture too.
    observed: bool,
    method: Method,
    url: String,
    version: Version,
    headers: HeaderMap,
    request: TimedBody,
    answer: Option<AnswerHead>,
    body: TimedBody,
    broken_off: bool,
}

#[derive(Debug)]
struct AnswerHead {
    status: StatusCode,
    headers: HeaderMap,
    at: Instant,
}

/// The start of a body, and the times of its pieces.
#[derive(Debug)]
struct TimedBody {
    bytes: Buffer,
    times: Vec<Instant>,
}

impl TimedBody {
    fn new(room: &Inspect) -> Self {
        Self {
            bytes: Buffer::within(room),
            times: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &Bytes) {
        if self.bytes.push(bytes) > 0 {
            self.times.push(Instant::now());
        }
    }
}

impl Capture {
    /// An empty capture.
    pub(crate) fn new(
        recordings: Vec<Arc<Recording>>,
        observed: bool,
        room: &Inspect,
        head: (&Method, &str, Version, &HeaderMap),
    ) -> Self {
        let (method, url, version, headers) = head;
        Self {
            recordings,
            observed,
            method: method.clone(),
            url: url.to_owned(),
            version,
            headers: headers.clone(),
            request: TimedBody::new(room),
            answer: None,
            body: TimedBody::new(room),
            broken_off: false,
        }
    }

    /// Adds bytes of the request's body.
    pub(crate) fn request(&mut self, bytes: &Bytes) {
        self.request.push(bytes);
    }

    /// Sets the response head that the agent gets.
    pub(crate) fn answer_head(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.answer = Some(AnswerHead {
            status,
            headers: headers.clone(),
            at: Instant::now(),
        });
    }

    /// Adds bytes of the response's body.
    pub(crate) fn answer(&mut self, bytes: &Bytes) {
        self.body.push(bytes);
    }

    /// Records that the response broke off.
    pub(crate) fn broke_off(&mut self) {
        self.broken_off = true;
    }

    /// The redactor, extended by the credentials that either side sent.
    pub(super) fn redactor(&self, redactor: &Redactor) -> Redactor {
        let answer = self
            .answer
            .iter()
            .flat_map(|head| key::fields(&head.headers));
        redactor.and_headers(key::fields(&self.headers).chain(answer))
    }

    /// Redacts the exchange with `redactor`, passes it to its recordings, and returns it if the note
    /// stores it too. `detector` finds exposed secrets.
    pub(super) fn finish(
        self,
        note: &ExchangeNote,
        redactor: &Redactor,
        detector: &Redactor,
    ) -> Option<Arc<Recorded>> {
        let observed = self.observed;
        let recordings = self.recordings.clone();
        let recorded = Arc::new(self.build(note, redactor, detector));
        for recording in recordings {
            recording.keep(&recorded);
        }
        observed.then_some(recorded)
    }

    fn build(self, note: &ExchangeNote, redactor: &Redactor, detector: &Redactor) -> Recorded {
        let dialect = note.dialect.and_then(squall_dialects::of_endpoint);
        let began = note.started;
        let duration_ms = millis(note.duration);
        let sent = self.request.bytes.whole();
        let asked = (!self.request.bytes.is_cut()).then_some(&sent);
        let (_, fingerprint) = key::of(redactor, &self.method, &self.url, &self.headers, asked);
        let (request, decoded) = self.sent(&sent, note);
        let input = dialect.and_then(|it| squall_dialects::user_input(it, &request.body.0));
        let mut recorded = Recorded {
            id: note.id.to_string(),
            scope: note.scope.to_string(),
            started_ms: note.id.started_ms(),
            kind: note.kind,
            dialect: note.dialect.map(str::to_owned),
            outcome: note.outcome,
            request: Request {
                headers: headers(&self.headers, decoded),
                ..request
            },
            fingerprint,
            input,
            answer: None,
            version: format!("{:?}", self.version),
            response_bytes: note.response_bytes,
            duration_ms,
            faults: note
                .verdicts
                .iter()
                .filter(|verdict| verdict.outcome == VerdictOutcome::Applied)
                .map(|verdict| verdict.rule.mode().to_owned())
                .collect(),
            exposed: None,
        };
        let mut framing = None;
        if let Some(head) = &self.answer {
            let target = target_of(&self.url);
            let form = match dialect {
                Some(dialect) => dialect.form(Target::new(target), &head.headers),
                None => AnswerForm::of(&head.headers),
            };
            let broken = self.broken_off
                || (note.outcome == Outcome::UpstreamError && note.upstream_status.is_some());
            framing = match form {
                Some(AnswerForm::Stream(framing)) => Some(framing),
                Some(AnswerForm::Json) | None => None,
            };
            recorded.answer = Some(received(head, &self.body, framing, began, broken));
        }
        if self.observed && note.run.is_some() {
            recorded.exposed = Some(exposed::of(detector, framing, &recorded));
        }
        redact::recorded(redactor, framing, &mut recorded);
        recorded
    }

    /// The request without headers, and whether its body was decoded.
    fn sent(&self, sent: &Bytes, note: &ExchangeNote) -> (Request, bool) {
        let (body, cut, decoded) = match key::decoded(&self.headers, sent) {
            Decoded::AsItIs => (sent.clone(), false, false),
            Decoded::Whole(body) => (body, false, true),
            Decoded::Cut(body) => (body, true, true),
        };
        let request = Request {
            method: self.method.to_string(),
            url: self.url.clone(),
            headers: Vec::new(),
            body: Data(body),
            bytes: note.request_bytes,
            over_limit: self.request.bytes.is_cut() || cut,
        };
        (request, decoded)
    }
}

/// The response as stored: decoded, and event by event for a stream.
fn received(
    head: &AnswerHead,
    body: &TimedBody,
    framing: Option<Framing>,
    began: Instant,
    broken_off: bool,
) -> Answer {
    let mut gathering = Gathering::new(framing, head.at);
    let mut decoding = Decoding::of(Coding::of(&head.headers).ok().flatten());
    for (at, chunk) in body.times.iter().zip(body.bytes.pieces()) {
        decoding.push(chunk, |plain| gathering.push(*at, plain));
    }
    let is_decoded = !matches!(decoding, Decoding::Plain);
    Answer {
        status: head.status.as_u16(),
        headers: headers(&head.headers, is_decoded),
        latency_ms: millis(head.at.saturating_duration_since(began)),
        over_limit: body.bytes.is_cut() || gathering.is_cut,
        content: gathering.finish(),
        broken_off,
    }
}

/// Assembles a body, by events for a stream.
struct Gathering {
    splitter: Option<Splitter>,
    pieces: Vec<(u64, Vec<u8>)>,
    whole: Vec<u8>,
    bytes: usize,
    /// Bytes beyond [`BODY`] were left out.
    is_cut: bool,
    began: Instant,
    last: Instant,
}

impl Gathering {
    fn new(framing: Option<Framing>, began: Instant) -> Self {
        Self {
            splitter: framing.map(|framing| Splitter::new(framing, DEFAULT_LIMIT)),
            pieces: Vec::new(),
            whole: Vec::new(),
            bytes: 0,
            is_cut: false,
            began,
            last: began,
        }
    }

    fn push(&mut self, at: Instant, bytes: &[u8]) {
        let kept = bytes.len().min(BODY - self.bytes);
        self.is_cut |= kept < bytes.len();
        let bytes = &bytes[..kept];
        self.bytes += kept;
        self.last = at;
        match &mut self.splitter {
            None => self.whole.extend_from_slice(bytes),
            Some(splitter) => {
                let frames = splitter.push(bytes);
                self.take(frames);
            }
        }
    }

    fn take(&mut self, frames: Vec<squall_dialects::stream::Frame>) {
        let at = millis(self.last.saturating_duration_since(self.began));
        for frame in frames {
            let is_filler = frame.kind() == FrameKind::Filler;
            match self.pieces.last_mut() {
                Some((_, last)) if is_filler => last.extend_from_slice(frame.bytes()),
                _ => self.pieces.push((at, frame.bytes().to_vec())),
            }
        }
    }

    fn finish(mut self) -> Content {
        let Some(mut splitter) = self.splitter.take() else {
            return Content::Body(Data(self.whole.into()));
        };
        self.take(splitter.finish());
        let pieces = self.pieces.into_iter().map(|(at_ms, data)| Piece {
            at_ms,
            data: Data(data.into()),
        });
        Content::Stream(pieces.collect())
    }
}

/// The headers to store, without connection fields.
fn headers(headers: &HeaderMap, decoded: bool) -> Vec<(String, String)> {
    headers
        .iter()
        .filter(|(name, _)| is_kept(name.as_str(), decoded) && *name != crate::headers::SCOPE)
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect()
}

/// Path and query of a URL.
fn target_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
