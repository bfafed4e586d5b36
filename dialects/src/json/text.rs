//! JSON strings: decoding, encoding, and measuring one against the other.

use std::borrow::Cow;

/// Writes `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c < ' ' => {
                let code = u32::from(c);
                quoted.push_str("\\u00");
                quoted
                    .extend([code >> 4, code & 15].map(|d| char::from_digit(d, 16).unwrap_or('0')));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Closes the string in which a JSON text was cut off, if it was in one, behind its last whole
/// character.
pub fn close_string(text: &mut Vec<u8>) {
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

/// How many bytes of a JSON string's raw text, counted from its opening quote, hold the first
/// `decoded` bytes of what it says. The result never lies inside an escape or a character.
pub fn raw_length(raw: &str, decoded: usize) -> usize {
    let mut length = 1;
    let mut said = 0;
    for unit in Units::new(raw) {
        if said + unit.character.len_utf8() > decoded {
            break;
        }
        said += unit.character.len_utf8();
        length += unit.length;
    }
    length
}

/// Decodes a JSON string's raw text, quotes included.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    let inner = inner(raw);
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    Cow::Owned(Units::new(raw).map(|unit| unit.character).collect())
}

/// What stands between the quotes.
fn inner(raw: &str) -> &str {
    raw.strip_prefix('"')
        .and_then(|raw| raw.strip_suffix('"'))
        .unwrap_or_default()
}

/// One character a string says and how many raw bytes say it.
struct Unit {
    character: char,
    length: usize,
}

/// The characters of a JSON string that was found to be well-formed.
struct Units<'a> {
    rest: &'a str,
}

impl<'a> Units<'a> {
    fn new(raw: &'a str) -> Self {
        Self { rest: inner(raw) }
    }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let character = self.rest.chars().next()?;
        let unit = match self.rest.strip_prefix('\\') {
            None => Unit {
                character,
                length: character.len_utf8(),
            },
            Some(escape) => unescape(escape),
        };
        self.rest = self.rest.get(unit.length..).unwrap_or_default();
        Some(unit)
    }
}

/// The character an escape stands for; `escape` begins after the backslash.
fn unescape(escape: &str) -> Unit {
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
    Unit {
        character,
        length: 2,
    }
}

fn unescape_code(escape: &str) -> Unit {
    let code = |text: &str| {
        text.get(1..5)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
    };
    let first = code(escape).unwrap_or_default();
    if (0xd800..0xdc00).contains(&first)
        && let Some(low) = escape.get(5..).and_then(|rest| rest.strip_prefix('\\'))
        && low.starts_with('u')
        && let Some(second @ 0xdc00..0xe000) = code(low)
        && let Some(character) =
            char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    {
        return Unit {
            character,
            length: 12,
        };
    }
    let character = char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    Unit {
        character,
        length: 6,
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
            prop_assert_eq!(decode(&quoted), text);
        }
    }
}
