//! Secrets taken out before anything is kept, logged or streamed.
//!
//! Four ways to know one: a pattern of the config's `redact:`, its value (what variables stand for, and
//! the credentials of the same exchange), its shape (`sk-…`, `Bearer …`, the digits of a payment card),
//! and the name beside it (of a header, parameter, member, element or field). A text is looked through as
//! it is written, and so is whatever is encoded in it ([`decoded`]): each string of JSON, and what is
//! percent-encoded, one within the other. A secret becomes [`REDACTED`]; what holds none is left as it
//! is, without a copy. Texts are cut to a bound first, with enough behind it that a key on the edge is
//! still seen whole.

mod checks;
mod decoded;
mod detect;
mod lines;
mod markup;
mod members;
mod names;
mod parameters;
mod parts;
mod shapes;
#[cfg(test)]
mod tests;
mod values;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use regex::Regex;
use serde_json::Value;
use squall_dialects::codec::{Coding, Decoder, Encoder};

pub use self::detect::Found;
pub use self::names::is_secret_header;
use self::values::VALUE;

/// What stands where a secret was.
pub const REDACTED: &str = "REDACTED";

/// How far behind the bound a text is looked at: longer than any key is, so that none is cut in
/// two and kept in half.
const SLACK: usize = 512;

/// How often what is encoded may be encoded again and is still looked into.
const DEEPEST: usize = 8;

/// Most bytes that are looked at of a body which is compressed without saying so.
const UNPACKED: usize = 16 << 20;

/// Knows secrets: the built-in ones, and patterns and values of its own. Clones share them.
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: Option<Arc<[Regex]>>,
    values: Option<Arc<[String]>>,
}

/// A pattern of the config's `redact:` that is no regular expression.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("redact: `{pattern}` is not a regular expression: {source}")]
pub struct BadPattern {
    pattern: String,
    source: regex::Error,
}

