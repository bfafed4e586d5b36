//! Checks the headers of an agent: each must be valid, and none may contain a secret in plain text.

use std::sync::LazyLock;

use regex::Regex;
use squall_documents::{At, DocumentReader};
use squall_journal::redact::{Redactor, is_secret_header};

use super::variables::bare_names;

/// Reports errors in a header.
pub(super) fn check(reader: &mut DocumentReader, name: &At<String>, value: &At<String>) {
    if http::HeaderName::from_bytes(name.value.as_bytes()).is_err() {
        let message = format!("`{}` is no name for a header", name.value);
        reader.error(name.position, message);
    } else if http::HeaderValue::from_str(&value.value).is_err() {
        let message = format!("the value of `{}` cannot be sent in a header", name.value);
        reader.error(value.position, message);
    } else {
        let written = reader.unexpanded(value.position).unwrap_or(&value.value);
        let written = written.to_owned();
        if let Some(instead) = without_secrets(&name.value, &written, &value.value) {
            let message = format!(
                "the header `{0}` holds a secret in clear; write `{0}: \"{instead}\"` and set the variable",
                name.value
            );
            reader.error(value.position, message);
        }
    }
}

/// Whether a bare `$VAR` is a variable: it is in capitals, like environment variables, or it is set.
fn is_variable(name: &str, expanded: &str) -> bool {
    let is_set = !expanded.contains(&format!("${name}"));
    is_set || !name.contains(|c: char| c.is_ascii_lowercase())
}

/// `${NAME}` or `${NAME:-default}`.
static BRACED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{[^}:]*(?::-(?P<default>[^}]*))?[^}]*\}").expect("a constant pattern")
});

/// A correction for a secret in plain text or in the default of a variable. It is recognised by the header's name
/// or by its form.
fn without_secrets(name: &str, written: &str, expanded: &str) -> Option<String> {
    let unescaped = written.replace("$${", "{");
    let mut defaults = BRACED
        .captures_iter(&unescaped)
        .filter_map(|found| found.name("default"));
    let by_name = is_secret_header(name) && {
        let has_variable = BRACED.is_match(&unescaped)
            || bare_names(written).any(|name| is_variable(name, expanded));
        let literal = !has_variable && !is_small_number(written);
        literal || defaults.any(|default| !is_small_number(default.as_str()))
    };
    let in_clear = BRACED.replace_all(&unescaped, "$default");
    if !by_name && Redactor::default().find(&in_clear).is_empty() {
        return None;
    }
    // The scheme is not secret and is kept.
    let scheme = written.split_once(' ').map(|(scheme, _)| scheme);
    let scheme = scheme.filter(|scheme| scheme.chars().all(|c| c.is_ascii_alphabetic()));
    let scheme = scheme.map_or_else(String::new, |scheme| format!("{scheme} "));
    Some(format!("{scheme}{}", variable_for(name)))
}

fn variable_for(header: &str) -> String {
    let word = header
        .to_uppercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("${{AGENT_{word}}}")
}

/// `X-Token-Count: 5` is a count, and no secret is that short.
fn is_small_number(text: &str) -> bool {
    text.len() < 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_clear_is_known_by_its_header_and_by_its_shape() {
        let authorization = Some("Bearer ${AGENT_AUTHORIZATION}");
        let (foo, note) = (Some("${AGENT_X_FOO}"), Some("${AGENT_X_NOTE}"));
        for (name, written, instead) in [
            ("X-Foo", "sk-proj-abcdefghijklmnopqrstuvwxyz0123", foo),
            ("X-Note", "key=sk-proj-abcdefgh1234, for ${WHOM}", note),
            ("X-Note", "${KEY:-sk-proj-abcdefgh1234}", note),
            ("X-Foo", "sk-proj-${KEY:-abcdefgh1234}", foo),
            ("Authorization", "Bearer ${TOK:-sk-abc123}", authorization),
            ("Authorization", "Bearer abcdef", authorization),
            ("Authorization", "Bearer abc$${def}", authorization),
            ("Authorization", "pa$word", Some("${AGENT_AUTHORIZATION}")),
            (
                "Authorization",
                "Bearer sk-proj-abcdefgh1234 ${X}",
                authorization,
            ),
            ("Authorization", "Bearer ${TOK}", None),
            ("Authorization", "Bearer ${TOK:-}", None),
            ("Authorization", "Bearer $TOK", None),
            ("X-Token-Count", "${COUNT:-5}", None),
            ("X-Foo", "https://${USER}:${PASS}@a.test/", None),
            ("X-Foo", "${LEVEL:-high}", None),
            ("X-Request-Id", "0193a1b2-c3d4-7000-8001-beefbeefbeef", None),
        ] {
            assert_eq!(
                without_secrets(name, written, written).as_deref(),
                instead,
                "{name}: {written}"
            );
        }
    }
}
