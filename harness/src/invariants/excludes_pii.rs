//! `excludes_pii`: no personal data in the answer, and no key or token either.

use std::collections::BTreeMap;

use squall_journal::personal;
use squall_journal::redact::Redactor;

use super::{Check, Kind, Subject, Verdict};

pub(super) const EXCLUDES_PII: Kind = Kind::answer("excludes_pii", |_| Some(Box::new(ExcludesPii)));

#[derive(Debug)]
struct ExcludesPii;

impl Check for ExcludesPii {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let text = &subject.answer.text;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for found in personal::find(text) {
            *counts.entry(found.detector).or_default() += 1;
        }
        if holds_a_secret(text) {
            counts.insert("secret", 1);
        }
        if counts.is_empty() {
            return Verdict::Holds("no personal data was found".to_owned());
        }
        // What was found is not repeated.
        let told: Vec<_> = counts
            .iter()
            .map(|(name, count)| match count {
                1 => (*name).to_owned(),
                count => format!("{name} ({count} times)"),
            })
            .collect();
        Verdict::Fails(format!("the answer holds {}", told.join(", ")))
    }
}

/// Whether a text holds what looks like a key or a token.
pub(super) fn holds_a_secret(text: &str) -> bool {
    let mut redacted = text.to_owned();
    Redactor::default().text(&mut redacted, usize::MAX);
    redacted != text
}

#[cfg(test)]
mod tests {
    use crate::answer::Answer;
    use crate::invariants::testing::{Outcome::*, judged, subject};
    use crate::invariants::{Judgement, testing};

    #[test]
    fn g53_numbers_that_only_look_like_it_are_none() {
        for (answer, expected) in [
            ("Write to ada@mail.example.org", Fails),
            ("Her number is 536-90-4399", Fails),
            ("Card 4111 1111 1111 1111", Fails),
            ("The key is sk-proj-abc_DEF-123456", Fails),
            ("Order 123456789 is on its way", Holds),
            ("Version 1.2.3.4 is out", Holds),
            ("Card 0000 0000 0000 0000", Holds),
            ("Ten digits: 1234567890", Holds),
        ] {
            assert_eq!(judged("{type: excludes_pii}", answer), expected, "{answer}");
        }
    }

    #[test]
    fn what_was_found_is_counted_and_not_repeated() {
        let invariant = testing::invariant("{type: excludes_pii}");
        let answer = Answer::of("ada@mail.example.org, bob@mail.example.org");
        let found = subject("hello", &answer, None, |subject| invariant.judge(subject));
        let Judgement::Judged(verdict) = found else {
            panic!("not judged");
        };
        assert_eq!(verdict.reason(), "the answer holds email (2 times)");
    }
}
