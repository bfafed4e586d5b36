//! The key of a request on a tape, derived from redacted data during recording and playback.

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap};
use squall_journal::redact::Redactor;
use squall_profiles::activation::Fingerprint;
use squall_profiles::facts::CanonicalUrl;

use squall_dialects::codec::{Coding, Decoder};

/// Longest body that is stored and used for the key. Longer ones are cut in the recording and count
/// as unread in the key.
pub(crate) const BODY: usize = 4 << 20;

/// URL and fingerprint of a request. `body` is as sent; `None` if it is longer than [`BODY`] or was
/// not read.
pub(crate) fn of(
    redactor: &Redactor,
    method: &Method,
    url: &str,
    headers: &HeaderMap,
    body: Option<&Bytes>,
) -> (String, u64) {
    let redactor = redactor.and_headers(fields(headers));
    let mut url = url.to_owned();
    redactor.url(&mut url, usize::MAX);
    let body = body.and_then(|body| match decoded(headers, body) {
        Decoded::Whole(body) => Some(body),
        Decoded::AsItIs => Some(body.clone()),
        Decoded::Cut(_) => None,
    });
    let media_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let body = body.map(|body| redactor.body(media_type, &body));
    let fingerprint = fingerprint(method, &url, &body.unwrap_or_default());
    (url, fingerprint)
}

/// Names and values.
pub(crate) fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    let fields = headers.iter();
    fields.map(|(name, value)| (name.as_str(), value.as_bytes()))
}

/// The fingerprint of a request on tapes.
pub(crate) fn fingerprint(method: &Method, url: &str, body: &[u8]) -> u64 {
    Fingerprint::of_request(method, &canonical(url), body).0
}

/// A URL in the normal form of rules; invalid URLs stay unchanged.
pub(crate) fn canonical(url: &str) -> String {
    let canonical = CanonicalUrl::parse(url).map(|url| url.as_str().to_owned());
    canonical.unwrap_or_else(|| url.to_owned())
}

/// The result of decoding a body.
pub(crate) enum Decoded {
    /// It has no coding, or an unsupported one.
    AsItIs,
    /// All of it.
    Whole(Bytes),
    /// The first [`BODY`] bytes of more.
    Cut(Bytes),
}

/// Decodes a whole body.
pub(crate) fn decoded(headers: &HeaderMap, body: &[u8]) -> Decoded {
    let Ok(Some(coding)) = Coding::of(headers) else {
        return Decoded::AsItIs;
    };
    let Ok(mut decoder) = Decoder::new(coding) else {
        return Decoded::AsItIs;
    };
    let mut out = Vec::new();
    match decode(&mut decoder, body, &mut out, BODY) {
        Some(true) => Decoded::Whole(out.into()),
        Some(false) => Decoded::Cut(out.into()),
        None => Decoded::AsItIs,
    }
}

/// Appends a decoded chunk to `out`, up to `most` bytes; false if it did not fit. `None`: it is not
/// in its coding.
pub(crate) fn decode(
    decoder: &mut Decoder,
    chunk: &[u8],
    out: &mut Vec<u8>,
    most: usize,
) -> Option<bool> {
    let room = most.saturating_sub(out.len());
    let given = decoder.push(chunk, room + 1, |piece| out.extend_from_slice(piece));
    let fits = given.ok()? <= room;
    out.truncate(most);
    Some(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_known_in_one_form() {
        for (url, expected) in [
            ("HTTP://H:80/a?b", "http://h/a?b"),
            ("https://h:443", "https://h/"),
            ("http://h:81/x", "http://h:81/x"),
            ("not a url", "not a url"),
        ] {
            assert_eq!(canonical(url), expected);
        }
    }

    #[test]
    fn what_is_kept_of_a_request_is_known_again() {
        let redactor = Redactor::default();
        let headers = HeaderMap::new();
        let key = |url: &str, body: &'static str| {
            let body = Bytes::from_static(body.as_bytes());
            of(&redactor, &Method::POST, url, &headers, Some(&body))
        };
        let (url, asked) = key("http://h/?key=one", r#"{"say":"sk-abcdefgh12"}"#);
        assert_eq!(url, "http://h/?key=REDACTED");
        assert_eq!(
            asked,
            key("http://h/?key=two", r#"{"say":"sk-zyxwvuts98"}"#).1
        );
        assert_eq!(
            asked,
            fingerprint(&Method::POST, &url, br#"{"say":"REDACTED"}"#)
        );
        assert_ne!(asked, key("http://h/?key=one", r#"{"say":"else"}"#).1);
    }
}
