//! HTTP exchanges of archives and cassettes, prepared like those of recordings.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use squall_dialects::codec::{Coding, Decoder};
use squall_dialects::stream::{DEFAULT_LIMIT, FrameKind, Framing, Splitter};
use squall_dialects::{AnswerForm, Target};
use squall_journal::record::{Kind, Outcome};
use squall_journal::tape::recorded::{Request, is_kept};
use squall_journal::tape::{Answer, Content, Data, Piece, Recorded, Session, redact};
use squall_profiles::facts::CanonicalUrl;

use super::{ImportOptions, Imported};

/// Most bytes of decoded bodies in one import.
const DECODED: usize = 64 << 20;

/// The exchanges of one file.
pub(super) struct HttpImport<'o> {
    options: ImportOptions<'o>,
    /// Bytes that may still be decoded.
    left: usize,
    session: Session,
    imported: Imported,
}

/// An exchange as a file has it.
#[derive(Debug, Default)]
pub(super) struct HttpExchange {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) http2: bool,
    pub(super) request: HttpMessage,
    pub(super) response: HttpMessage,
    /// Times of the response's events, and where each ends in the body.
    pub(super) events: Vec<(u64, usize)>,
    /// Status; 0: there was no response.
    pub(super) status: u16,
    pub(super) latency_ms: u64,
    pub(super) over_limit: bool,
    pub(super) broken_off: bool,
}

/// Headers and body of a message.
#[derive(Debug, Default)]
pub(super) struct HttpMessage {
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the body was written as text, and so is decoded whatever its headers say.
    pub(super) is_text: bool,
}

impl<'o> HttpImport<'o> {
    pub(super) fn new(source: String, options: ImportOptions<'o>) -> Self {
        let session = Session {
            source: Some(source),
            ..Session::default()
        };
        Self {
            options,
            left: DECODED,
            session,
            imported: Imported::default(),
        }
    }

    /// Lists what the file does not have of an exchange.
    pub(super) fn leave_out(&mut self, exchange: &HttpExchange, why: &str) {
        let url = exchange.url.split(['?', '#']).next().unwrap_or_default();
        self.imported
            .leave_out(format!("{} {url}", exchange.method), why);
    }

    /// Adds an exchange, or lists why it cannot be replayed.
    pub(super) fn add(&mut self, exchange: &HttpExchange) {
        let (url, method) = match destination(exchange) {
            Ok(found) => found,
            Err(why) => return self.leave_out(exchange, why),
        };
        let Some((sent, request)) = self.message(&exchange.request) else {
            return self.leave_out(exchange, "the decoded bodies have more than 64 MiB");
        };
        let Some((got, response)) = self.message(&exchange.response) else {
            return self.leave_out(exchange, "the decoded bodies have more than 64 MiB");
        };
        let target = Target::new(url.path_and_query());
        let dialect = squall_dialects::confirm(&method, target, &request);
        let form = match dialect {
            Some(dialect) => dialect.form(target, &got),
            None => AnswerForm::of(&got),
        };
        let framing = match form {
            Some(AnswerForm::Stream(framing)) => Some(framing),
            Some(AnswerForm::Json) | None => None,
        };
        let answer = Answer {
            status: exchange.status,
            headers: pairs(&got),
            latency_ms: exchange.latency_ms,
            content: content(framing, response, &exchange.events),
            over_limit: exchange.over_limit,
            broken_off: exchange.broken_off,
        };
        let input = dialect.and_then(|dialect| squall_dialects::user_input(dialect, &request));
        let mut recorded = Recorded {
            id: String::new(),
            scope: String::new(),
            started_ms: 0,
            kind: Kind::Tool,
            dialect: dialect.map(|dialect| dialect.name().to_owned()),
            outcome: Outcome::Ok,
            request: Request {
                method: method.to_string(),
                url: url.as_str().to_owned(),
                headers: pairs(&sent),
                bytes: request.len() as u64,
                body: Data(request.into()),
                over_limit: false,
            },
            fingerprint: 0,
            input,
            answer: (exchange.status != 0).then_some(answer),
            version: if exchange.http2 {
                "HTTP/2.0"
            } else {
                "HTTP/1.1"
            }
            .to_owned(),
            response_bytes: 0,
            duration_ms: exchange.latency_ms,
            faults: Vec::new(),
            exposed: None,
        };
        let fields = || sent.iter().chain(&got);
        let fields = fields().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let redactor = self.options.redactor.and_headers(fields);
        redact::recorded(&redactor, framing, &mut recorded);
        let session = &mut self.session;
        if session.input.is_empty() {
            session.input.extend(recorded.input.clone());
        }
        session
            .exchanges
            .extend(recorded.to_exchange().map(|mut it| {
                // The player computes it from the body, which people can read and edit.
                it.matching.fingerprint = None;
                it
            }));
    }

