//! The same in other words: refusals, and another tone.

use crate::changes::Severity;
use crate::faults::llm_rewrite::words::{REFUSALS, pick};

/// Beginnings of sentences that refuse, in lower case, and what they become.
const PHRASES: [(&str, &str); 8] = [
    ("i can't", "I'm unable to"),
    ("i cannot", "I am not in a position to"),
    ("i can not", "I am not in a position to"),
    ("i'm unable to", "I can't"),
    ("i am unable to", "I can't"),
    ("i'm not able to", "I cannot"),
    ("i am not able to", "I cannot"),
    ("i won't", "I'd rather not"),
];

/// Where a text refuses first, and what the phrase becomes.
fn refused(text: &str) -> Option<(std::ops::Range<usize>, &'static str)> {
    let places = PHRASES
        .iter()
        .filter_map(|(phrase, other)| Some((find_phrase(text, phrase)?, *other)));
    places.min_by_key(|(place, _)| place.start)
}

/// A refusal in other words: the phrase, the sentence, or all of it. An error when none is refused.
pub(super) fn rephrased(text: &str, severity: Severity, choice: u64) -> Result<String, String> {
    let (place, other) = refused(text).ok_or("the answer's text refuses nothing")?;
    // Typographic apostrophes are three bytes long: places are the text's own.
    let start = text[..place.start].rfind(['.', '!', '?', '\n']);
    let start = start.map_or(0, |at| at + 1);
    let end = text[place.end..].find(['.', '!', '?', '\n']);
    let end = end.map_or(text.len(), |at| place.end + at + 1);
    let said = match severity {
        Severity::Subtle => return Ok([&text[..place.start], other, &text[place.end..]].concat()),
        Severity::Moderate => text[start..end].trim(),
        Severity::Significant => text,
    };
    let others: Vec<&str> = REFUSALS
        .into_iter()
        .filter(|refusal| !refusal.starts_with(said))
        .collect();
    let other = pick(&others, choice);
    Ok(if severity == Severity::Significant {
        other.to_owned()
    } else {
        let space = if start > 0 { " " } else { "" };
        [&text[..start], space, other, &text[end..]].concat()
    })
}

/// Where a phrase stands in a text, whatever its case and apostrophes.
fn find_phrase(text: &str, phrase: &str) -> Option<std::ops::Range<usize>> {
    let same = |a: char, b: char| a.eq_ignore_ascii_case(&b) || (a == '\u{2019}' && b == '\'');
    text.char_indices().find_map(|(start, _)| {
        let mut rest = text[start..].char_indices();
        for wanted in phrase.chars() {
            let (_, found) = rest.next()?;
            if !same(found, wanted) {
                return None;
            }
        }
        let end = rest.next().map_or(text.len(), |(at, _)| start + at);
        let before = text[..start].chars().next_back();
        let after = text[end..].chars().next();
        let alone = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        (alone(before) && alone(after)).then_some(start..end)
    })
}

/// Formal words and their casual replacements.
const CASUAL: [(&str, &str); 14] = [
    ("hello", "hey"),
    ("yes", "yep"),
    ("no", "nope"),
    ("thank you", "thanks"),
    ("please", "pls"),
    ("i am", "I'm"),
    ("you are", "you're"),
    ("it is", "it's"),
    ("do not", "don't"),
    ("cannot", "can't"),
    ("however", "but"),
    ("therefore", "so"),
    ("approximately", "roughly"),
    ("certainly", "sure"),
];

/// The text with casual words for formal ones.
fn casual_words(text: &str) -> String {
    let mut casual = text.to_owned();
    for (formal, plain) in CASUAL {
        let mut done = 0;
        while let Some(place) = find_phrase(&casual[done..], formal) {
            let place = done + place.start..done + place.end;
            let upper = casual[place.clone()].starts_with(char::is_uppercase);
            let plain = if upper {
                capitalised(plain)
            } else {
                plain.to_owned()
            };
            done = place.start + plain.len();
            casual.replace_range(place, &plain);
        }
    }
    casual
}

/// The text in another tone: formal words become casual; then it begins, and ends, like a chat.
pub(super) fn casual(text: &str, severity: Severity) -> String {
    let mut casual = casual_words(text);
    if severity > Severity::Subtle {
        casual.insert_str(0, "Hey! ");
    } else if casual == text {
        casual.insert_str(0, "So, ");
    }
    if severity == Severity::Significant {
        casual = casual.replace(". ", "! ");
        casual.push_str(" Hope that helps, lol!");
    }
    casual
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
