//! A model call, captured for the collector.

use std::cell::OnceCell;
use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, Method};
use squall_dialects::codec::Coding;
use squall_dialects::json::Document;
use squall_dialects::{AnswerForm, Dialect, Reader, Tally, Target, Tokens};
use squall_dialects::{endpoint, tokens};
use squall_journal::record::LlmRecord;

use crate::body::buffer::Buffer;
use crate::body::decoding::Decoding;

/// The captured bytes of a model call: handles, bounded, parsed by the collector.
#[derive(Debug)]
pub(crate) struct ModelTraffic {
    dialect: &'static dyn Dialect,
    /// The dialect that the configuration gives the endpoint.
    named: Option<&'static dyn Dialect>,
    /// The body was read and confirms a call in this dialect.
    is_sure: bool,
    /// Path and query of the upstream's URL.
    target: String,
    request: Buffer,
    answer: Buffer,
    /// The end of a response that is longer than its captured start.
    end: BodyEnd,
    /// The requested model, if more of the request was read than captured.
    requested_model: Option<String>,
    form: Option<AnswerForm>,
    coding: Option<Coding>,
    /// The output tokens in the response are Squall's own count.
    counted_anew: bool,
    /// The tally of the whole response, if a rule has read it.
    tally: Option<Box<Tally>>,
}

/// Captured bytes at the end of a long response, because it contains the token counts.
const TAIL: usize = 256 << 10;

impl ModelTraffic {
    /// Captures a call in `dialect`, according to the head, to `target` (path and query of the
    /// upstream's URL). `named` is the endpoint's configured dialect. It captures at most `most`
    /// bytes of each body, and also the end of the response.
    pub(crate) fn new(
        dialect: &'static dyn Dialect,
        named: Option<&'static dyn Dialect>,
        target: &str,
        most: usize,
    ) -> Self {
        Self {
            dialect,
            named,
            is_sure: false,
            target: target.to_owned(),
            request: Buffer::new(most),
            answer: Buffer::new(most),
            end: BodyEnd::default(),
            requested_model: None,
            form: None,
            coding: None,
            counted_anew: false,
            tally: None,
        }
    }

    /// Corrects the dialect after the request's body was read.
    pub(crate) fn speaks(&mut self, dialect: &'static dyn Dialect) {
        self.dialect = dialect;
        self.is_sure = true;
    }

