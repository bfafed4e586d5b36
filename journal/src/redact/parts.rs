//! Fields of `multipart/form-data` (RFC 7578) that are secrets by their names.

use std::sync::LazyLock;

use regex::Regex;

use super::detect::Found;
use super::names::is_secret_parameter;

/// The head of a part, and the line behind it.
static HEADS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)content-disposition:[ \t]*form-data[^\r\n]*?;[ \t]*name=",
        r#"(?:"(?P<quoted>[^"\r\n]*)"|(?P<plain>[^";\s]+))[^\r\n]*\r?\n"#,
        r"(?:[^\r\n]+\r?\n)*\r?\n",
    ))
    .expect("the pattern is a constant and compiles")
});

/// Values of fields that are secrets by their names. A part that is cut off goes to the end.
pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    // What stands within a secret goes with it.
    let mut seen = 0;
    for head in HEADS.captures_iter(text) {
        let Some(start) = head.get(0).map(|head| head.end()) else {
            continue;
        };
        let name = head.name("quoted").or_else(|| head.name("plain"));
        let is_secret = name.is_some_and(|name| is_secret_parameter(name.as_str()));
        if !is_secret || start <= seen {
            continue;
        }
        let rest = &text[start..];
        let end = rest.find("\n--").unwrap_or(rest.len());
        let value = rest[..end].strip_suffix('\r').unwrap_or(&rest[..end]);
        if !value.is_empty() {
            seen = start + value.len();
            found.push(Found::new(start..seen, "form field"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        find(text, &mut found);
        found.into_iter().map(|one| &text[one.range]).collect()
    }

    #[test]
    fn fields_that_are_secrets_by_their_names_are_found() {
        let part = |head: &str, value: &str| {
            format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n")
        };
        for (parts, expected) in [
            (part("name=\"password\"", "a\r\nb"), &["a\r\nb"][..]),
            (
                part(
                    "name=\"api_key\"; filename=\"k\"\r\nContent-Type: text/plain",
                    "a",
                ),
                &["a"],
            ),
            (
                part("filename=\"k\"; name=token", "a") + &part("name=\"sig\"", "b"),
                &["a", "b"],
            ),
            (part("name=\"password\"", ""), &[]),
            (part("name=\"file\"; filename=\"password\"", "a"), &[]),
            (part("name=\"model\"", "a"), &[]),
        ] {
            for text in [parts.clone() + "--b--\r\n", parts.trim_end().to_owned()] {
                assert_eq!(fields(&text), expected, "{text}");
            }
        }
        let lenient = "--b\nContent-Disposition: form-data; name=password\n\na\n--b--";
        assert_eq!(fields(lenient), ["a"]);
    }
}
