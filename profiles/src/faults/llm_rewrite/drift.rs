//! Texts that drift, as after an unannounced release of the model.

mod field_names;
mod format;
mod length;
mod phrases;

use squall_dialects::json::{Document, JsonKind};

use self::field_names::field_names;
use self::format::format;
use self::length::{longer, shorter};
use self::phrases::{casual, rephrased};
use crate::changes::{ResponseDrift, TextDrift};

/// The changed text, or why nothing can change.
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
            .is_ok_and(|document| document.root().kind() == JsonKind::Object);
    found.then_some(start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use squall_dialects::tokens::{self, Counting};

    use super::length::scaled;
    use super::*;
    use crate::changes::Severity;

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
