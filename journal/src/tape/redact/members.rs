//! Members of JSON whose values are secrets by their names: in documents, in JSON that is the text of
//! another document, and in what is only a part of one.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::redact::{REDACTED, is_secret_member, is_secret_number};

/// A member's name and what its value begins with. Of JSON within a text the quotes are escaped.
static HEADS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?P<escape>\\*)"(?P<name>[A-Za-z0-9_.\-]{2,64})\\*"\s*:\s*(?:(?P<number>-?[0-9][0-9.eE+\-]*)|(?P<open>\\*)")"#,
    )
    .expect("the pattern is a constant and compiles")
});

/// Backslashes before a quote of JSON that is a text of JSON, and so on. No more: each is looked for to the
/// end of the text once at most.
const LEVELS: [usize; 5] = [0, 1, 3, 7, 15];

/// Where texts stand that are secrets by the names of their members, without their quotes, in order.
pub(super) fn places(text: &str) -> Vec<Range<usize>> {
    HEADS
        .captures_iter(text)
        .filter_map(|head| secret_text(text, &head))
        .collect()
}

/// Whether a member in a text is a secret by its name.
pub(in crate::tape) fn names_a_secret(text: &str) -> bool {
    HEADS
        .captures_iter(text)
        .any(|head| secret_text(text, &head).is_some() || secret_number(&head).is_some())
}

/// The text without them; `None` where there are none.
pub(super) fn without(text: &str) -> Option<String> {
    let mut redacted = String::new();
    let mut copied = 0;
    for head in HEADS.captures_iter(text) {
        let (place, instead) = if let Some(place) = secret_text(text, &head) {
            (place, REDACTED.to_owned())
        } else if let Some(place) = secret_number(&head) {
            let escape = &head["escape"];
            (place, format!("{escape}\"{REDACTED}{escape}\""))
        } else {
            continue;
        };
        // What stands within a secret went with it.
        if place.start < copied {
            continue;
        }
        redacted.push_str(&text[copied..place.start]);
        redacted.push_str(&instead);
        copied = place.end;
    }
    if copied == 0 {
        return None;
    }
    redacted.push_str(&text[copied..]);
    Some(redacted)
}

fn secret_number(head: &Captures<'_>) -> Option<Range<usize>> {
    let number = head.name("number")?;
    is_secret_number(&head["name"]).then(|| number.range())
}

fn secret_text(text: &str, head: &Captures<'_>) -> Option<Range<usize>> {
    let open = head
        .name("open")
        .filter(|open| LEVELS.contains(&open.len()))?;
    let start = head.get(0)?.end();
    let length = length(&text.as_bytes()[start..], open.len());
    let place = start..start + length;
    is_secret_member(&head["name"], &text[place.clone()]).then_some(place)
}

/// How long a text is that begins here and whose quotes are behind so many backslashes. One that is not
/// closed goes to the end.
///
/// Each level of JSON within JSON writes a backslash as two and a quote behind one: where the closing quote
/// is behind `n`, a backslash of the text itself is `2 (n + 1)`, and a quote of its own behind `2 n + 1`.
fn length(text: &[u8], behind: usize) -> usize {
    let mut run = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\\' => run += 1,
            b'"' if run % (2 * (behind + 1)) == behind => return at - behind,
            _ => run = 0,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_value_is_taken_out_and_nothing_else() {
        for (given, expected) in [
            (
                r#"{"password":"first\"TAIL","n":"x"}"#,
                r#"{"password":"REDACTED","n":"x"}"#,
            ),
            (
                r#"{"password" : "a\\","n":"x"}"#,
                r#"{"password" : "REDACTED","n":"x"}"#,
            ),
            (r#"{"password":"caf\u00e9"}"#, r#"{"password":"REDACTED"}"#),
            (
                r#"{"SecretAccessKey":"wJalr/K7","SessionToken":"x"}"#,
                r#"{"SecretAccessKey":"REDACTED","SessionToken":"REDACTED"}"#,
            ),
            (
                r#"{"credentials":{"userPassword":"a","openaiApiKey":"b"}}"#,
                r#"{"credentials":{"userPassword":"REDACTED","openaiApiKey":"REDACTED"}}"#,
            ),
            (
                r#"{"password":1234,"n":5}"#,
                r#"{"password":"REDACTED","n":5}"#,
            ),
            (
                r#"{"a":"{\"password\":\"x\\\"y\\\\\",\"n\":\"z\"}"}"#,
                r#"{"a":"{\"password\":\"REDACTED\",\"n\":\"z\"}"}"#,
            ),
            (
                r#"{"a":"{\"pwd\":12}"}"#,
                r#"{"a":"{\"pwd\":\"REDACTED\"}"}"#,
            ),
            (
                r#""{\"b\":\"{\\\"passwd\\\":\\\"x\\\\n\\\"}\"}""#,
                r#""{\"b\":\"{\\\"passwd\\\":\\\"REDACTED\\\"}\"}""#,
            ),
            (
                r#"…,"client_secret":"cut in the mid"#,
                r#"…,"client_secret":"REDACTED"#,
            ),
        ] {
            assert_eq!(without(given).as_deref(), Some(expected), "{given}");
            assert_eq!(without(expected).unwrap_or(expected.to_owned()), expected);
            assert!(names_a_secret(given), "{given}");
        }
        for harmless in [
            r#"{"token":" the","key":"colour"}"#,
            r#"{"password":"","secret":null,"properties":{"password":{"type":"string"}}}"#,
            r#"{"required":["password"],"a":"password","b":"c"}"#,
            r#"{"max_tokens":12,"input_token":5}"#,
        ] {
            assert_eq!(without(harmless), None, "{harmless}");
        }
    }

    #[test]
    fn a_place_is_the_value_without_its_quotes() {
        let text = r#"{"password":"a\"b","n":1}"#;
        let found: Vec<_> = places(text).into_iter().map(|place| &text[place]).collect();
        assert_eq!(found, [r#"a\"b"#]);
    }
}
