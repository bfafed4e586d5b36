//! Finds canaries in bytes that pass by, however they are written.
//!
//! A piece is searched together with the end of those before it: as it is, without JSON's escapes, and
//! percent-decoded; in the last two also as hexadecimal and as base64. It searches for the format of a
//! canary and not for a list, so the cost does not depend on the number of planted canaries. The caller
//! checks whether a find was planted.
//!
//! It ignores letter case, white space, characters beyond ASCII and a missing hyphen, because an
//! agent may send a canary spelled out, wrapped or with invisible characters.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use percent_encoding::percent_decode;
use regex::bytes::Regex;
use squall_journal::record::Encoding;

use super::Canary;

/// Bytes that are searched again with the next piece. A canary that is spread over more is not found.
const OVERLAP: usize = 256;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// A canary. Between its characters: white space, a plus (a space in a form), nothing, and all that is
/// not ASCII, which are invisible characters, and the other half of UTF-16.
static CANARY: LazyLock<Regex> = LazyLock::new(|| {
    let between = r"[ \t-\r+\x00\x80-\xff]*";
    compiled(&format!(
        "(?i-u)s{between}q{between}(?:[-_]{between})?(?:[0-9a-f]{between}){{11}}[0-9a-f]"
    ))
});

/// As many characters of hexadecimal as a canary has at least, with or without separators.
static HEX: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i-u)[0-9a-f](?:[ \t-\r:]*[0-9a-f]){27,}"));

/// The same in base64, in both alphabets.
static BASE64: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?-u)[A-Za-z0-9+/_-](?:[ \t-\r]*[A-Za-z0-9+/_-]){18,}"));

/// An escape of JSON (RFC 8259 §7). JSON inside a JSON string doubles its backslashes.
static ESCAPE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?-u)\\+(?:u[0-9A-Fa-f]{4}|[nrtbf/"])"#));

/// A canary that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Found {
    /// The canary, which may not be a planted one.
    pub canary: Canary,
    /// Its encoding.
    pub encoding: Encoding,
}

/// A search through one stream of bytes.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The end of the bytes so far.
    end: Vec<u8>,
}

impl Search {
    /// A search without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// All canaries in a text.
    pub fn all(text: &[u8]) -> Vec<Found> {
        let mut plain = HashSet::new();
        let mut found = Vec::new();
        for (canary, written) in canaries(text) {
            let is_raw = *written == *canary.to_string().as_bytes();
            let encoding = if is_raw {
                Encoding::Raw
            } else {
                Encoding::Normalised
            };
            plain.insert(canary);
            found.push(Found { canary, encoding });
        }
        let unescaped = unescaped(text);
        let decoded: Cow<'_, [u8]> = percent_decode(&unescaped).into();
        for (text, encoding) in [
            (&unescaped, Encoding::Normalised),
            (&decoded, Encoding::Url),
        ] {
            // A borrowed text was searched before.
            if let Cow::Owned(text) = text {
                let new = canaries(text).filter(|(canary, _)| plain.insert(*canary));
                found.extend(new.map(|(canary, _)| Found { canary, encoding }));
            }
        }
        let is_same = matches!(decoded, Cow::Borrowed(_));
        for text in [&unescaped, &decoded].into_iter().skip(is_same.into()) {
            in_digits(text, &HEX, 4, Encoding::Hex, &mut found);
            in_digits(text, &BASE64, 6, Encoding::Base64, &mut found);
        }
        found
    }

    /// Searches the next bytes. A canary at the end of the bytes before may be found again.
    pub fn push(&mut self, bytes: &[u8], found: impl FnMut(Found)) {
        self.end.extend_from_slice(bytes);
        Self::all(&self.end).into_iter().for_each(found);
        let before = self.end.len().saturating_sub(OVERLAP);
        self.end = self.end[before..].to_vec();
    }
}

/// The canaries that are in a text as such, and how they are written.
fn canaries(text: &[u8]) -> impl Iterator<Item = (Canary, &[u8])> {
    CANARY.find_iter(text).map(|found| {
        let digits = found.as_bytes().iter().filter_map(|byte| digit(*byte, 4));
        let bits = digits.fold(0, |bits, digit| bits << 4 | u64::from(digit));
        (Canary(bits), found.as_bytes())
    })
}

/// A text without JSON's escapes. What is beyond ASCII may be between characters.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    let mut plain = Vec::new();
    let mut end = 0;
    for escape in ESCAPE.find_iter(text) {
        plain.extend_from_slice(&text[end..escape.start()]);
        end = escape.end();
        plain.push(match escape.as_bytes() {
            [.., b'u', b'0', b'0', high, low] => {
                let digits = digit(*high, 4).zip(digit(*low, 4));
                digits.map_or(0x80, |(high, low)| high << 4 | low)
            }
            [.., b'u', _, _, _, _] => 0x80,
            [.., last @ (b'/' | b'"')] => *last,
            _ => b' ',
        });
    }
    if end == 0 {
        return text.into();
    }
    plain.extend_from_slice(&text[end..]);
    plain.into()
}

/// Adds the canaries in runs of digits of so many bits, at every alignment.
fn in_digits(text: &[u8], runs: &Regex, bits: u8, encoding: Encoding, found: &mut Vec<Found>) {
    // Two digits are a byte, or four are three.
    let (digits_each, bytes_each) = if bits == 4 { (2, 1) } else { (4, 3) };
    for run in runs.find_iter(text) {
        let digits = run.as_bytes().iter().filter_map(|byte| digit(*byte, bits));
        let digits: Vec<u8> = digits.collect();
        for start in 0..digits_each {
            let groups = digits[start..].chunks(digits_each);
            let bytes = groups.flat_map(|group| {
                let joined = group.iter().fold(0, |all, it| all << bits | u32::from(*it));
                let missing = (digits_each - group.len()) * usize::from(bits);
                let joined = (joined << missing).to_be_bytes().into_iter();
                let whole = group.len() * usize::from(bits) / 8;
                joined.skip(4 - bytes_each).take(whole)
            });
            let bytes: Vec<u8> = bytes.collect();
            found.extend(canaries(&bytes).map(|(canary, _)| Found { canary, encoding }));
        }
    }
}

/// The value of a digit of hexadecimal (4 bits) or base64 (6), in either alphabet.
fn digit(byte: u8, bits: u8) -> Option<u8> {
    match (byte, bits) {
        (b'0'..=b'9', 4) => Some(byte - b'0'),
        (b'a'..=b'f', 4) => Some(byte - b'a' + 10),
        (b'A'..=b'F', 4) => Some(byte - b'A' + 10),
        (b'A'..=b'Z', 6) => Some(byte - b'A'),
        (b'a'..=b'z', 6) => Some(byte - b'a' + 26),
        (b'0'..=b'9', 6) => Some(byte - b'0' + 52),
        (b'+' | b'-', 6) => Some(62),
        (b'/' | b'_', 6) => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
