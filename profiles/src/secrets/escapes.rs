//! The escapes of JSON (RFC 8259 §7) and of URLs (RFC 3986 §2.1) undone, for whoever searches a text for what they
//! may hide.

use std::ops::Range;

/// How deep JSON within JSON is looked into.
const DEEPEST: usize = 3;

/// A text with escapes undone, and where each of its bytes stood.
#[derive(Debug)]
pub(super) struct Undone {
    pub(super) text: String,
    /// One more than bytes: the last is where the text ended.
    stood: Vec<usize>,
}

impl Undone {
    /// Where a part of it stands in the text with its escapes.
    pub(super) fn stood(&self, part: Range<usize>) -> Range<usize> {
        self.stood[part.start]..self.stood[part.end]
    }
}

/// A text with its escapes undone once, then those of what came out, as long as there are any.
pub(super) fn undone(text: &str) -> Vec<Undone> {
    let mut levels: Vec<Undone> = Vec::new();
    while levels.len() < DEEPEST {
        let before = levels.last();
        let Some(mut next) = once(before.map_or(text, |level| &level.text), escape) else {
            break;
        };
        if let Some(before) = before {
            for at in &mut next.stood {
                *at = before.stood[*at];
            }
        }
        levels.push(next);
    }
    levels
}

/// A text with what is percent-encoded in it undone, as in paths and as in forms, where a space is a `+`.
pub(super) fn of_urls(text: &str) -> impl Iterator<Item = Undone> + use<> {
    let in_form = |text: &str| {
        let space = text.starts_with('+').then_some((' ', 1));
        space.or_else(|| percent(text))
    };
    let in_path = text.contains('%').then(|| once(text, percent));
    let in_form = text.contains('+').then(|| once(text, in_form));
    [in_path, in_form].into_iter().flatten().flatten()
}

/// `escape` tells what an escape at the beginning of a text stands for, and how long it is. `None`: there is none.
fn once(text: &str, escape: impl Fn(&str) -> Option<(char, usize)>) -> Option<Undone> {
    let mut undone = Undone {
        text: String::with_capacity(text.len()),
        stood: Vec::with_capacity(text.len() + 1),
    };
    let (mut at, mut any) = (0, false);
    while let Some(first) = text[at..].chars().next() {
        let (character, length) = match escape(&text[at..]) {
            Some(escape) => {
                any = true;
                escape
            }
            None => (first, first.len_utf8()),
        };
        undone.text.push(character);
        undone.stood.resize(undone.text.len(), at);
        at += length;
    }
    undone.stood.push(at);
    any.then_some(undone)
}

/// The character whose bytes in UTF-8 are written as `%C3%A9`.
fn percent(text: &str) -> Option<(char, usize)> {
    let byte = |at: usize| {
        let digits = text.get(at..at + 3)?.strip_prefix('%')?;
        let all_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| all_hex)
    };
    let mut bytes = Vec::with_capacity(4);
    while bytes.len() < 4 {
        bytes.push(byte(3 * bytes.len())?);
        if let Ok(found) = std::str::from_utf8(&bytes) {
            return found
                .chars()
                .next()
                .map(|character| (character, 3 * bytes.len()));
        }
    }
    None
}

/// The character that an escape at the beginning of a text stands for, and how long it is.
fn escape(text: &str) -> Option<(char, usize)> {
    let rest = text.strip_prefix('\\')?;
    let character = match rest.as_bytes().first()? {
        quoted @ (b'"' | b'\\' | b'/') => char::from(*quoted),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return in_hex(text),
        _ => return None,
    };
    Some((character, 2))
}

/// `\u00e9`, or two of them that are one character in UTF-16.
fn in_hex(text: &str) -> Option<(char, usize)> {
    let first = unit(text)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 6));
    }
    let second = unit(text.get(6..)?)?;
    let pair = char::decode_utf16([first, second]).next()?;
    pair.ok().map(|character| (character, 12))
}

fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let all_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| all_hex)
}
