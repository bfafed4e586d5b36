//! Fills the placeholders of templates, and transforms prompts.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use squall_profiles::dice::Dice;

use super::below;
use super::words::WORDS;

/// Longest text of `{filler:N}` and `{letters:N}`, in bytes.
const LONGEST: usize = 64 << 10;

/// The texts of one mutant that stay the same in all its parts.
pub(super) struct TemplateFilling<'s> {
    source: &'s str,
    goal: &'static str,
    token: String,
}

impl<'s> TemplateFilling<'s> {
    /// Draws them for a mutant of the text `source`.
    pub(super) fn draw(source: &'s str, dice: &mut Dice) -> Self {
        Self {
            source,
            goal: pick(&WORDS.goals, dice),
            token: format!("{:08x}", dice.below(1 << 32)),
        }
    }

    /// Fills the placeholders of a template. Other text in braces stays as it is. `None`: the template has no effect
    /// on this source.
    pub(super) fn text(&self, template: &str, dice: &mut Dice) -> Option<String> {
        let mut text = String::with_capacity(template.len() + self.source.len());
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let inner = rest[1..].split_once('}').map_or("", |(inner, _)| inner);
            let (name, argument) = match inner.split_once(':') {
                Some((name, argument)) => (name, Some(argument)),
                None => (inner, None),
            };
            let value = match (name, argument) {
                ("prompt", None) => self.source.to_owned(),
                ("prompt", Some(how)) => transformed(how, self.source, dice)?,
                ("goal", None) => self.goal.to_owned(),
                ("goal", Some(how)) => transformed(how, self.goal, dice)?,
                ("token", None) => self.token.clone(),
                ("number", Some(range)) => number(range, dice)?.to_string(),
                ("filler", Some(length)) => long(&WORDS.filler, length)?,
                ("letters", Some(length)) => long("a", length)?,
                _ => {
                    text.push('{');
                    rest = &rest[1..];
                    continue;
                }
            };
            text.push_str(&value);
            rest = &rest[inner.len() + 2..];
        }
        text.push_str(rest);
        Some(text)
    }

    /// Fills all texts of a document. A text that is only a number's placeholder becomes a number, except in headers.
    pub(super) fn document(&self, template: &Value, dice: &mut Dice) -> Option<Value> {
        self.value("", template, dice)
    }

    fn value(&self, member: &str, template: &Value, dice: &mut Dice) -> Option<Value> {
        Some(match template {
            Value::String(text) => {
                let range = text.strip_prefix("{number:");
                let range = range.and_then(|range| range.strip_suffix('}'));
                match range.filter(|range| !range.contains('{')) {
                    Some(range) => number(range, dice)?.into(),
                    None => self.text(text, dice)?.into(),
                }
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(member, item, dice));
                Value::Array(items.collect::<Option<_>>()?)
            }
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let value = match (member, value) {
                        ("headers", Value::String(text)) => self.text(text, dice)?.into(),
                        _ => self.value(name, value, dice)?,
                    };
                    Some((name.clone(), value))
                });
                Value::Object(members.collect::<Option<_>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
        })
    }
}

/// The first transformation in a template that is unknown.
pub(super) fn unknown_transformation(template: &str) -> Option<&str> {
    let names = ["{prompt:", "{goal:"];
    let starts = names.iter().flat_map(|name| {
        let found = template.match_indices(name);
        found.map(|(at, _)| &template[at + name.len()..])
    });
    let mut transforms = starts.map(|rest| rest.split_once('}').map_or(rest, |(how, _)| how));
    transforms.find(|how| !TRANSFORMS.iter().any(|(name, _)| name == how))
}

fn pick<'w>(words: &'w [String], dice: &mut Dice) -> &'w str {
    &words[below(words.len(), dice)]
}

fn number(range: &str, dice: &mut Dice) -> Option<u64> {
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some(first + dice.below(last.checked_sub(first)?.checked_add(1)?))
}

fn long(piece: &str, length: &str) -> Option<String> {
    let length: usize = length.parse().ok()?;
    let length = length.min(LONGEST);
    Some(piece.chars().cycle().take(length).collect())
}

/// Transforms a text.
type Transform = fn(&str, &mut Dice) -> String;

