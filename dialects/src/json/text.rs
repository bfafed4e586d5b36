//! JSON strings: decodes, encodes, and maps decoded to raw lengths.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Writes `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// If a truncated JSON text ends inside a string, closes that string after its last complete character.
pub(crate) fn close_string(text: &mut Vec<u8>) {
    let (mut at, mut inside) = (0, false);
    while let Some(&byte) = text.get(at) {
        let length = match (byte, text.get(at + 1)) {
            (b'\\', Some(b'u')) if inside => 6,
            (b'\\', _) if inside => 2,
            _ => 1,
        };
        if at + length > text.len() {
            text.truncate(at);
        }
        inside ^= byte == b'"';
        at += length;
    }
    if inside {
        let whole = std::str::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
        text.truncate(whole);
        text.push(b'"');
    }
}

/// The number of raw bytes, from the opening quote, that encode the first `decoded` bytes of a JSON string. The
/// result never splits an escape or a character.
pub fn raw_length(raw: &str, decoded: usize) -> usize {
    let (mut length, mut bytes) = (1, 0);
    for (character, raw_bytes) in characters(raw) {
        bytes += character.len_utf8();
        if bytes > decoded {
            break;
        }
        length += raw_bytes;
    }
    length
}

/// Decodes a JSON string's raw text, quotes included.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    let inner = inner(raw);
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    let characters = characters(raw);
    Cow::Owned(characters.map(|(character, _)| character).collect())
}

/// Whether a JSON string's raw text means `text`. Escapes only make it longer, so most keys are told apart without a
/// search for them.
pub(super) fn is(raw: &str, text: &str) -> bool {
    let inner = inner(raw);
    match inner.len().cmp(&text.len()) {
        Ordering::Less => false,
        Ordering::Equal => inner == text && !text.contains('\\'),
        Ordering::Greater => {
            let first = inner.as_bytes().first();
            (first == Some(&b'\\') || first == text.as_bytes().first()) && decode(raw) == text
        }
    }
}

/// The text between the quotes.
fn inner(raw: &str) -> &str {
    raw.strip_prefix('"')
        .and_then(|raw| raw.strip_suffix('"'))
        .unwrap_or_default()
}

/// The characters of a well-formed JSON string, each with its raw length in bytes.
fn characters(raw: &str) -> impl Iterator<Item = (char, usize)> {
    let mut rest = inner(raw);
    std::iter::from_fn(move || {
        let character = rest.chars().next()?;
        let (character, length) = match rest.strip_prefix('\\') {
            None => (character, character.len_utf8()),
            Some(escape) => unescape(escape),
        };
        rest = rest.get(length..).unwrap_or_default();
        Some((character, length))
    })
}

/// The character of an escape sequence and its length; `escape` starts after the backslash.
fn unescape(escape: &str) -> (char, usize) {
    let character = match escape.as_bytes().first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_code(escape),
        Some(&other) => char::from(other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (character, 2)
}

fn unescape_code(escape: &str) -> (char, usize) {
    let unit = |escape: &str| u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok();
    let first = unit(escape).unwrap_or_default();
    let second = escape
        .get(5..)
        .and_then(|rest| unit(rest.strip_prefix('\\')?));
    match char::decode_utf16([first].into_iter().chain(second)).next() {
        Some(Ok(character)) => (character, 6 * character.len_utf16()),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_are_decoded_as_python_and_javascript_do() {
        for (raw, said) in [
            (r#""""#, ""),
            (r#""plain""#, "plain"),
            (r#""a\n\"\\\/\t\b\f\r""#, "a\n\"\\/\t\u{8}\u{c}\r"),
            (r#""\u00e9\u4e2d""#, "é中"),
            (r#""\ud83d\ude00!""#, "😀!"),
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ude00x""#, "\u{fffd}x"),
        ] {
            assert_eq!(decode(raw), said, "{raw}");
        }
    }

    #[test]
    fn a_cut_never_falls_into_an_escape() {
        let raw = r#""a\u00e9\ud83d\ude00\nz""#;
        for (decoded, kept) in [
            (0, r#"""#),
            (1, r#""a"#),
            (2, r#""a"#),
            (3, r#""a\u00e9"#),
            (7, r#""a\u00e9\ud83d\ude00"#),
            (8, r#""a\u00e9\ud83d\ude00\n"#),
            (9, r#""a\u00e9\ud83d\ude00\nz"#),
            (99, r#""a\u00e9\ud83d\ude00\nz"#),
        ] {
            assert_eq!(&raw[..raw_length(raw, decoded)], kept, "{decoded}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_can_be_read_back(text in any::<String>()) {
            let quoted = quote(&text);
            prop_assert_eq!(&serde_json::from_str::<String>(&quoted).expect("valid"), &text);
            prop_assert_eq!(decode(&quoted), text.as_str());
            prop_assert!(is(&quoted, &text) || text.contains('\\'));
        }

        #[test]
        fn a_key_is_what_it_decodes_to(raw in r#""([a-c]|\\u006[1-3]|\\n){0,4}""#, key in "[a-c\n]{0,4}") {
            prop_assert_eq!(is(&raw, &key), decode(&raw) == key);
        }
    }
}
