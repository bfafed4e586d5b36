//! Decodes the bodies of agents' responses: content coding and charset.
//!
//! Requests do not ask for a content coding, but coded responses are decoded. [`LONGEST`] limits the decoded size,
//! so a small body cannot expand without limit.

use encoding_rs::{Encoding, UTF_8};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use squall_dialects::codec::{Coding, Decoder};

/// Longest decoded answer, in bytes.
const LONGEST: usize = 8 << 20;

/// Why a body was not read to its end.
pub(super) enum Unread {
    /// The body was aborted after this text.
    Broken {
        error: reqwest::Error,
        text: String,
    },
    /// The body does not match its content coding; this is the text before the error.
    Undecodable {
        why: String,
        text: String,
    },
    TooLong,
}

/// The body of a response.
pub(super) async fn read(mut response: Response) -> Result<String, Unread> {
    let charset = charset(response.headers());
    let undecodable = |why: String, plain: &[u8]| Unread::Undecodable {
        why,
        text: text(plain, charset),
    };
    let coding = Coding::of(response.headers());
    let coding = coding.map_err(|unknown| undecodable(unknown.to_string(), &[]))?;
    let decoder = coding.map(Decoder::new).transpose();
    let mut decoder = decoder.map_err(|unfit| undecodable(unfit.to_string(), &[]))?;
    let (mut plain, mut began) = (Vec::new(), false);
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                began |= !chunk.is_empty();
                match &mut decoder {
                    None => plain.extend_from_slice(&chunk),
                    Some(decoder) => {
                        let room = LONGEST + 1 - plain.len();
                        let pushed =
                            decoder.push(&chunk, room, |more| plain.extend_from_slice(more));
                        pushed.map_err(|unfit| undecodable(unfit.to_string(), &plain))?;
                    }
                }
            }
            Ok(None) => break,
            Err(error) => {
                let text = text(&plain, charset);
                return Err(Unread::Broken { error, text });
            }
        }
        if plain.len() > LONGEST {
            return Err(Unread::TooLong);
        }
    }
    // An empty body is empty in every coding.
    if began && decoder.is_some_and(|decoder| !decoder.is_complete()) {
        let why = "the body ends before its content-encoding does";
        return Err(undecodable(why.to_owned(), &plain));
    }
    Ok(text(&plain, charset))
}

/// Valid UTF-8 is read as UTF-8 whatever the header says, unless the header's charset is no superset of ASCII.
fn text(bytes: &[u8], charset: Option<&'static Encoding>) -> String {
    let is_utf8 = std::str::from_utf8(bytes).is_ok();
    let other = charset.filter(|charset| !is_utf8 || !charset.is_ascii_compatible());
    // A byte order mark overrides the header. Invalid bytes are replaced, as in browsers.
    other.unwrap_or(UTF_8).decode(bytes).0.into_owned()
}

/// The media type of a response without parameters, in lower case.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let media_type = content_type(headers).split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

fn charset(headers: &HeaderMap) -> Option<&'static Encoding> {
    let parameters = content_type(headers).split(';').skip(1);
    let mut parameters = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label(value.trim().trim_matches('"').as_bytes())
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
