//! Reads the bodies of agents' responses in their charset. Requests ask for no content coding.

use encoding_rs::{Encoding, UTF_8};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

/// Longest answer, in bytes.
const LONGEST: usize = 8 << 20;

/// Why a body was not read to its end.
pub(crate) enum Unread {
    /// The body was aborted after this text.
    Broken {
        error: reqwest::Error,
        text: String,
    },
    /// The body has this content coding.
    Coded(String),
    TooLong,
}

/// The body of a response.
pub(crate) async fn read(mut response: Response) -> Result<String, Unread> {
    let charset = charset(response.headers());
    let coding = response.headers().get(CONTENT_ENCODING);
    let coding = coding.map(|coding| String::from_utf8_lossy(coding.as_bytes()).into_owned());
    if let Some(coding) = coding.filter(|coding| coding != "identity") {
        return Err(Unread::Coded(coding));
    }
    let mut plain = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => plain.extend_from_slice(&chunk),
            Ok(None) => return Ok(text(&plain, charset)),
            Err(error) => {
                let text = text(&plain, charset);
                return Err(Unread::Broken { error, text });
            }
        }
        if plain.len() > LONGEST {
            return Err(Unread::TooLong);
        }
    }
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
