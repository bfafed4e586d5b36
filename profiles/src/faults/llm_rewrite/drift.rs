//! Texts that drift, as after an unannounced release of the model.

mod coming;

use std::collections::HashSet;

use squall_dialects::json::{Document, Edits, Kind, NodeId, Value, quote};
use squall_dialects::tokens::{self, Counting};

pub(crate) use self::coming::Coming;
use super::words::{REFUSALS, pick};
use crate::fault::{ResponseDrift, Severity, TextDrift};

/// The text as it drifts; an error says why there is nothing to drift.
pub(crate) fn drifted(drift: &ResponseDrift, text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the answer holds no text".to_owned());
    }
    let (severity, choice) = (drift.severity, drift.choice);
    match drift.kind {
        TextDrift::FieldNames => field_names(text, severity, choice),
        TextDrift::Length {
            factor,
            compress: true,
        } => shorter(text, factor),
        TextDrift::Length { factor, .. } => Ok(longer(text, factor, choice)),
        TextDrift::Format => Ok(format(text, severity)),
        TextDrift::Refusal => rephrased(text, severity, choice),
        TextDrift::Tone => Ok(casual(text, severity)),
    }
}

/// Where in a text its JSON object stands: the text itself, inside a fence, or between its first
/// and last brace.
fn object(text: &str) -> Option<std::ops::Range<usize>> {
    let start = text.find('{')?;
    let end = text.rfind('}')? + 1;
    let found = start < end
        && Document::parse(text.get(start..end)?.as_bytes())
            .is_ok_and(|document| document.root().kind() == Kind::Object);
    found.then_some(start..end)
}

/// Names that agents' parsers look for, and what they become.
const KNOWN_NAMES: [(&str, &str); 5] = [
    ("action", "tool_name"),
    ("tool_name", "action"),
    ("name", "name_v2"),
    ("type", "type_v2"),
    ("output", "output_v2"),
];

/// Renames fields: one, those of the outermost object, or all at any depth.
fn field_names(text: &str, severity: Severity, choice: u64) -> Result<String, String> {
    let place = object(text).ok_or("the answer's text holds no JSON object")?;
    let json = &text[place.clone()];
    let document = Document::parse(json.as_bytes()).map_err(|error| error.to_string())?;
    let outermost: Vec<Value<'_>> = document.root().members().collect();
    let chosen: Vec<Value<'_>> = match severity {
        Severity::Subtle => known_or_any(&outermost, choice).into_iter().collect(),
        Severity::Moderate => outermost,
        Severity::Significant => members(document.root()),
    };
    if chosen.is_empty() {
        return Err("the answer's JSON object has no fields".to_owned());
    }
    let all = members(document.root());
    let taken: HashSet<_> = all.iter().filter_map(|member| member.key()).collect();
    let mut edits = Edits::new(&document);
    for member in chosen {
        let name = member.key().unwrap_or_default();
        let known = KNOWN_NAMES.iter().find(|(known, _)| *known == name);
        let known = known.map(|(_, other)| (*other).to_owned());
        let next = (2..).map(|version| format!("{name}_v{version}"));
        // A name that is there already would hide that field, or stand for it.
        let other = known
            .into_iter()
            .chain(next)
            .find(|it| !taken.contains(&**it));
        edits.rename(member.id(), &other.unwrap_or_default());
    }
    let edited = String::from_utf8_lossy(&edits.apply()).into_owned();
    Ok([&text[..place.start], &edited, &text[place.end..]].concat())
}

/// A field that parsers look for, or else any, by the draw.
fn known_or_any<'d>(members: &[Value<'d>], choice: u64) -> Option<Value<'d>> {
    let known = members.iter().find(|member| {
        let name = member.key();
        KNOWN_NAMES
            .iter()
            .any(|(known, _)| name.as_deref() == Some(known))
    });
    let count = u64::try_from(members.len()).ok()?.max(1);
    let any = || members.get(usize::try_from(choice % count).ok()?);
    known.or_else(any).copied()
}

/// Every member of a value at any depth, in the order of the text.
fn members(value: Value<'_>) -> Vec<Value<'_>> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if value.key().is_some() {
            found.push(value);
        }
        let first = open.len();
        open.extend(value.members());
        open.extend(value.items());
        open[first..].reverse();
    }
    found
}

