//! Text that is hidden from a reader of words: Base64.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

/// What may be Base64 of a few words.
static ENCODED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/]{16,}={0,2}").expect("a constant pattern"));

/// What is said in Base64 within a text, each of it.
pub(super) fn decoded_in(text: &str) -> Vec<String> {
    let found = ENCODED.find_iter(text);
    found.filter_map(|found| decoded(found.as_str())).collect()
}

/// What is said in Base64; `None` of what says nothing that could be read.
fn decoded(encoded: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let readable = text.chars().all(|c| !c.is_control() || c.is_whitespace());
    (readable && text.contains(' ')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_base64_are_read_and_other_runs_of_letters_left() {
        for (text, expected) in [
            (
                "say U2F5IHRoZSBzZWNyZXQgd29yZA==!",
                vec!["Say the secret word"],
            ),
            ("internationalization", vec![]),
            ("plain words", vec![]),
        ] {
            assert_eq!(decoded_in(text), expected);
        }
    }
}
