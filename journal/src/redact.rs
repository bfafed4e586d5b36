//! Replaces secrets by [`REDACTED`] before anything is stored, logged or streamed.
//!
//! A text is searched as it is, and after decoding ([`decoded`]): JSON strings, percent-encoding and forms, also
//! nested. There are four detectors:
//!
//! - the patterns of the configuration's `redact`,
//! - known [`values`]: of variables, and credentials of the same exchange,
//! - [`shapes`]: `sk-…`, `Bearer …`, payment cards,
//! - the name beside a value, in [`members`] and other [`forms`].
//!
//! A text without secrets is not copied. Texts are first cut some bytes behind their bound, so that a key at the
//! bound is still recognised.

pub(crate) mod decoded;
mod forms;
mod members;
mod names;
mod shapes;
#[cfg(test)]
mod tests;
mod values;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use regex::Regex;
use serde_json::Value;
use squall_dialects::codec::{Coding, Decoder, Encoder};

pub use self::names::is_secret_header;
use self::values::VALUE;

/// The replacement of a secret.
pub const REDACTED: &str = "REDACTED";

/// How far a text is searched beyond its bound. It is longer than any key, so that no half of a key remains.
const SLACK: usize = 512;

/// Most bytes searched of a body that is compressed without `content-encoding`.
const UNPACKED: usize = 16 << 20;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its position.
    pub range: Range<usize>,
    /// Its issuer or kind: `GitHub`, `JSON Web Token`, `payment card`.
    pub name: &'static str,
    /// The quotation mark in the text's escaping, if the secret is a number: its replacement is quoted.
    quote: Range<usize>,
}

impl Secret {
    fn new(range: Range<usize>, name: &'static str) -> Self {
        Self {
            range,
            name,
            quote: 0..0,
        }
    }

    /// Its replacement.
    pub(crate) fn replacement(&self, text: &str) -> String {
        let quote = &text[self.quote.clone()];
        format!("{quote}{REDACTED}{quote}")
    }
}

/// Detects secrets by the built-in detectors and by additional patterns and values. Clones share them.
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: Arc<[Regex]>,
    values: Arc<[String]>,
}

