//! Makes control characters in texts from outside visible.

use std::borrow::Cow;

/// Replaces characters that have an effect instead of an appearance by visible ones: control characters (including
/// the start of terminal sequences), marks that reverse the direction of text, and noncharacters. Line breaks and
/// tabs stay; `\r
/// ` and `\r` become `
/// `.
///
/// The result is valid in XML 1.0 (§2.2).
pub fn shown(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => {
                characters.next_if_eq(&'\n');
                visible.push('\n');
            }
            plain if is_plain(plain) => visible.push(plain),
            // Unicode has a symbol for each: ␀ ␛ ␡.
            '\0'..='\u{1f}' => visible.push(picture(character)),
            '\u{7f}' => visible.push('\u{2421}'),
            other => visible.extend(other.escape_unicode()),
        }
    }
    Cow::Owned(visible)
}

fn picture(control: char) -> char {
    char::from_u32(0x2400 + u32::from(control)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Whether a character has no effect beyond its appearance.
pub(super) fn is_plain(character: char) -> bool {
    match character {
        '\n' | '\t' => true,
        // Control characters; direction marks; characters that some readers treat as line breaks; tags, which are
        // invisible but read by models.
        '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{061c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => false,
        other => u32::from(other) & 0xfffe != 0xfffe,
    }
}

/// The first `most` characters, and the number of omitted bytes.
pub(super) fn cut(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        Some((at, _)) => (&text[..at], text.len() - at),
        None => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_becomes_what_is_read() {
        for (text, expected) in [
            ("plain\n\ttext é 漢 🦀", "plain\n\ttext é 漢 🦀"),
            ("\u{1b}[31mred\u{7}", "␛[31mred␇"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("\u{9b}31m\u{7f}\0", "\\u{9b}31m␡␀"),
            ("\u{ffff}", "\\u{ffff}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_cut_is_between_characters_and_is_counted() {
        assert_eq!(cut("漢字", 1), ("漢", 3));
        assert_eq!(cut("漢字", 2), ("漢字", 0));
    }
}
