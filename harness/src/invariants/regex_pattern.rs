//! `regex`: the answer matches a pattern.

use super::contains::CASE_SENSITIVE;
use super::words::quoted;
use super::{Check, InvariantKind, Verdict};
use crate::pattern::{Pattern, TooHard};

/// `pattern`: a dot also matches line breaks; it is case-sensitive unless `case_sensitive` is false.
pub(super) const REGEX: InvariantKind = InvariantKind::answer("regex", |fields| {
    let case_sensitive = fields.flag("case_sensitive", CASE_SENSITIVE);
    let flags = if case_sensitive.unwrap_or(true) {
        "(?s)"
    } else {
        "(?is)"
    };
    let pattern = fields.field("pattern", "A regular expression.", |value| {
        Pattern::read(value, flags)
    });
    fields.require("pattern", "a regular expression");
    let pattern = pattern?;
    Some(Check::new(move |subject| {
        match pattern.find(&subject.answer.text) {
            Ok(Some(found)) => Verdict::holds(format!("the pattern matches {}", quoted(found))),
            Ok(None) => Verdict::fails(format!("nothing matches {}", quoted(pattern.as_str()))),
            Err(error) => too_hard(&error),
        }
    }))
});

/// The verdict if a search exceeds its limits.
pub(super) fn too_hard(error: &TooHard) -> Verdict {
    Verdict::error(format!("the pattern could not be tried: {error}"))
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, errors_of, judged};

    #[test]
    #[rustfmt::skip]
    fn a_pattern_is_searched_anywhere() {
        for (written, answer, expected) in [
            (r"{type: regex, pattern: '\d{3}'}", "it is 404", Holds),
            (r"{type: regex, pattern: '\d{3}'}", "it is 40", Fails),
            (r"{type: regex, pattern: 'a.b'}", "a\nb", Holds),
            (r"{type: regex, pattern: 'ok'}", "OK", Fails),
            (r"{type: regex, pattern: '(?i)ok'}", "OK", Holds),
            (r"{type: regex, pattern: ok, case_sensitive: false}", "OK", Holds),
            (r"{type: regex, pattern: '^(?!.*error).*$'}", "fine", Holds),
            (r"{type: regex, pattern: '^(?!.*error).*$'}", "an error", Fails),
            (r"{type: regex, pattern: '(?P<word>\w+) (?P=word)'}", "the the", Holds),
            (r"{type: regex, pattern: error, negate: true}", "fine", Holds),
            (r"{type: regex, pattern: error, negate: true}", "error", Fails),
        ] {
            assert_eq!(judged(written, answer), expected, "{written}: {answer}");
        }
    }

    #[test]
    fn a_pattern_that_takes_for_ever_is_an_error_and_no_pass() {
        for (pattern, length) in [
            // Many steps.
            (r"^(?=((a+)+)+$)b|(a*a*a*a*a*)*\2c$", 60),
            // Each step scans the whole text.
            ("(?=.*b)a+c", 200_000),
            ("(?=.*b)a+c", 16_385),
            // So many states that the search handles the text byte by byte.
            ("[ab]*a[ab]{2000}c", 3_000_000),
        ] {
            let written = format!("{{type: regex, pattern: '{pattern}', negate: true}}");
            assert_eq!(judged(&written, &"a".repeat(length)), Errs, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_multiplies_is_rejected() {
        for (pattern, why) in [
            (r"(?<a>x)(?<b>\g<a>\g<a>)\g<b>", "calls of groups"),
            ("(?:(?:(?=a).{0}){100}){90}b", "more than 100 look-arounds"),
            (r"(x?)\1{100000000}b", "more than 100 look-arounds"),
        ] {
            let errors = errors_of(&format!("{{type: regex, pattern: '{pattern}'}}"));
            assert!(errors[0].contains(why), "{errors:?}");
        }
    }
}
