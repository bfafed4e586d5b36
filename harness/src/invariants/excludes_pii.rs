//! `excludes_pii`: the answer contains no personal data, keys or tokens.

use squall_journal::personal;
use squall_journal::redact::Redactor;
use std::collections::BTreeMap;

use super::{Check, InvariantKind, Subject, Verdict};

pub(super) const EXCLUDES_PII: InvariantKind =
    InvariantKind::answer("excludes_pii", |_| Some(Check::new(excludes_pii)));

fn excludes_pii(subject: &Subject<'_>) -> Verdict {
    let text = &subject.answer.text;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for found in personal::find(text) {
        *counts.entry(found.detector).or_default() += 1;
    }
    if holds_a_secret(text) {
        counts.insert("a secret", 1);
    }
    if counts.is_empty() {
        return Verdict::holds("no personal data was found");
    }
    // The reason does not repeat the values.
    let found = counts.iter().map(|(name, count)| match count {
        1 => (*name).to_owned(),
        count => format!("{name} ({count} times)"),
    });
    let found: Vec<_> = found.collect();
    Verdict::fails(format!("the answer holds {}", found.join(", ")))
}

/// Whether a text contains a possible key or token.
pub(super) fn holds_a_secret(text: &str) -> bool {
    let mut redacted = text.to_owned();
    Redactor::default().text(&mut redacted, usize::MAX);
    redacted != text
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, judged, reason};

    #[test]
    fn g53_numbers_that_only_look_like_it_are_none() {
        for (answer, expected) in [
            ("Write to ada@mail.example.org", Fails),
            ("Her number is 536-90-4399", Fails),
            ("Card 4111 1111 1111 1111", Fails),
            ("The key is sk-proj-abc_DEF-123456", Fails),
            ("Ring her on +49 30 901820", Fails),
            ("Pay to DE89 3704 0044 0532 0130 00", Fails),
            ("Order 123456789 is on its way", Holds),
            ("Version 1.2.3.4 is out", Holds),
            ("Card 0000 0000 0000 0000", Holds),
            ("Card 4111 1111 1111 1112", Holds),
            ("Ten digits: 1234567890", Holds),
            ("Use password: hunter2", Holds),
        ] {
            assert_eq!(judged("{type: excludes_pii}", answer), expected, "{answer}");
        }
    }

    #[test]
    fn what_was_found_is_counted_and_not_repeated() {
        let answer = "ada@mail.example.org, bob@mail.example.org";
        let reason = reason("{type: excludes_pii}", "hello", answer);
        assert_eq!(reason, "the answer holds email (2 times)");
    }
}