/// Sentences that say nothing.
const PADDING: [&str; 6] = [
    "It may also help to look at this from another side.",
    "In general, several factors play a part here, and each of them deserves attention.",
    "To put it in other words, the points above should be read in their context.",
    "That said, circumstances differ, and what holds here need not hold everywhere.",
    "Please bear in mind that further details may change the picture somewhat.",
    "If anything about this is unclear, it is worth going through it once more, step by step.",
];

/// The text with sentences that say nothing, until it has `factor` times its tokens.
fn longer(text: &str, factor: f64, choice: u64) -> String {
    let target = scaled(tokens::count(Counting::Estimate, text), factor);
    let mut longer = text.to_owned();
    for turn in 0.. {
        let said = tokens::count(Counting::Estimate, &longer);
        if said >= target && turn > 0 {
            break;
        }
        longer.push_str(if longer.ends_with('\n') { "" } else { " " });
        let sentence = pick(&PADDING, choice.wrapping_add(turn));
        longer.push_str(beginning(sentence, target.saturating_sub(said).max(1)));
    }
    longer
}

/// A sentence, or as much of it as those tokens are worth.
fn beginning(sentence: &str, tokens: u64) -> &str {
    let kept = tokens::take(Counting::Estimate, sentence, tokens);
    // A mark alone would end what was said before.
    let kept = if kept.len() < sentence.len() {
        kept.trim_end_matches([' ', ','])
    } else {
        kept
    };
    if kept.is_empty() { sentence } else { kept }
}

/// The beginning of the text, one `factor`th of its tokens; whole sentences where these are most of
/// it.
fn shorter(text: &str, factor: f64) -> Result<String, String> {
    let total = tokens::count(Counting::Estimate, text);
    let target = scaled(total, 1.0 / factor).max(1);
    if target >= total {
        return Err("the answer's text is too short to be compressed".to_owned());
    }
    let kept = tokens::take(Counting::Estimate, text, target);
    let sentence = kept.rfind(['.', '!', '?', '\n']).map(|end| &kept[..=end]);
    let most = |sentence: &&str| tokens::count(Counting::Estimate, sentence) * 4 >= target * 3;
    let whole = sentence.filter(|sentence| !sentence.trim().is_empty() && most(sentence));
    Ok(whole.unwrap_or(kept).trim_end().to_owned())
}

fn scaled(tokens: u64, factor: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "token counts are far below 2^52, factors positive"
    )]
    let scaled = (tokens as f64 * factor).round() as u64;
    scaled
}

/// The same said in another format. JSON becomes fenced JSON, a list of its fields, or prose;
/// prose becomes a list, a document with a heading, or JSON.
fn format(text: &str, severity: Severity) -> String {
    let trimmed = text.trim();
    let Some(place) = object(trimmed).filter(|place| is_all_json(trimmed, place)) else {
        let list = || -> String {
            let lines = trimmed.lines().filter(|line| !line.trim().is_empty());
            let lines: Vec<String> = lines.map(|line| format!("- {}", line.trim())).collect();
            lines.join("\n")
        };
        return match severity {
            Severity::Subtle => list(),
            Severity::Moderate => format!("## Answer\n\n{}", list()),
            Severity::Significant => format!("{{\"answer\": {}}}", quote(trimmed)),
        };
    };
    let json = &trimmed[place];
    if severity == Severity::Subtle {
        let fenced = trimmed.starts_with("```");
        return if fenced {
            json.to_owned()
        } else {
            format!("```json\n{json}\n```")
        };
    }
    let Ok(document) = Document::parse(json.as_bytes()) else {
        return text.to_owned();
    };
    let fields: Vec<String> = leaves(&document)
        .into_iter()
        .map(|(name, value)| match severity {
            Severity::Subtle | Severity::Moderate => format!("{name}: {value}"),
            Severity::Significant => format!("the {} is {value}", name.replace(['_', '.'], " ")),
        })
        .collect();
    match severity {
        Severity::Subtle | Severity::Moderate => fields.join("\n"),
        Severity::Significant => format!("Sure! Here is what I found: {}.", fields.join(", ")),
    }
}

/// Whether there is nothing around the JSON but a fence.
fn is_all_json(text: &str, place: &std::ops::Range<usize>) -> bool {
    let before = text[..place.start].trim();
    let after = text[place.end..].trim();
    let fence = before.strip_prefix("```").map(str::trim);
    (before.is_empty() && after.is_empty())
        || (fence.is_some_and(|word| word.chars().all(char::is_alphanumeric)) && after == "```")
}

