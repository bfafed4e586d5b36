//! What is encoded in a text: the escapes of JSON (RFC 8259 §7) and of URLs and forms (RFC 3986 §2.1) undone.

use std::ops::Range;

/// A piece of a text with its escapes undone once, and where each part of it stood.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) text: String,
    /// Spaces stand for `+` in it.
    pub(super) is_form: bool,
    /// Where it began.
    start: usize,
    /// Behind each escape: in this text, and where that stood.
    marks: Vec<(usize, usize)>,
}

impl Piece {
    /// Where a part of it stood.
    pub(super) fn stood(&self, part: Range<usize>) -> Range<usize> {
        self.stood_at(part.start)..self.stood_at(part.end)
    }

    fn stood_at(&self, at: usize) -> usize {
        let before = self.marks.partition_point(|(behind, _)| *behind <= at);
        let (behind, stood) = match before.checked_sub(1) {
            Some(last) => self.marks[last],
            None => (0, self.start),
        };
        stood + at - behind
    }
}

/// The pieces of a text that have escapes, between quotation marks that stand for themselves: each string of
/// JSON is one. Those with a `+` once more with a space for it, if they may be forms.
pub(super) fn pieces(text: &str, may_be_form: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if text.contains(['\\', '%']) {
        split(text, false, &mut pieces);
    }
    if may_be_form && text.contains('+') {
        split(text, true, &mut pieces);
    }
    pieces
}

fn split(text: &str, is_form: bool, pieces: &mut Vec<Piece>) {
    let mut piece = Piece::default();
    let mut add = |piece: Piece, end: usize| {
        // What has no escapes is seen in the text as it is written.
        if let Some((_, copied)) = piece.marks.last()
            && piece.is_form == is_form
        {
            let rest = &text[*copied..end];
            pieces.push(Piece {
                text: format!("{}{rest}", piece.text),
                ..piece
            });
        }
    };
    let mut at = 0;
    let begins = |byte: &u8| b"\"\\%".contains(byte) || (is_form && *byte == b'+');
    while let Some(found) = text.as_bytes()[at..].iter().position(begins) {
        at += found;
        let rest = &text[at..];
        if rest.starts_with('"') {
            let start = at + 1;
            let ended = std::mem::replace(
                &mut piece,
                Piece {
                    start,
                    ..Piece::default()
                },
            );
            add(ended, at);
            at = start;
        } else if let Some((letter, length)) = escape(rest) {
            let copied = piece.marks.last().map_or(piece.start, |(_, stood)| *stood);
            piece.text.push_str(&text[copied..at]);
            piece.text.push(letter);
            piece.is_form |= rest.starts_with('+');
            at += length;
            piece.marks.push((piece.text.len(), at));
        } else {
            at += 1;
        }
    }
    add(piece, text.len());
}

/// The character that an escape at the beginning of a text stands for, and how long it is.
fn escape(text: &str) -> Option<(char, usize)> {
    match text.as_bytes() {
        [b'+', ..] => Some((' ', 1)),
        [b'%', ..] => percent(text),
        [b'\\', b'u', ..] => in_hex(text),
        [b'\\', escaped, ..] => {
            let character = match escaped {
                b'"' | b'\\' | b'/' => char::from(*escaped),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                _ => return None,
            };
            Some((character, 2))
        }
        _ => None,
    }
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
            let character = found.chars().next()?;
            return Some((character, 3 * bytes.len()));
        }
    }
    None
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