/// All transformations, by their names.
pub(super) const TRANSFORMS: [(&str, Transform); 32] = [
    ("base64", |text, _| BASE64_STANDARD.encode(text)),
    ("hex", |text, _| {
        let bytes = text.bytes().map(|byte| format!("{byte:02x}"));
        bytes.collect()
    }),
    ("url", |text, _| {
        utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
    }),
    ("unicode", |text, _| {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        units.collect()
    }),
    ("html", |text, _| {
        each(text, |c| format!("&#{};", u32::from(c)))
    }),
    ("binary", |text, _| {
        let bytes = text.bytes().map(|byte| format!("{byte:08b}"));
        bytes.collect::<Vec<_>>().join(" ")
    }),
    ("rot13", |text, _| each(text, |c| rot13(c).to_string())),
    ("leet", |text, _| {
        each(text, |c| of_table(&WORDS.leet, c.to_ascii_lowercase(), c))
    }),
    ("homoglyphs", |text, _| {
        each(text, |c| of_table(&WORDS.homoglyphs, c, c))
    }),
    ("reversed", |text, _| text.chars().rev().collect()),
    ("spaced", |text, _| {
        each(text, |c| format!("{c} ")).trim_end().to_owned()
    }),
    ("no_spaces", |text, _| text.split_whitespace().collect()),
    ("odd_spaces", |text, dice| {
        text.split(' ').fold(String::new(), |all, word| {
            let gaps = ["  ", "\u{a0}", "\u{2003}", "\t", " \u{200b}"];
            let gap = gaps[below(gaps.len(), dice)];
            if all.is_empty() {
                word.to_owned()
            } else {
                format!("{all}{gap}{word}")
            }
        })
    }),
    ("zero_width", |text, _| {
        each(text, |c| format!("{c}\u{200b}"))
    }),
    ("marks", |text, dice| {
        text.chars().fold(String::new(), |mut all, c| {
            all.push(c);
            let mark = 0x300 + u32::try_from(dice.below(0x30)).unwrap_or(0);
            all.extend(char::from_u32(mark).filter(|_| c.is_alphabetic()));
            all
        })
    }),
    ("fullwidth", |text, _| {
        each(text, |c| fullwidth(c).to_string())
    }),
    ("upper", |text, _| plain_words(text, str::to_uppercase)),
    ("lower", |text, _| plain_words(text, str::to_lowercase)),
    ("alternating", |text, _| {
        plain_words(text, |word| {
            let letters = word.chars().enumerate();
            let letters = letters.map(|(at, c)| match at % 2 {
                0 => c.to_lowercase().to_string(),
                _ => c.to_uppercase().to_string(),
            });
            letters.collect()
        })
    }),
    ("emoji", |text, dice| {
        words(text, |word| format!("{word} {}", pick(&WORDS.emoji, dice)))
    }),
    ("some_emoji", |text, dice| {
        some(text, dice, |word, dice| {
            format!("{word}{}", pick(&WORDS.emoji, dice))
        })
    }),
    ("some_base64", |text, dice| {
        some(text, dice, |word, _| BASE64_STANDARD.encode(word))
    }),
    ("some_url", |text, dice| {
        some(text, dice, |word, _| {
            let bytes = word.bytes().map(|byte| format!("%{byte:02X}"));
            bytes.collect()
        })
    }),
    ("typos", typos),
    ("chat_typos", |text, dice| {
        typos(&replaced(&WORDS.abbreviations, text, 100, dice), dice)
    }),
    ("synonyms", |text, dice| {
        replaced(&WORDS.synonyms, text, 70, dice)
    }),
    ("antonyms", |text, dice| {
        replaced(&WORDS.antonyms, text, 50, dice)
    }),
    ("numbers", |text, dice| {
        let other = |c: char| match c.to_digit(10) {
            Some(digit) => {
                let by = 1 + u32::try_from(dice.below(9)).unwrap_or(0);
                char::from_digit((digit + by) % 10, 10).unwrap_or(c)
            }
            None => c,
        };
        text.chars().map(other).collect()
    }),
    ("shuffled", |text, dice| {
        let mut words: Vec<_> = text.split(' ').collect();
        let by = 1 + below(words.len().saturating_sub(1), dice);
        let by = by % words.len();
        words.rotate_left(by);
        words.join(" ")
    }),
    ("first_words", |text, dice| {
        let words = text.split_whitespace().take(1 + below(3, dice));
        words.collect::<Vec<_>>().join(" ")
    }),
    ("keywords", |text, _| {
        let words = text.split_whitespace();
        let words = words.filter(|word| word.chars().count() > 3);
        words.collect::<Vec<_>>().join(" ")
    }),
    ("repeated", |text, dice| {
        vec![text; 20 + below(100, dice)].join(" ")
    }),
];