/// Every value of a document that holds no other, under the names that lead to it.
fn leaves(document: &Document<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<(String, NodeId)> = vec![(String::new(), document.root().id())];
    while let Some((path, id)) = open.pop() {
        let value = document.value(id);
        let below = |name: &str| match path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let first = open.len();
        match value.kind() {
            Kind::Object => open.extend(value.members().map(|member| {
                let name = member.key().unwrap_or_default();
                (below(&name), member.id())
            })),
            Kind::Array => {
                let items = value.items().enumerate();
                open.extend(items.map(|(at, item)| (below(&(at + 1).to_string()), item.id())));
            }
            Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => {
                let text = value.as_str().map(std::borrow::Cow::into_owned);
                found.push((path, text.unwrap_or_else(|| value.raw().to_owned())));
            }
        }
        open[first..].reverse();
    }
    found
}

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
fn rephrased(text: &str, severity: Severity, choice: u64) -> Result<String, String> {
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

/// Formal words and what people say.
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
fn casual(text: &str, severity: Severity) -> String {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEVERITIES: [Severity; 3] = [Severity::Subtle, Severity::Moderate, Severity::Significant];

    fn drift(kind: TextDrift, severity: Severity, text: &str) -> Result<String, String> {
        let drift = ResponseDrift {
            kind,
            severity,
            choice: 1,
        };
        drifted(&drift, text)
    }

    fn by_severity(kind: TextDrift, text: &str) -> [Result<String, String>; 3] {
        SEVERITIES.map(|severity| drift(kind, severity, text))
    }

    fn ok<const N: usize>(texts: [&str; N]) -> [Result<String, String>; N] {
        texts.map(|text| Ok(text.to_owned()))
    }

    #[test]
    fn fields_are_renamed_one_all_outer_ones_or_all() {
        let json = r#"{"q": 1, "action": "go", "in": {"x": [{"y": 2}]}}"#;
        assert_eq!(
            by_severity(TextDrift::FieldNames, json),
            ok([
                r#"{"q": 1, "tool_name": "go", "in": {"x": [{"y": 2}]}}"#,
                r#"{"q_v2": 1, "tool_name": "go", "in_v2": {"x": [{"y": 2}]}}"#,
                r#"{"q_v2": 1, "tool_name": "go", "in_v2": {"x_v2": [{"y_v2": 2}]}}"#,
            ])
        );
        // Two that would take each other's name, and one whose next name is taken.
        let taken = r#"{"action": 1, "tool_name": 2, "q": {"q_v2": 3}}"#;
        assert_eq!(
            by_severity(TextDrift::FieldNames, taken),
            ok([
                r#"{"action_v2": 1, "tool_name": 2, "q": {"q_v2": 3}}"#,
                r#"{"action_v2": 1, "tool_name_v2": 2, "q_v3": {"q_v2": 3}}"#,
                r#"{"action_v2": 1, "tool_name_v2": 2, "q_v3": {"q_v2_v2": 3}}"#,
            ])
        );
        let around = "Here:\n```json\n{\"a\":1,\"b\":2}\n```\nDone.";
        assert_eq!(
            drift(TextDrift::FieldNames, Severity::Subtle, around).as_deref(),
            Ok("Here:\n```json\n{\"a\":1,\"b_v2\":2}\n```\nDone.")
        );
        for none in ["no JSON", "{}", "{not json}", "} {"] {
            assert!(
                drift(TextDrift::FieldNames, Severity::Subtle, none).is_err(),
                "{none}"
            );
        }
    }

    #[test]
    fn a_text_grows_and_shrinks_by_the_factor() {
        let text = "Paris is the capital. It lies on the Seine. Many people live there.";
        for factor in [1.5, 2.0, 5.0] {
            let kind = |compress| TextDrift::Length { factor, compress };
            let longer = drift(kind(false), Severity::Subtle, text).expect("text");
            assert!(longer.starts_with(text));
            let tokens = tokens::count(Counting::Estimate, text);
            assert!(tokens::count(Counting::Estimate, &longer) >= scaled(tokens, factor));
            let shorter = drift(kind(true), Severity::Subtle, text).expect("text");
            assert!(text.starts_with(&shorter) && !shorter.is_empty());
            assert!(tokens::count(Counting::Estimate, &shorter) <= scaled(tokens, 1.0 / factor));
        }
        let two = TextDrift::Length {
            factor: 2.0,
            compress: true,
        };
        let shorter = drift(two, Severity::Subtle, text);
        assert_eq!(shorter.as_deref(), Ok("Paris is the capital. It lies on"));
        let sentences = "Paris is the capital city. It lies there. Many.";
        let shorter = drift(two, Severity::Subtle, sentences);
        assert_eq!(shorter.as_deref(), Ok("Paris is the capital city."));
        assert!(drift(two, Severity::Subtle, "Yes").is_err());
    }

    #[test]
    fn a_short_text_grows_and_shrinks_by_about_the_factor_and_the_more_the_greater_it_is() {
        let text = "Well this is a text of eight words and some more that say so and so on again";
        let count = |text: &str| tokens::count(Counting::Estimate, text);
        for words in [8, 12, 17] {
            let text = tokens::take(Counting::Estimate, text, words);
            for choice in 0..6 {
                let mut before = words;
                for factor in [1.5, 2.0, 4.0] {
                    let grown = count(&longer(text, factor, choice));
                    let due = scaled(words, factor);
                    assert!(
                        grown > before && grown.abs_diff(due) <= 2,
                        "{grown} of {due}"
                    );
                    before = grown;
                }
            }
            let mut before = words;
            for factor in [1.5, 2.0, 4.0] {
                let shrunk = count(&shorter(text, factor).expect("a shorter text"));
                let due = scaled(words, 1.0 / factor);
                assert!(
                    shrunk < before && shrunk.abs_diff(due) <= 1,
                    "{shrunk} of {due}"
                );
                before = shrunk;
            }
        }
    }

    #[test]
    fn a_format_becomes_another() {
        let json = r#"{"city": "Paris", "at": {"lat": 48.9}, "tags": ["big"]}"#;
        assert_eq!(
            by_severity(TextDrift::Format, json),
            ok([
                &format!("```json\n{json}\n```"),
                "city: Paris\nat.lat: 48.9\ntags.1: big",
                "Sure! Here is what I found: the city is Paris, the at lat is 48.9, the tags 1 is big.",
            ])
        );
        let fenced = format!("```json\n{json}\n```");
        let subtle = drift(TextDrift::Format, Severity::Subtle, &fenced);
        assert_eq!(subtle.as_deref(), Ok(json));
        assert_eq!(
            by_severity(TextDrift::Format, "One.\n\nTwo \"2\"."),
            ok([
                "- One.\n- Two \"2\".",
                "## Answer\n\n- One.\n- Two \"2\".",
                r#"{"answer": "One.\n\nTwo \"2\"."}"#,
            ])
        );
    }

    #[test]
    fn a_refusal_is_rephrased_and_nothing_else_is() {
        assert_eq!(
            by_severity(
                TextDrift::Refusal,
                "Well. Sorry, I can\u{2019}t do that. Bye."
            ),
            ok([
                "Well. Sorry, I'm unable to do that. Bye.",
                "Well. I'm not able to assist with that request. Bye.",
                "I'm not able to assist with that request.",
            ])
        );
        for severity in SEVERITIES {
            for text in ["Paris.", "mini can't", "I can'tankerous"] {
                assert!(drift(TextDrift::Refusal, severity, text).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn a_tone_becomes_casual() {
        assert_eq!(
            by_severity(
                TextDrift::Tone,
                "Yes. It is approximately noon, I do not know."
            ),
            ok([
                "Yep. It's roughly noon, I don't know.",
                "Hey! Yep. It's roughly noon, I don't know.",
                "Hey! Yep! It's roughly noon, I don't know. Hope that helps, lol!",
            ])
        );
        assert_eq!(
            by_severity(TextDrift::Tone, "Paris."),
            ok([
                "So, Paris.",
                "Hey! Paris.",
                "Hey! Paris. Hope that helps, lol!"
            ])
        );
    }

    #[test]
    fn an_empty_text_does_not_drift() {
        for text in ["", " \n"] {
            assert!(drift(TextDrift::Tone, Severity::Moderate, text).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_what_drifts_is_another(
            text in prop_oneof![any::<String>(), "[a-zI'’ \\.{}\":`\n]{0,40}"],
            choice: u64,
            severity in prop::sample::select(&SEVERITIES[..]),
            factor in 1.01_f64..10.0,
        ) {
            let length = |compress| TextDrift::Length { factor, compress };
            for kind in [
                TextDrift::FieldNames,
                length(true),
                length(false),
                TextDrift::Format,
                TextDrift::Refusal,
                TextDrift::Tone,
            ] {
                let drift = ResponseDrift { kind, severity, choice };
                if let Ok(drifted) = drifted(&drift, &text) {
                    prop_assert_ne!(&drifted, &text);
                }
            }
        }
    }
}
