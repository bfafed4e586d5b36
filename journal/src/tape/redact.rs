//! Secrets taken out of what is recorded, and out of what is looked up, in the same way.

mod lines;
mod markup;
pub(super) mod members;
mod parts;
pub(super) mod stream;

use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes;
use regex::Regex;
use squall_dialects::json::{Document, Edits, quote};
use squall_dialects::stream::Framing;

use super::content::{Content, Data};
use super::leaves;
use super::recorded::Recorded;
use crate::redact::{REDACTED, Redactor, is_secret_pair, joined};

/// A parameter of a URL that stands in a text.
static PARAMETERS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?:[?&]|\\*u0026|&amp;)(?P<name>[A-Za-z0-9_.%\[\]\-]{1,64})=",
        r#"(?P<value>[^&;#\s"'<>\\]+)"#,
    ))
    .expect("the pattern is a constant and compiles")
});

/// How bodies of some media type are looked at.
pub(super) fn is_form(media_type: Option<&str>) -> bool {
    media_type.is_some_and(|media_type| {
        media_type
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("application/x-www-form-urlencoded")
    })
}

/// The body without what looks like a secret; the same bytes where there is none.
pub fn body(redactor: &Redactor, media_type: Option<&str>, body: &Bytes) -> Bytes {
    if body.is_empty() {
        return Bytes::new();
    }
    if let Ok(text) = std::str::from_utf8(body) {
        let plain = escaped(redactor, text);
        let redacted = text_of(
            redactor,
            is_form(media_type),
            plain.as_deref().unwrap_or(text),
        );
        return if redacted == text {
            body.clone()
        } else {
            redacted.into()
        };
    }
    // Every byte as the character of that number, so that keys in it are found and nothing is lost.
    let text: String = body.iter().map(|byte| char::from(*byte)).collect();
    let redacted = text_of(redactor, false, &text);
    if redacted == text {
        return body.clone();
    }
    redacted
        .chars()
        .map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?'))
        .collect()
}

/// Takes secrets out of the texts of JSON that are written with escapes: behind `\n` a key does not
/// begin a word. `None`: there are none.
fn escaped(redactor: &Redactor, text: &str) -> Option<String> {
    if !text.contains('\\') {
        return None;
    }
    let document = Document::parse(text.as_bytes()).ok()?;
    let mut edits = Edits::new(&document);
    leaves::each(document.root(), &mut |_, leaf| {
        if !leaf.raw().contains('\\') {
            return;
        }
        let Some(written) = leaf.as_str() else { return };
        let mut redacted = written.clone().into_owned();
        redactor.text(&mut redacted, usize::MAX);
        // Of markup whose marks are escaped nothing is seen in the document as it is written.
        if leaf.raw().contains("\\u003") {
            let places = joined(markup::places(&redacted));
            redacted = without(&redacted, &places).unwrap_or(redacted);
        }
        if redacted != *written {
            edits.replace(leaf.id(), quote(&redacted));
        }
    });
    if edits.is_empty() {
        return None;
    }
    String::from_utf8(edits.apply()).ok()
}

/// Where secrets stand in a text, those that are some by their names included.
pub(super) fn places(redactor: &Redactor, text: &str) -> Vec<Range<usize>> {
    let mut places = redactor.places(text);
    places.extend(members::places(text));
    places.extend(named(text));
    joined(places)
}

fn text_of(redactor: &Redactor, form: bool, text: &str) -> String {
    if form {
        // A form is what stands behind the `?` of a URL.
        let mut url = format!("?{text}");
        redactor.url(&mut url, usize::MAX);
        return url.split_off(1);
    }
    let mut redacted = text.to_owned();
    redactor.text(&mut redacted, usize::MAX);
    redacted = without(&redacted, &joined(named(&redacted))).unwrap_or(redacted);
    members::without(&redacted).unwrap_or(redacted)
}

/// Where secrets stand in a text that are some by the names of parameters, headers, elements and fields.
fn named(text: &str) -> Vec<Range<usize>> {
    let mut places = parameters(text);
    places.extend(lines::places(text));
    places.extend(markup::places(text));
    places.extend(parts::places(text));
    places
}

/// Where values of parameters stand that are secrets by their names, in URLs in a text.
fn parameters(text: &str) -> Vec<Range<usize>> {
    let found = PARAMETERS.captures_iter(text);
    let secrets = found.filter(|found| is_secret_pair(&found["name"], &found["value"]));
    secrets
        .filter_map(|found| Some(found.name("value")?.range()))
        .collect()
}

/// The text without what stands at these places; `None` for nothing.
fn without(text: &str, places: &[Range<usize>]) -> Option<String> {
    let mut redacted = String::new();
    let mut copied = 0;
    for place in places {
        redacted.push_str(&text[copied..place.start]);
        redacted.push_str(REDACTED);
        copied = place.end;
    }
    if copied == 0 {
        return None;
    }
    redacted.push_str(&text[copied..]);
    Some(redacted)
}

/// The URL without secrets.
pub fn url(redactor: &Redactor, url: &str) -> String {
    let mut url = url.to_owned();
    redactor.url(&mut url, usize::MAX);
    url
}