    /// The dialect of the request's body. `None` if the complete body is no model call, whatever
    /// its path.
    pub(super) fn confirm(&mut self) -> Option<&'static dyn Dialect> {
        if !self.is_sure {
            let body = self.request.whole();
            let target = Target::new(&self.target);
            let confirmed = match self.named {
                Some(named) => endpoint::confirm_at(named, &Method::POST, target, &body),
                None => squall_dialects::confirm(&Method::POST, target, &body),
            };
            match confirmed {
                Some(dialect) => self.dialect = dialect,
                // A truncated or encoded body cannot be checked, so the path decides.
                None if !self.request.is_cut() && Document::parse(&body).is_ok() => return None,
                None => {}
            }
        }
        Some(self.dialect)
    }

    /// Sets the requested model, according to the whole request.
    pub(crate) fn request_named(&mut self, model: &str) {
        self.requested_model = Some(model.to_owned());
    }

    /// Adds bytes of the request's body.
    pub(crate) fn request(&mut self, chunk: &Bytes) {
        self.request.push(chunk);
    }

    /// Sets the response's head. A body in an unknown coding is not read.
    pub(crate) fn answer_head(&mut self, headers: &HeaderMap) {
        match Coding::of(headers) {
            Ok(coding) => {
                self.coding = coding;
                // The request's body is not needed: the path shows whether a response with this
                // media type is a stream.
                let target = Target::new(&self.target);
                self.form = self.dialect.form(target, headers);
            }
            Err(_) => self.form = None,
        }
    }

    /// Adds bytes of the response's body.
    pub(crate) fn answer(&mut self, chunk: &Bytes) {
        if self.form.is_some() {
            let kept = self.answer.push(chunk);
            self.end.push(chunk.slice(kept..));
        }
    }

    /// Number of captured bytes.
    pub(super) fn bytes(&self) -> usize {
        self.request.length() + self.answer.length() + self.end.bytes
    }

    /// The output tokens in the response are Squall's own count.
    pub(crate) fn counted_anew(&mut self) {
        self.counted_anew = true;
    }

    /// Takes the tally of the whole response, as the agent got it; its bytes are not needed any more.
    pub(crate) fn take_tally(&mut self, tally: Box<Tally>) {
        if self.form.is_some() {
            self.tally = Some(tally);
            self.answer = Buffer::new(0);
            self.end = BodyEnd::default();
        }
    }

    /// The call's record and usage.
    pub(super) fn read(mut self) -> (LlmRecord, Tokens) {
        let mut reading = self.begin();
        if let Some(tally) = self.tally.take() {
            reading.reader.take_tally(*tally);
            return reading.finish();
        }
        for chunk in self.answer.pieces() {
            reading.push(chunk);
        }
        reading.go_on(&self.end);
        reading.finish()
    }

    /// Starts to parse the call once the response's head has arrived.
    pub(crate) fn begin(&self) -> CallReading {
        let request = self.request.whole();
        let target = Target::new(&self.target);
        let mut reader = Reader::new(self.dialect, target, Some(&request));
        let decoding = Decoding::of(self.coding);
        if let Some(model) = &self.requested_model {
            reader.set_model(model);
        }
        if self.counted_anew {
            reader.counted_anew();
        }
        reader.head(self.form.filter(|_| !matches!(decoding, Decoding::Over)));
        CallReading {
            reader,
            request,
            request_tokens: OnceCell::new(),
            decoding,
        }
    }
}

/// A model call that is parsed while its response arrives.
pub(crate) struct CallReading {
    reader: Reader,
    request: Bytes,
    /// Counted on first use.
    request_tokens: OnceCell<u64>,
    decoding: Decoding,
}

impl CallReading {
    /// Parses encoded bytes of the response's body.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let reader = &mut self.reader;
        self.decoding.push(chunk, |plain| reader.push(plain));
    }

    /// Parses the end of a response whose start was parsed completely.
    fn go_on(&mut self, end: &BodyEnd) {
        if !end.dropped {
            for chunk in &end.chunks {
                self.push(chunk);
            }
        } else if matches!(self.decoding, Decoding::Plain) {
            let rest: Vec<u8> = end.chunks.iter().flatten().copied().collect();
            self.reader.resume(&rest);
        }
    }

    /// The output tokens in the response are Squall's own count.
    pub(crate) fn counted_anew(&mut self) {
        self.reader.counted_anew();
    }

    /// The response's body has ended.
    pub(crate) fn end(&mut self) {
        self.reader.end();
    }

    /// The model, if known by now.
    pub(crate) fn model(&self) -> Option<&str> {
        self.reader.model()
    }

    /// The usage so far.
    pub(crate) fn tokens(&mut self) -> Tokens {
        let request = &self.request;
        let count = |counting| tokens::count(counting, &String::from_utf8_lossy(request));
        self.reader
            .tokens(|counting| *self.request_tokens.get_or_init(|| count(counting)))
    }

    /// The call's record and usage.
    pub(crate) fn finish(mut self) -> (LlmRecord, Tokens) {
        self.reader.end();
        let tokens = self.tokens();
        let estimated = self.reader.has_counted(tokens);
        let counted_by = estimated.then(|| self.reader.counting().name());
        let call = self.reader.finish();
        let record = LlmRecord {
            model: call.model,
            stream: call.stream,
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            estimated,
            counted_by: counted_by.map(str::to_owned),
            finish: call.finish.map(|finish| finish.as_str().to_owned()),
            tool_calls: call.tool_calls,
        };
        (record, tokens)
    }
}

