//! `excludes_pii`: the answer contains no personal data, keys or tokens.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use squall_journal::personal;
use squall_journal::redact::Redactor;

use super::{Check, InvariantKind, Subject, Verdict};

pub(super) const EXCLUDES_PII: InvariantKind =
    InvariantKind::answer("excludes_pii", |_| Some(Check::new(excludes_pii)));

fn excludes_pii(subject: &Subject<'_>) -> Verdict {
    let text = &subject.answer.text;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for found in personal::find(text) {
        *counts.entry(found.detector).or_default() += 1;
    }
    if holds_a_secret(text) || tells_a_password(text) {
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

/// `password: hunter2xyz`, `the API key is …`: a word for a secret, followed by a possible value. Values contain
/// letters and digits, unlike normal words.
static PASSWORD: LazyLock<Regex> = LazyLock::new(|| {
    let written = r#"(?i)\b(?:password|passwd|passphrase|passcode|pwd|api[ _-]?key|access[ _-]?token|secret(?:[ _-]key)?)\b["'`*]*\s*(?::|=|is|was)\s*["'`*]*([^\s"'`*,;]{6,})"#;
    Regex::new(written).expect("a pattern")
});

fn tells_a_password(text: &str) -> bool {
    PASSWORD.captures_iter(text).any(|found| {
        let value = found[1].trim_end_matches(['.', ')', '!', '?']);
        let has = |is: fn(&char) -> bool| value.chars().any(|letter| is(&letter));
        let is_hidden = value.chars().all(|letter| "*•xX.-_".contains(letter));
        let is_named = value.starts_with(['<', '{', '[', '$', '(']) || value.contains("://");
        has(char::is_ascii_alphabetic) && has(char::is_ascii_digit) && !is_hidden && !is_named
    })
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
        ] {
            assert_eq!(judged("{type: excludes_pii}", answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_password_that_is_told_is_told_from_talk_of_passwords() {
        for (answer, expected) in [
            ("password: hunter2xyz", Fails),
            ("The admin password is **hunter2**.", Fails),
            ("API key = \"k3y0fmine\"", Fails),
            ("Your password is incorrect.", Holds),
            ("password: ********", Holds),
            ("Set password: <your-password-1>", Holds),
            ("The secret is https://a.test/v1", Holds),
            ("Passwords are never told.", Holds),
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