/// The transformed text. `None`: the transformation is unknown.
fn transformed(how: &str, text: &str, dice: &mut Dice) -> Option<String> {
    let (_, transform) = TRANSFORMS.iter().find(|(name, _)| *name == how)?;
    Some(transform(text, dice))
}

fn each(text: &str, write: impl FnMut(char) -> String) -> String {
    text.chars().map(write).collect()
}

fn of_table(table: &BTreeMap<char, String>, key: char, otherwise: char) -> String {
    table
        .get(&key)
        .cloned()
        .unwrap_or_else(|| otherwise.to_string())
}

fn rot13(c: char) -> char {
    let rotated = |first: u8, c: char| {
        let at = (c as u8 - first + 13) % 26;
        char::from(first + at)
    };
    match c {
        'a'..='z' => rotated(b'a', c),
        'A'..='Z' => rotated(b'A', c),
        _ => c,
    }
}

fn fullwidth(c: char) -> char {
    match c {
        '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c),
        ' ' => '\u{3000}',
        _ => c,
    }
}

fn words(text: &str, write: impl FnMut(&str) -> String) -> String {
    text.split(' ').map(write).collect::<Vec<_>>().join(" ")
}

/// Writes about half of the words in another way, at least one.
fn some(text: &str, dice: &mut Dice, mut write: impl FnMut(&str, &mut Dice) -> String) -> String {
    let many = text.split(' ').count();
    let always = below(many, dice);
    let words = text.split(' ').enumerate().map(|(at, word)| {
        if at == always || dice.below(2) == 0 {
            write(word, dice)
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Replaces the words of a table, each with this probability.
fn replaced(
    table: &BTreeMap<String, Vec<String>>,
    text: &str,
    percent: u64,
    dice: &mut Dice,
) -> String {
    words(text, |word| {
        let stem = word.trim_matches(|c: char| !c.is_alphanumeric());
        let others = table.get(&stem.to_lowercase());
        match others.filter(|_| dice.below(100) < percent) {
            Some(others) => word.replacen(stem, pick(others, dice), 1),
            None => word.to_owned(),
        }
    })
}

/// Rewrites words of letters only. Numbers, addresses and names with other characters stay.
fn plain_words(text: &str, write: impl Fn(&str) -> String) -> String {
    let words = text.split_inclusive(char::is_whitespace);
    let words = words.map(|word| match plain_part(word) {
        Some(plain) => word.replacen(plain, &write(plain), 1),
        None => word.to_owned(),
    });
    words.collect()
}

/// The letters of a word with only punctuation around them; `None`: it has other characters.
fn plain_part(word: &str) -> Option<&str> {
    let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_plain = |c: char| c.is_alphabetic() || "'’-".contains(c);
    let is_special = word.contains(['@', '#', '/', '\\', '_', '$', '&', '=', '%', '<', '>']);
    (!plain.is_empty() && plain.chars().all(is_plain) && !is_special).then_some(plain)
}

/// Shortest word that gets typing errors, in letters.
const LONG_WORD: usize = 4;

/// Two to four typing errors, in longer words of letters only.
fn typos(text: &str, dice: &mut Dice) -> String {
    let words = text.split_inclusive(char::is_whitespace);
    let mut words: Vec<_> = words.map(str::to_owned).collect();
    let is_long =
        |word: &str| plain_part(word).is_some_and(|plain| plain.chars().count() >= LONG_WORD);
    for _ in 0..2 + dice.below(3) {
        let long: Vec<_> = (0..words.len()).filter(|at| is_long(&words[*at])).collect();
        let Some(&at) = long.get(below(long.len(), dice)) else {
            break;
        };
        words[at] = typo(&words[at], dice);
    }
    words.concat()
}

fn typo(word: &str, dice: &mut Dice) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let is_letter = |at: usize| letters.get(at).is_some_and(|c| c.is_alphabetic());
    let places: Vec<_> = (0..letters.len()).filter(|at| is_letter(*at)).collect();
    let at = places[below(places.len(), dice)];
    let has_next = is_letter(at + 1);
    let mut neighbours = WORDS.neighbours.iter();
    let neighbours = neighbours.find(|keys| keys.starts_with(letters[at]));
    match dice.below(4) {
        0 if has_next => letters.swap(at, at + 1),
        1 => drop(letters.remove(at)),
        2 if let Some(keys) = neighbours => {
            let keys: Vec<char> = keys.chars().skip(1).collect();
            letters[at] = keys[below(keys.len(), dice)];
        }
        _ => letters.insert(at, letters[at]),
    }
    letters.into_iter().collect()
}
