//! Letters that the standard fonts of PDF lack, written with those that they have.
//!
//! What is shown stands for what is said, letter by letter, so that a reader of the file still finds, copies
//! and speaks the text as it is (`ActualText`, ISO 32000-1 §14.9.4). Latin letters lose their marks, Greek and
//! Cyrillic ones are written in Latin (ISO 843 and BGN/PCGN, without their marks). All others stand as their number
//! in Unicode, `[U+4E2D]`: how they would be read hangs on the language, which nobody says here, and a number leads
//! back to the letter on paper, too.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::canonical_combining_class;

/// A letter, and what is printed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Letter {
    /// The letter itself.
    pub(super) said: char,
    /// What the fonts have for it: letters of `WinAnsiEncoding`, or nothing.
    pub(super) shown: String,
}

/// The letters of a text, each with what is printed for it.
pub(super) fn letters(text: &str) -> Vec<Letter> {
    let letter = |said: char| Letter {
        said,
        shown: printed(said),
    };
    text.chars().map(letter).collect()
}

/// The byte of a character in `WinAnsiEncoding` (ISO 32000-1, annex D.2).
pub(super) fn code(character: char) -> Option<u8> {
    const HIGH: &[(char, u8)] = &[
        ('€', 0x80),
        ('‚', 0x82),
        ('ƒ', 0x83),
        ('„', 0x84),
        ('…', 0x85),
        ('†', 0x86),
        ('‡', 0x87),
        ('‰', 0x89),
        ('Š', 0x8a),
        ('‹', 0x8b),
        ('Œ', 0x8c),
        ('Ž', 0x8e),
        ('‘', 0x91),
        ('’', 0x92),
        ('“', 0x93),
        ('”', 0x94),
        ('•', 0x95),
        ('–', 0x96),
        ('—', 0x97),
        ('™', 0x99),
        ('š', 0x9a),
        ('›', 0x9b),
        ('œ', 0x9c),
        ('ž', 0x9e),
        ('Ÿ', 0x9f),
    ];
    match character {
        ' '..='~' | '\u{a0}'..='\u{ff}' => u8::try_from(u32::from(character)).ok(),
        other => {
            let found = HIGH.iter().find(|(known, _)| *known == other);
            found.map(|(_, code)| *code)
        }
    }
}

fn printed(said: char) -> String {
    if code(said).is_some() {
        return said.to_string();
    }
    if canonical_combining_class(said) != 0 {
        return String::new();
    }
    in_latin(said).unwrap_or_else(|| format!("[U+{:04X}]", u32::from(said)))
}

/// What is written for a letter that the fonts lack, in letters that they have.
fn in_latin(said: char) -> Option<String> {
    let small: String = said.to_lowercase().collect();
    if let Some(written) = small.chars().next().and_then(latin) {
        return Some(if said.is_uppercase() {
            capital(written)
        } else {
            written.to_owned()
        });
    }
    // A letter without its marks.
    let base = said.to_string().nfd().next().filter(|base| *base != said)?;
    if code(base).is_some() {
        return Some(base.to_string());
    }
    in_latin(base)
}

fn capital(written: &str) -> String {
    let mut letters = written.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A small letter in Latin ones.
fn latin(small: char) -> Option<&'static str> {
    const GREEK: [&str; 25] = [
        "a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r", "s",
        "s", "t", "y", "f", "ch", "ps", "o",
    ];
    const CYRILLIC: [&str; 32] = [
        "a", "b", "v", "g", "d", "e", "zh", "z", "i", "y", "k", "l", "m", "n", "o", "p", "r", "s",
        "t", "u", "f", "kh", "ts", "ch", "sh", "shch", "", "y", "", "e", "yu", "ya",
    ];
    let of = |table: &'static [&str], first: char| {
        let place = u32::from(small) - u32::from(first);
        table.get(place as usize).copied()
    };
    match small {
        'α'..='ω' => of(&GREEK, 'α'),
        'а'..='я' => of(&CYRILLIC, 'а'),
        'ł' => Some("l"),
        'đ' | 'ɖ' => Some("d"),
        'ħ' => Some("h"),
        'ŋ' => Some("ng"),
        'ŧ' => Some("t"),
        'ſ' => Some("s"),
        'ə' | 'є' => Some("e"),
        'ĸ' => Some("k"),
        'ı' | 'і' => Some("i"),
        'ї' => Some("yi"),
        'ґ' => Some("g"),
        'ђ' => Some("dj"),
        'ј' => Some("j"),
        'љ' => Some("lj"),
        'њ' => Some("nj"),
        'ћ' => Some("c"),
        'џ' => Some("dz"),
        'ў' => Some("u"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        letters(text).into_iter().map(|one| one.shown).collect()
    }

    #[test]
    fn names_are_written_in_the_letters_that_there_are() {
        for (said, expected) in [
            ("Łukasz (東京)", "Lukasz ([U+6771][U+4EAC])"),
            ("한 ☃ 😀", "[U+D55C] [U+2603] [U+1F600]"),
            ("Dvořák, Šárka €5 “x”", "Dvorák, Šárka €5 “x”"),
            ("Γιώργος Παπαδόπουλος", "Giorgos Papadopoylos"),
            ("Сергей Щукин, Київ", "Sergey Shchukin, Kiyiv"),
            ("Nguyễn Thị Ánh", "Nguyen Thi Ánh"),
            ("e\u{301}", "e"),
        ] {
            assert_eq!(shown(said), expected, "{said}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_said_can_be_printed(text: String) {
            for letter in letters(&text) {
                prop_assert!(letter.shown.chars().all(|shown| code(shown).is_some()), "{letter:?}");
            }
        }
    }
}