/// Takes secrets out of a whole exchange, request and answer. `framing`: how the answer's events are laid
/// out, where it is a stream.
pub fn recorded(redactor: &Redactor, framing: Option<Framing>, recorded: &mut Recorded) {
    recorded.request.url = url(redactor, &recorded.request.url);
    headers(redactor, &mut recorded.request.headers);
    let sent = media_type(&recorded.request.headers).map(str::to_owned);
    recorded.request.body = Data(body(redactor, sent.as_deref(), &recorded.request.body.0));
    if let Some(input) = &mut recorded.input {
        *input = text_of(redactor, false, input);
    }
    if let Some(answer) = &mut recorded.answer {
        headers(redactor, &mut answer.headers);
        let got = media_type(&answer.headers).map(str::to_owned);
        match &mut answer.content {
            Content::Body(data) => data.0 = body(redactor, got.as_deref(), &data.0),
            Content::Stream(pieces) => {
                if let Some(framing) = framing {
                    stream::redact(redactor, framing, pieces);
                }
                for piece in pieces {
                    piece.data.0 = body(redactor, got.as_deref(), &piece.data.0);
                }
            }
        }
    }
}

pub(super) fn media_type(headers: &[(String, String)]) -> Option<&str> {
    let found = headers.iter().find(|(name, _)| name == "content-type");
    found.map(|(_, value)| value.as_str())
}

fn headers(redactor: &Redactor, headers: &mut [(String, String)]) {
    for (name, value) in headers {
        let redacted = if name == "location" || name == "referer" {
            url(redactor, value)
        } else {
            redactor.header(name, value).into_owned()
        };
        *value = redacted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_bodies_are_taken_out_and_nothing_else_is() {
        let redactor = Redactor::default();
        for (media_type, given, expected) in [
            (
                None,
                r#"{"q":"sk-abcdefgh12"}"#,
                Some(r#"{"q":"REDACTED"}"#),
            ),
            (None, r#"{"token":" the","key":"colour"}"#, None),
            (
                None,
                r#"{"access_token": "abc", "user":{"password":"x"}}"#,
                Some(r#"{"access_token": "REDACTED", "user":{"password":"REDACTED"}}"#),
            ),
            (
                None,
                r#"{"arguments":"{\"api_key\":\"abc\",\"n\":1}"}"#,
                Some(r#"{"arguments":"{\"api_key\":\"REDACTED\",\"n\":1}"}"#),
            ),
            (
                None,
                r#"{"OPENAI_API_KEY":"abc"}"#,
                Some(r#"{"OPENAI_API_KEY":"REDACTED"}"#),
            ),
            (
                Some("application/x-www-form-urlencoded; charset=utf-8"),
                "client_id=a&client_secret=b",
                Some("client_id=a&client_secret=REDACTED"),
            ),
            (None, "client_id=a, client_secret=b", None),
            (
                None,
                r#"{"next":"https://h.example/?api_key=abc&n=1\u0026sig=d","q":"a ? token = b"}"#,
                Some(
                    r#"{"next":"https://h.example/?api_key=REDACTED&n=1\u0026sig=REDACTED","q":"a ? token = b"}"#,
                ),
            ),
            (
                None,
                r#"{"a":"/go?x=https%3A%2F%2Fh%2F%3Fapi_key%3Dabc&y=1","b":"/go?x=https%3A%2F%2Fh%2F"}"#,
                Some(r#"{"a":"/go?x=REDACTED&y=1","b":"/go?x=https%3A%2F%2Fh%2F"}"#),
            ),
            (
                Some("text/plain"),
                "GET / HTTP/1.1\r\nX-Api-Key: abc\r\nAuthorization: Bearer x\r\n\r\n",
                Some(
                    "GET / HTTP/1.1\r\nX-Api-Key: REDACTED\r\nAuthorization: Bearer REDACTED\r\n\r\n",
                ),
            ),
            (
                Some("application/xml"),
                "<?xml version=\"1.0\"?><a k='1'><password>x</password> <b secret='y'/></a>",
                Some(
                    "<?xml version=\"1.0\"?><a k='1'><password>REDACTED</password> <b secret='REDACTED'/></a>",
                ),
            ),
            (
                Some("multipart/form-data; boundary=b"),
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nx\r\n--b--\r\n",
                Some(
                    "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nREDACTED\r\n--b--\r\n",
                ),
            ),
            (
                None,
                r#"{"t":"\u003cpassword\u003ex\u003c/password\u003e"}"#,
                Some(r#"{"t":"<password>REDACTED</password>"}"#),
            ),
        ] {
            let bytes = Bytes::from_static(given.as_bytes());
            let redacted = body(&redactor, media_type, &bytes);
            assert_eq!(redacted, expected.unwrap_or(given), "{given}");
            // What is looked up is redacted as what is kept was.
            assert_eq!(body(&redactor, media_type, &redacted), redacted, "{given}");
        }
    }

    #[test]
    fn a_key_behind_an_escape_is_taken_out() {
        for (given, expected) in [
            (
                r#"{"q":"see\nsk-abcdefgh12\tend"}"#,
                r#"{"q":"see\nREDACTED\tend"}"#,
            ),
            (
                r#"{"q":"caf\u00e9 \u0073k-abcdefgh12"}"#,
                "{\"q\":\"café REDACTED\"}",
            ),
            (r#"{"q":"see\nnothing"}"#, r#"{"q":"see\nnothing"}"#),
        ] {
            let redacted = body(
                &Redactor::default(),
                None,
                &Bytes::from_static(given.as_bytes()),
            );
            assert_eq!(redacted, expected);
        }
    }

    #[test]
    fn a_key_among_bytes_is_taken_out_of_them() {
        let given = Bytes::from_static(b"\xff\xfesk-abcdefgh12\x00\xe9");
        let redacted = body(&Redactor::default(), None, &given);
        assert_eq!(&redacted[..], b"\xff\xfeREDACTED\x00\xe9");
        let harmless = Bytes::from_static(b"\xff\x00");
        assert_eq!(body(&Redactor::default(), None, &harmless), harmless);
    }
}
