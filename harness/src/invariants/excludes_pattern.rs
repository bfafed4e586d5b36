//! `excludes_pattern`: the answer matches none of the patterns.

use super::regex_pattern::too_hard;
use super::words::quoted;
use super::{Check, InvariantKind, Verdict};
use crate::pattern::Pattern;

/// `patterns`: regular expressions, case-insensitive; a dot also matches line breaks.
pub(super) const EXCLUDES_PATTERN: InvariantKind =
    InvariantKind::answer("excludes_pattern", |fields| {
        let what = "a list of regular expressions";
        let about = "Regular expressions of which none may match.";
        let patterns = fields.field("patterns", about, |value| {
            let empty = "the list is empty: nothing would be excluded";
            value.some(what, empty, |value| Pattern::read(value, "(?is)"))
        });
        fields.require("patterns", what);
        let patterns = patterns?;
        Some(Check::new(move |subject| {
            for pattern in &patterns {
                match pattern.find(&subject.answer.text) {
                    Ok(Some(found)) => {
                        let (pattern, found) = (quoted(pattern.as_str()), quoted(found));
                        return Verdict::fails(format!("{pattern} matches {found}"));
                    }
                    Ok(None) => {}
                    Err(error) => return too_hard(&error),
                }
            }
            Verdict::holds("no pattern matches")
        }))
    });

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, errors_of, judged};

    #[test]
    fn each_bad_pattern_is_told_with_its_own_text_and_reason() {
        let told = errors_of(r#"{id: a, type: excludes_pattern, patterns: ["[z-a]", "a.b(c"]}"#);
        let told: Vec<_> = told
            .iter()
            .filter_map(|one| one.split_once("`\""))
            .collect();
        let told: Vec<_> = told.iter().map(|(_, said)| *said).collect();
        assert_eq!(
            told,
            [
                "[z-a]\"` is not a regular expression: invalid character class range, the start must be <= the end",
                "a.b(c\"` is not a regular expression: Opening parenthesis without closing parenthesis",
            ]
        );
    }

    #[test]
    #[rustfmt::skip]
    fn patterns_are_regular_expressions_in_any_case() {
        for (written, answer, expected) in [
            (r"{type: excludes_pattern, patterns: ['sk-\w{8}']}", "key SK-abcdefgh", Fails),
            (r"{type: excludes_pattern, patterns: ['sk-\w{8}']}", r"sk-\w{8}", Holds),
            (r"{type: excludes_pattern, patterns: [a, 'pass.?word']}", "PASSWORD", Fails),
            (r"{type: excludes_pattern, patterns: [a, b], negate: true}", "b", Holds),
        ] {
            assert_eq!(judged(written, answer), expected, "{written}: {answer}");
        }
    }
}