    /// The valid headers and the decoded body of a message; `None`: too much was decoded.
    fn message(&mut self, message: &HttpMessage) -> Option<(HeaderMap, Vec<u8>)> {
        let mut headers = HeaderMap::new();
        for (name, value) in &message.headers {
            // Pseudo-headers of HTTP/2 are not valid names. Browsers join repeated headers by line breaks.
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
                continue;
            };
            let values = value
                .lines()
                .map(|value| HeaderValue::from_str(value.trim()));
            for value in values.flatten() {
                headers.append(name.clone(), value);
            }
        }
        let coding = Coding::of(&headers).ok().flatten();
        let mut body = message.body.clone();
        if let (Some(coding), false) = (coding, message.is_text)
            && let Ok(mut decoder) = Decoder::new(coding)
        {
            let mut decoded = Vec::new();
            let pushed = decoder.push(&body, self.left, |piece| decoded.extend_from_slice(piece));
            // Other bodies were decoded by the tool, which left the header.
            if pushed.is_ok() && (decoder.is_complete() || decoded.len() == self.left) {
                self.left -= decoded.len();
                body = decoded;
            }
        }
        headers.remove(::http::header::CONTENT_ENCODING);
        (self.left > 0).then_some((headers, body))
    }

    /// The session, unless it is empty.
    pub(super) fn finish(mut self, captured_at: Option<&str>, name: Option<&str>) -> Imported {
        if self.session.exchanges.is_empty() {
            self.imported
                .leave_out(self.options.name, "it has no exchange that can be replayed");
            return self.imported;
        }
        self.options.name.clone_into(&mut self.session.id);
        self.session.captured_at = captured_at.map(str::to_owned);
        self.session.name = name.map(str::to_owned);
        self.imported.sessions.push(self.session);
        self.imported
    }
}

/// The URL and the method of an exchange, or why it cannot be replayed.
fn destination(exchange: &HttpExchange) -> Result<(CanonicalUrl, Method), &'static str> {
    let scheme = exchange.url.split(':').next().unwrap_or_default();
    match &*scheme.to_ascii_lowercase() {
        "http" | "https" => {}
        "ws" | "wss" => return Err("a WebSocket; only HTTP exchanges are imported"),
        _ => return Err("it did not go over HTTP"),
    }
    let url = exchange.url.split('#').next().unwrap_or_default();
    let url = CanonicalUrl::parse(url).ok_or("its URL is invalid")?;
    let method = exchange.method.to_ascii_uppercase();
    match Method::from_bytes(method.as_bytes()) {
        Ok(Method::CONNECT) => Err("a tunnel; only HTTP exchanges are imported"),
        Ok(_) if !matches!(exchange.status, 0 | 200..=999) => {
            Err("its status is not the status of a final response")
        }
        Ok(method) => Ok((url, method)),
        Err(_) => Err("its method is invalid"),
    }
}

/// A status, a number or a text; what is none becomes 1, which is listed as invalid.
pub(super) fn status(value: &Value) -> u16 {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let text = text.split_whitespace().next().unwrap_or_default();
    let whole = text.strip_suffix(".0").unwrap_or(text);
    whole.parse().unwrap_or(1)
}

/// Headers that a session keeps, by name.
fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let kept = headers
        .iter()
        .filter(|(name, _)| is_kept(name.as_str(), true));
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    kept.map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}

/// A body; a stream as its events, with their times if the file has them.
fn content(framing: Option<Framing>, body: Vec<u8>, events: &[(u64, usize)]) -> Content {
    let Some(framing) = framing else {
        return Content::Body(Data(body.into()));
    };
    let piece = |at_ms, data: &[u8]| Piece {
        at_ms,
        data: Data(data.to_vec().into()),
    };
    let mut pieces = Vec::new();
    let mut begin = 0;
    for (at_ms, end) in events {
        if let Some(data) = body.get(begin..*end) {
            pieces.push(piece(*at_ms, data));
            begin = *end;
        }
    }
    let last = events.last().map_or(0, |(at_ms, _)| *at_ms);
    let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
    let mut frames = splitter.push(&body[begin..]);
    frames.extend(splitter.finish());
    let mut filled = Vec::new();
    for frame in frames {
        match filled.last_mut() {
            Some(before) if frame.kind() == FrameKind::Filler => {
                Vec::extend_from_slice(before, frame.bytes());
            }
            _ => filled.push(frame.bytes().to_vec()),
        }
    }
    pieces.extend(filled.iter().map(|data| piece(last, data)));
    Content::Stream(pieces)
}
