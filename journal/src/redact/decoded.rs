//! Decodes JSON strings (RFC 8259 §7), percent-encoding (RFC 3986 §2.1) and forms within a text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use regex::Regex;

use super::Secret;

/// Greatest depth of nested encodings.
const DEEPEST: usize = 8;

/// Quotation marks, and escapes of one character each.
static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"["+]|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"#,
        r"|%[0-7][0-9a-fA-F]|%[c-dC-D][0-9a-fA-F]%[89abAB][0-9a-fA-F]",
        r"|%[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){2}|%[fF][0-7](?:%[89abAB][0-9a-fA-F]){3}",
    ))
    .expect("the pattern is a constant")
});

/// Searches a text with `find`, and then its decoded parts; positions refer to the original text.
pub(crate) fn search(text: &str, find: &mut dyn FnMut(&str) -> Vec<Secret>) -> Vec<Secret> {
    search_within(text, true, DEEPEST, find)
}

/// `may_be_form`: a `+` may mean a space. Forms are not nested.
fn search_within(
    text: &str,
    may_be_form: bool,
    deeper: usize,
    find: &mut dyn FnMut(&str) -> Vec<Secret>,
) -> Vec<Secret> {
    let mut found = find(text);
    let Some(deeper) = deeper.checked_sub(1) else {
        return found;
    };
    let mut pieces = Vec::new();
    if text.contains(['\\', '%']) {
        split(text, false, &mut pieces);
    }
    if may_be_form && text.contains('+') {
        split(text, true, &mut pieces);
    }
    for piece in pieces {
        let may_be_form = may_be_form && !piece.is_form;
        let inside = search_within(&piece.text, may_be_form, deeper, find);
        found.extend(inside.into_iter().map(|secret| Secret {
            range: piece.place(secret.range),
            quote: piece.place(secret.quote),
            ..secret
        }));
    }
    found
}

/// A decoded piece of a text.
#[derive(Default)]
struct DecodedPiece {
    text: String,
    /// Whether a `+` became a space.
    is_form: bool,
    /// Its start in the original text.
    start: usize,
    /// After each escape: the position in the piece, and in the original text.
    marks: Vec<(usize, usize)>,
}

impl DecodedPiece {
    /// Its end in the original text.
    fn end(&self) -> usize {
        self.marks.last().map_or(self.start, |(_, at)| *at)
    }

    /// The position of a part in the original text.
    fn place(&self, part: Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let before = self.marks.partition_point(|(behind, _)| *behind <= at);
            let mark = before.checked_sub(1).map(|last| self.marks[last]);
            let (behind, place) = mark.unwrap_or((0, self.start));
            place + at - behind
        };
        place(part.start)..place(part.end)
    }
}

/// Decodes the pieces between quotation marks that have escapes: each JSON string is one piece.
fn split(text: &str, as_form: bool, pieces: &mut Vec<DecodedPiece>) {
    let mut piece = DecodedPiece::default();
    let mut end = |mut piece: DecodedPiece, end: usize| {
        // Without escapes it was searched as part of the text.
        if !piece.marks.is_empty() && piece.is_form == as_form {
            piece.text.push_str(&text[piece.end()..end]);
            pieces.push(piece);
        }
    };
    for escape in ESCAPES.find_iter(text) {
        let letter: Cow<'_, str> = match escape.as_str() {
            "\"" => {
                let next = DecodedPiece {
                    start: escape.end(),
                    ..DecodedPiece::default()
                };
                end(std::mem::replace(&mut piece, next), escape.start());
                continue;
            }
            "+" if as_form => " ".into(),
            "+" => continue,
            json if json.starts_with('\\') => {
                let letter = serde_json::from_str::<String>(&format!("\"{json}\""));
                letter.unwrap_or_else(|_| json.to_owned()).into()
            }
            percent => percent_decode_str(percent).decode_utf8_lossy(),
        };
        piece.text.push_str(&text[piece.end()..escape.start()]);
        piece.text.push_str(&letter);
        piece.is_form |= escape.as_str() == "+";
        piece.marks.push((piece.text.len(), escape.end()));
    }
    end(piece, text.len());
}