/// The last bytes of a body.
#[derive(Debug, Default)]
struct BodyEnd {
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// Earlier bytes were dropped.
    dropped: bool,
}

impl BodyEnd {
    fn push(&mut self, chunk: Bytes) {
        if chunk.is_empty() {
            return;
        }
        self.bytes += chunk.len();
        self.chunks.push_back(chunk);
        while let Some(first) = self.chunks.front()
            && self.bytes - first.len() >= TAIL
        {
            self.bytes -= first.len();
            self.chunks.pop_front();
            self.dropped = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use http::HeaderValue;
    use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

    use super::*;

    const ANSWER: &str = r#"{"model":"gpt-x-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;

    fn read(answer: &[u8], coding: Option<&'static str>, most: usize) -> LlmRecord {
        let dialect = squall_dialects::by_name("openai-chat").expect("a dialect");
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(coding) = coding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        let mut traffic = ModelTraffic::new(dialect, None, "/v1/chat/completions", most);
        for part in [
            &br#"{"model":"gpt-x","stre"#[..],
            br#"am":false,"messages":[]}"#,
        ] {
            traffic.request(&Bytes::from_static(part));
        }
        traffic.answer_head(&headers);
        for chunk in answer.chunks(10) {
            traffic.answer(&Bytes::copy_from_slice(chunk));
        }
        traffic.read().0
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder
            .write_all(text.as_bytes())
            .expect("a vector takes everything");
        encoder.finish().expect("a vector takes everything")
    }

    #[test]
    fn a_call_is_read_however_its_answer_is_coded() {
        for (answer, coding) in [(ANSWER.into(), None), (gzip(ANSWER), Some("gzip"))] {
            let call = read(&answer, coding, 1 << 20);
            assert_eq!(
                (call.model.as_deref(), call.input_tokens, call.output_tokens),
                (Some("gpt-x"), Some(7), Some(2)),
                "{coding:?}"
            );
            assert_eq!(call.finish.as_deref(), Some("done"), "{coding:?}");
        }
    }

    #[test]
    fn the_counts_at_the_end_of_a_long_stream_are_read() {
        let words = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n";
        let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":\
             {\"prompt_tokens\":7,\"completion_tokens\":9}}\n\n";
        let dialect = squall_dialects::by_name("openai-chat").expect("a dialect");
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        // The end alone is more than is kept of it, and less.
        for times in [10, 20_000] {
            let mut traffic = ModelTraffic::new(dialect, None, "/v1/chat/completions", 100);
            traffic.answer_head(&headers);
            let stream = words.repeat(times) + end;
            for chunk in stream.as_bytes().chunks(1000) {
                traffic.answer(&Bytes::copy_from_slice(chunk));
            }
            assert!(traffic.end.bytes < TAIL + 1000);
            let (call, tokens) = traffic.read();
            assert_eq!(
                (call.input_tokens, call.output_tokens),
                (Some(7), Some(9)),
                "{times}"
            );
            assert_eq!(tokens.estimated, 0, "{times}");
        }
    }

    #[test]
    fn what_cannot_be_read_leaves_what_could() {
        for (what, coding, tokens) in [
            ("an unknown coding", "rot13", None),
            ("not in its coding", "gzip", Some(7)),
        ] {
            let call = read(ANSWER.as_bytes(), Some(coding), 1 << 20);
            assert_eq!(
                (call.model.as_deref(), call.input_tokens),
                (Some("gpt-x"), tokens),
                "{what}"
            );
        }
        // Its end is kept, and its middle is not.
        let long = format!("{ANSWER}{}", " ".repeat(TAIL));
        let cut = read(long.as_bytes(), None, 60);
        assert_eq!(
            (cut.model.as_deref(), cut.input_tokens),
            (Some("gpt-x"), None)
        );
    }
}