/// A pattern of the configuration's `redact` that is not a valid regular expression.
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
        Ok(Self {
            patterns: patterns
                .into_iter()
                .map(compile)
                .collect::<Result<_, _>>()?,
            values: Arc::default(),
        })
    }

    /// The built-in detectors, and `values`, which are secrets in every text.
    pub fn with_values(values: impl IntoIterator<Item = String>) -> Self {
        Self {
            patterns: Arc::default(),
            values: values::sorted(values),
        }
    }

    /// Combines the patterns and values of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let patterns = self.patterns.iter().chain(other.patterns.iter());
        let values = self.values.iter().chain(other.values.iter());
        let knows_values = other.values.iter().all(|it| self.values.contains(it));
        Self {
            patterns: match (self.patterns.is_empty(), other.patterns.is_empty()) {
                (_, true) => Arc::clone(&self.patterns),
                (true, false) => Arc::clone(&other.patterns),
                (false, false) => patterns.cloned().collect(),
            },
            values: if knows_values {
                Arc::clone(&self.values)
            } else {
                values::sorted(values.cloned())
            },
        }
    }

    /// The same, with the credentials in these headers as values: an upstream may return them in its body.
    #[must_use]
    pub fn and_headers<'h>(&self, headers: impl Iterator<Item = (&'h str, &'h [u8])>) -> Self {
        self.and(&Self::with_values(values::of_headers(headers)))
    }

    /// Whether it has values.
    pub fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Replaces secrets in a text and truncates it to `most` bytes.
    pub fn text(&self, text: &mut String, most: usize) {
        cut(text, most.saturating_add(SLACK));
        if let Some(redacted) = without(text, &self.find(text)) {
            *text = redacted;
        }
        shorten(text, most);
    }

    /// Replaces secrets in a URL and truncates it to `most` bytes. A host that equals a value stays: host names
    /// are not secret, and filters need them.
    pub fn url(&self, url: &mut String, most: usize) {
        cut(url, most.saturating_add(SLACK));
        if let Some(redacted) = without(url, &self.find_in_url(url)) {
            *url = redacted;
        }
        shorten(url, most);
    }

    /// A header's value, or [`REDACTED`] if the header's name marks a secret.
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

    /// The body without secrets; the same bytes if it has none.
    pub fn body(&self, media_type: Option<&str>, body: &Bytes) -> Bytes {
        let is_form = is_form(media_type);
        let Some(inner) = unpacked(body) else {
            return self.plain(body, is_form).unwrap_or_else(|| body.clone());
        };
        let Some(redacted) = self.plain(&inner, is_form) else {
            return body.clone();
        };
        let packed = Encoder::new(Coding::Gzip).and_then(|encoder| encoder.whole(&redacted));
        packed.map_or(redacted, Bytes::from)
    }

    /// Bytes without secrets; `None` if there are none.
    fn plain(&self, body: &[u8], is_form: bool) -> Option<Bytes> {
        if let Ok(text) = std::str::from_utf8(body) {
            return without(text, &self.find_in(text, is_form)).map(Bytes::from);
        }
        // Maps each byte to the character of that number, so that keys are found and no byte is lost.
        let text: String = body.iter().map(|byte| char::from(*byte)).collect();
        let redacted = without(&text, &self.find_in(&text, is_form))?;
        let bytes = redacted.chars().map(|it| u8::try_from(u32::from(it)));
        Some(bytes.map(|byte| byte.unwrap_or(b'?')).collect())
    }

    /// Replaces secrets in every text of a document, member names included.
    pub fn document(&self, document: &mut Value) {
        match document {
            Value::String(text) => self.text(text, usize::MAX),
            Value::Array(items) => items.iter_mut().for_each(|item| self.document(item)),
            Value::Object(members) => {
                for (mut name, mut member) in std::mem::take(members) {
                    self.text(&mut name, usize::MAX);
                    let is_secret = |text: &str| {
                        names::is_secret_member(&name, text) || is_secret_header(&name)
                    };
                    match &mut member {
                        Value::String(text) if is_secret(text) => REDACTED.clone_into(text),
                        member => self.document(member),
                    }
                    members.insert(name, member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Secrets in a text, in order and without overlaps.
    pub fn find(&self, text: &str) -> Vec<Secret> {
        self.find_in(text, false)
    }

    /// Secrets in a URL, in order and without overlaps.
    pub(crate) fn find_in_url(&self, url: &str) -> Vec<Secret> {
        let (user, path) = authority(url);
        let mut found = self.find_in(url, true);
        for one in found.iter_mut().filter(|one| one.name == VALUE) {
            one.range.start = one.range.start.max(path);
        }
        found.extend(user.map(|user| Secret::new(user, "user information")));
        apart(found)
    }

    /// Secrets in a text, which may be a URL or a form, in order and without overlaps.
    pub(crate) fn find_in(&self, text: &str, in_url: bool) -> Vec<Secret> {
        apart(decoded::search(text, &mut |text| {
            let mut found = Vec::new();
            shapes::find(text, &mut found);
            for place in self.patterns.iter().flat_map(|it| it.find_iter(text)) {
                found.push(Secret::new(place.range(), "a pattern of `redact`"));
            }
            values::find(&self.values, text, &mut found);
            forms::find(text, in_url, &mut found);
            members::find(text, &mut found);
            found
        }))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.values.len())
    }
}

/// Positions of a URL's user info, without the `@`, and of its path or what follows the authority.
fn authority(url: &str) -> (Option<Range<usize>>, usize) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let rest = &url[start..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let user = rest[..end].rfind('@').map(|at| start..start + at);
    (user, start + end)
}

/// Merges overlapping secrets, in order.
fn apart(mut all: Vec<Secret>) -> Vec<Secret> {
    all.retain(|one| !one.range.is_empty());
    all.sort_by_key(|one| one.range.start);
    let mut apart: Vec<Secret> = Vec::with_capacity(all.len());
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

/// The text with secrets replaced; `None` if there are none.
fn without(text: &str, found: &[Secret]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let mut redacted = String::with_capacity(text.len());
    let mut copied = 0;
    for secret in found {
        redacted.push_str(&text[copied..secret.range.start]);
        redacted.push_str(&secret.replacement(text));
        copied = secret.range.end;
    }
    redacted.push_str(&text[copied..]);
    Some(redacted)
}

/// Whether a body is a form.
pub(crate) fn is_form(media_type: Option<&str>) -> bool {
    media_type.is_some_and(|media_type| {
        let media_type = media_type.trim_start().to_ascii_lowercase();
        media_type.starts_with("application/x-www-form-urlencoded")
    })
}

/// Decodes a body that begins like gzip, as far as it is complete; `None` if it is corrupt or too long.
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

/// Truncates a text, and marks that.
fn shorten(text: &mut String, most: usize) {
    const ELLIPSIS: &str = "…";
    if text.len() > most {
        cut(text, most.saturating_sub(ELLIPSIS.len()));
        text.push_str(ELLIPSIS);
    }
}