impl Redactor {
    /// The built-in detectors and `patterns`, regular expressions whose whole match is a secret.
    pub fn with_patterns<S: AsRef<str>>(
        patterns: impl IntoIterator<Item = S>,
    ) -> Result<Self, BadPattern> {
        let compile = |pattern: S| {
            Regex::new(pattern.as_ref()).map_err(|source| BadPattern {
                pattern: pattern.as_ref().to_owned(),
                source,
            })
        };
        let patterns = patterns.into_iter().map(compile);
        let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            patterns: (!patterns.is_empty()).then(|| patterns.into()),
            values: None,
        })
    }

    /// The built-in detectors, and `values`, which are secrets wherever they stand.
    pub fn with_values(values: impl IntoIterator<Item = String>) -> Self {
        Self {
            patterns: None,
            values: values::sorted(values),
        }
    }

    /// What either of two knows.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let patterns = match (&self.patterns, &other.patterns) {
            (Some(one), Some(other)) => Some(one.iter().chain(other.iter()).cloned().collect()),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        let values = match (&self.values, &other.values) {
            (Some(one), Some(other)) if other.iter().any(|value| !one.contains(value)) => {
                values::sorted(one.iter().chain(other.iter()).cloned())
            }
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        Self { patterns, values }
    }

    /// The same, and the credentials among these headers: an upstream may send back in its body what it
    /// was sent.
    #[must_use]
    pub fn and_headers<'h>(&self, headers: impl Iterator<Item = (&'h str, &'h [u8])>) -> Self {
        self.and(&Self::with_values(values::of_headers(headers)))
    }

    /// Whether it knows values.
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Takes secrets out of a text and cuts it to `most` bytes.
    pub fn text(&self, text: &mut String, most: usize) {
        cut(text, most.saturating_add(SLACK));
        if let Some(redacted) = without(text, &self.find(text)) {
            *text = redacted;
        }
        shorten(text, most);
    }

    /// Takes secrets out of a URL and cuts it to `most` bytes. A host that is a value stays: a name that is
    /// looked up in clear is no secret, and exchanges are found by it.
    pub fn url(&self, url: &mut String, most: usize) {
        cut(url, most.saturating_add(SLACK));
        if let Some(redacted) = without(url, &self.find_in_url(url)) {
            *url = redacted;
        }
        shorten(url, most);
    }

    /// A header's value, or [`REDACTED`] for a header that holds a secret by its name.
    pub fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if is_secret_header(name) {
            return Cow::Borrowed(REDACTED);
        }
        let found = match name.to_ascii_lowercase().as_str() {
            "location" | "content-location" | "referer" => self.find_in_url(value),
            _ => self.find(value),
        };
        without(value, &found).map_or(Cow::Borrowed(value), Cow::Owned)
    }

    /// The body without secrets; the same bytes where there is none.
    pub fn body(&self, media_type: Option<&str>, body: &Bytes) -> Bytes {
        if let Some(inner) = unpacked(body) {
            let redacted = self.body(media_type, &inner);
            if redacted == inner {
                return body.clone();
            }
            let packed = Encoder::new(Coding::Gzip).and_then(|encoder| encoder.whole(&redacted));
            return packed.map_or(redacted, Bytes::from);
        }
        let (text, is_text): (Cow<'_, str>, bool) = match std::str::from_utf8(body) {
            Ok(text) => (text.into(), true),
            // Every byte as the character of that number, so that keys in it are found and nothing is lost.
            Err(_) => (body.iter().map(|byte| char::from(*byte)).collect(), false),
        };
        let found = self.all(&text, is_form(media_type));
        let Some(redacted) = without(&text, &found) else {
            return body.clone();
        };
        if is_text {
            return redacted.into();
        }
        let bytes = redacted.chars();
        bytes
            .map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?'))
            .collect()
    }

    /// Takes secrets out of every text of a document, names included.
    pub fn document(&self, document: &mut Value) {
        match document {
            Value::String(text) => self.text(text, usize::MAX),
            Value::Array(items) => items.iter_mut().for_each(|item| self.document(item)),
            Value::Object(members) => {
                for (mut name, mut member) in std::mem::take(members) {
                    self.text(&mut name, usize::MAX);
                    match &mut member {
                        Value::String(text) if is_named(&name, text) => {
                            REDACTED.clone_into(text);
                        }
                        member => self.document(member),
                    }
                    members.insert(name, member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Secrets in a text: in order, none overlaps another.
    pub fn find(&self, text: &str) -> Vec<Found> {
        self.all(text, false)
    }

    /// Secrets in a URL: in order, none overlaps another.
    pub fn find_in_url(&self, url: &str) -> Vec<Found> {
        let (user, path) = parameters::authority(url);
        let mut found = self.all(url, true);
        for one in found.iter_mut().filter(|one| one.name == VALUE) {
            one.range.start = one.range.start.max(path);
        }
        found.extend(user.map(|user| Found::new(user, "user information")));
        apart(found)
    }

    /// Secrets of the built-in shapes in a text as it is written.
    pub fn shapes(&self, text: &str) -> Vec<Found> {
        detect::secrets(text)
    }

    /// Secrets in a text, which may be a form: in order, none overlaps another.
    pub(crate) fn all(&self, text: &str, in_url: bool) -> Vec<Found> {
        let mut found = Vec::new();
        self.look(text, in_url, true, DEEPEST, &mut found);
        apart(found)
    }

    /// Looks through a text as it is written, then through what is encoded in it; as forms have it once at most.
    fn look(&self, text: &str, in_url: bool, in_form: bool, deeper: usize, found: &mut Vec<Found>) {
        found.extend(detect::secrets(text));
        for pattern in self.patterns.iter().flat_map(|all| all.iter()) {
            let places = pattern.find_iter(text);
            found.extend(places.map(|place| Found::new(place.range(), "a pattern of `redact`")));
        }
        values::find(self.values.as_deref().unwrap_or_default(), text, found);
        parameters::find(text, in_url, found);
        members::find(text, found);
        lines::find(text, found);
        markup::find(text, found);
        parts::find(text, found);
        let Some(deeper) = deeper.checked_sub(1) else {
            return;
        };
        for piece in decoded::pieces(text, in_form) {
            let before = found.len();
            let in_form = in_form && !piece.is_form;
            self.look(&piece.text, in_url, in_form, deeper, found);
            for one in &mut found[before..] {
                one.range = piece.stood(one.range.clone());
                one.quote = piece.stood(one.quote.clone());
            }
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.values.as_ref().map_or(0, |values| values.len());
        write!(f, "Redactor({count})")
    }
}

/// Whether a text in a document is a secret by the name of a member or a header.
fn is_named(name: &str, text: &str) -> bool {
    names::is_secret_member(name, text) || is_secret_header(name)
}

/// Those that overlap as one, in order.
fn apart(mut all: Vec<Found>) -> Vec<Found> {
    all.retain(|one| !one.range.is_empty());
    all.sort_by_key(|one| one.range.start);
    let mut apart: Vec<Found> = Vec::with_capacity(all.len());
    for one in all {
        match apart.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                if last.range != one.range {
                    last.quote = 0..0;
                }
                last.range.end = last.range.end.max(one.range.end);
            }
            _ => apart.push(one),
        }
    }
    apart
}

/// The text without what was found in it; `None` for nothing.
fn without(text: &str, found: &[Found]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let mut redacted = String::with_capacity(text.len());
    let mut copied = 0;
    for secret in found {
        redacted.push_str(&text[copied..secret.range.start]);
        redacted.push_str(&secret.instead(text));
        copied = secret.range.end;
    }
    redacted.push_str(&text[copied..]);
    Some(redacted)
}

/// Whether a body is that of a form.
pub(crate) fn is_form(media_type: Option<&str>) -> bool {
    media_type.is_some_and(|media_type| {
        let media_type = media_type.trim_start().to_ascii_lowercase();
        media_type.starts_with("application/x-www-form-urlencoded")
    })
}

/// What a body holds that is compressed without its head saying so; `None`: it is none, it is broken, or
/// it holds too much. Of one that is cut off, what is there.
fn unpacked(body: &[u8]) -> Option<Bytes> {
    if !body.starts_with(b"\x1f\x8b\x08") {
        return None;
    }
    let mut decoder = Decoder::new(Coding::Gzip).ok()?;
    let (mut out, mut read) = (Vec::new(), 0);
    let mut piece = vec![0; 16 << 10];
    loop {
        let step = decoder.step(body.get(read..)?, &mut piece).ok()?;
        if step.is_stuck() {
            return Some(out.into());
        }
        read += step.read;
        out.extend_from_slice(piece.get(..step.written)?);
        if out.len() > UNPACKED {
            return None;
        }
    }
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
}

/// Cuts with a sign that something is missing.
fn shorten(text: &mut String, most: usize) {
    const ELLIPSIS: &str = "…";
    if text.len() > most {
        cut(text, most.saturating_sub(ELLIPSIS.len()));
        text.push_str(ELLIPSIS);
    }
}
