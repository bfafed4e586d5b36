//! Bodies of answers as text: their content coding undone, their charset read.
//!
//! No request asks for a coding; what comes in one all the same is read. [`LONGEST`] holds for what a body decodes
//! to, so that a small one that decodes to a huge one costs no more than a plain one.

use encoding_rs::{Encoding, UTF_8};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use squall_dialects::codec::{Coding, Decoder, NotInCoding};

use super::stream;

/// Greatest answer that is read, bytes; a longer one is an error of the agent's.
const LONGEST: usize = 8 << 20;

/// Bytes that are decoded at once.
const PIECE: usize = 16 << 10;

/// Why a body was not read to its end.
pub(super) enum Unread {
    /// It broke off behind this.
    Broken { error: reqwest::Error, text: String },
    /// It is not what its head says; up to here it was.
    Undecodable { why: String, text: String },
    /// It is longer than what is read of one.
    TooLong,
    /// It stands for more than that.
    DecodesTooLong,
}

/// The body of an answer.
pub(super) async fn read(mut response: Response) -> Result<String, Unread> {
    let undecodable = |why: String, text: String| Unread::Undecodable { why, text };
    let coding = Coding::of(response.headers())
        .map_err(|unknown| undecodable(unknown.to_string(), String::new()))?;
    let mut bytes =
        Bytes::of(coding).map_err(|unfit| undecodable(unfit.to_string(), String::new()))?;
    let letters = Letters::of(response.headers());
    let ended = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => match bytes.push(&chunk) {
                Ok(()) => {}
                Err(end) => break Err(end),
            },
            Ok(None) => break bytes.end(),
            Err(error) => {
                let text = letters.so_far(&bytes.plain);
                return Err(Unread::Broken { error, text });
            }
        }
    };
    match ended {
        Ok(()) => letters.text(&bytes.plain),
        Err(End::TooLong) if coding.is_some() => Err(Unread::DecodesTooLong),
        Err(End::TooLong) => Err(Unread::TooLong),
        Err(End::Undecodable(why)) => Err(undecodable(why, letters.so_far(&bytes.plain))),
    }
}

/// What has come of a body, decoded.
struct Bytes {
    decoder: Option<Decoder>,
    /// Whether anything came, decoded or not.
    began: bool,
    plain: Vec<u8>,
}

/// Why no more of a body is read.
enum End {
    TooLong,
    Undecodable(String),
}

impl From<NotInCoding> for End {
    fn from(unfit: NotInCoding) -> Self {
        Self::Undecodable(unfit.to_string())
    }
}

impl Bytes {
    fn of(coding: Option<Coding>) -> Result<Self, NotInCoding> {
        Ok(Self {
            decoder: coding.map(Decoder::new).transpose()?,
            began: false,
            plain: Vec::new(),
        })
    }

    fn push(&mut self, chunk: &[u8]) -> Result<(), End> {
        self.began |= !chunk.is_empty();
        let Some(decoder) = &mut self.decoder else {
            return keep(&mut self.plain, chunk);
        };
        let mut piece = [0; PIECE];
        let mut rest = chunk;
        loop {
            let step = decoder.step(rest, &mut piece)?;
            if step.is_stuck() {
                return Ok(());
            }
            rest = &rest[step.read..];
            keep(&mut self.plain, &piece[..step.written])?;
        }
    }

    /// Whether it is whole where it ends. A body of nothing is nothing in any coding.
    fn end(&self) -> Result<(), End> {
        match &self.decoder {
            Some(decoder) if self.began && !decoder.is_complete() => Err(End::Undecodable(
                "the body ends before its content-encoding does".to_owned(),
            )),
            Some(_) | None => Ok(()),
        }
    }
}

fn keep(plain: &mut Vec<u8>, more: &[u8]) -> Result<(), End> {
    if plain.len() + more.len() > LONGEST {
        return Err(End::TooLong);
    }
    plain.extend_from_slice(more);
    Ok(())
}

/// How bytes become text.
struct Letters {
    /// Of the answer's `Content-Type`, lower case.
    media_type: String,
    /// As it is written there.
    charset: Option<String>,
}

impl Letters {
    fn of(headers: &HeaderMap) -> Self {
        Self {
            media_type: media_type(headers),
            charset: charset(headers),
        }
    }

    fn text(&self, bytes: &[u8]) -> Result<String, Unread> {
        match self.encoding(bytes) {
            Ok(encoding) => Ok(decoded(encoding, bytes)),
            Err(unknown) => Err(Unread::Undecodable {
                why: format!("the charset `{unknown}` is unknown, and the body is not UTF-8"),
                text: self.so_far(bytes),
            }),
        }
    }

    /// The same of a body that is not whole.
    fn so_far(&self, bytes: &[u8]) -> String {
        decoded(self.encoding(bytes).unwrap_or(UTF_8), bytes)
    }

    /// What the bytes are in, or the name of a charset that nobody knows; none is needed where they are UTF-8.
    fn encoding(&self, bytes: &[u8]) -> Result<&'static Encoding, &str> {
        let Some(charset) = &self.charset else {
            return Ok(UTF_8);
        };
        let is_utf8 = || std::str::from_utf8(bytes).is_ok();
        match Encoding::for_label(charset.as_bytes()) {
            Some(named) if self.is_utf8_by_definition() && named.is_ascii_compatible() => {
                Ok(if is_utf8() { UTF_8 } else { named })
            }
            Some(named) => Ok(named),
            None if is_utf8() => Ok(UTF_8),
            None => Err(charset),
        }
    }

    /// JSON (RFC 8259 §8.1) and event streams are UTF-8 by definition, and often so where their head says otherwise.
    fn is_utf8_by_definition(&self) -> bool {
        self.media_type.ends_with("json") || stream::is_stream(&self.media_type)
    }
}

/// A byte order mark says more than the head. What no letter is made of is replaced, as browsers do.
fn decoded(encoding: &'static Encoding, bytes: &[u8]) -> String {
    encoding.decode(bytes).0.into_owned()
}

/// The media type of an answer without its parameters, lower case; a stream that goes under another's is known by
/// its own header.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    if headers.contains_key(stream::DATA_STREAM) {
        return stream::DATA_STREAM.to_owned();
    }
    let media_type = content_type(headers).split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

fn charset(headers: &HeaderMap) -> Option<String> {
    let parameters = content_type(headers).split(';').skip(1);
    let mut parameters = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    let value = value.trim().trim_matches('"');
    (!value.is_empty()).then(|| value.to_owned())
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
