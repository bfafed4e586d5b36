//! Checks the headers of an agent: each must be valid, and none may contain a secret in plain text.

use squall_documents::{At, DocumentReader};
use squall_journal::redact::{Redactor, is_secret_header};

use super::variables::{Piece, bare_names, pieces};

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
        unset(reader, &written, value);
    }
}

/// Warns about a variable in a header or query parameter that is not set, and is sent literally.
pub(super) fn unset(reader: &mut DocumentReader, written: &str, value: &At<String>) {
    let mut unset =
        bare_names(written).filter(|name| is_of_environment(name) && is_sent(name, &value.value));
    if let Some(name) = unset.next() {
        let message = format!(
            "the variable `{name}` is not set, so that `${name}` is sent as it stands; set it, or write `${{{name}}}`, \
             which is an error as long as it is not"
        );
        reader.note(value.position, message);
    }
}

/// Whether a bare `$VAR` is a variable: it is in capitals, like environment variables, or it is set.
fn is_variable(name: &str, expanded: &str) -> bool {
    is_of_environment(name) || !is_sent(name, expanded)
}

fn is_of_environment(name: &str) -> bool {
    !name.contains(|c: char| c.is_ascii_lowercase())
}

fn is_sent(name: &str, expanded: &str) -> bool {
    expanded.contains(&format!("${name}"))
}

/// A correction for a secret in plain text or in the default of a variable. It is recognised by the header's name
/// or by its form.
fn without_secrets(name: &str, written: &str, expanded: &str) -> Option<String> {
    let pieces = pieces(written);
    let braced = |piece: &Piece<'_>| matches!(piece, Piece::Variable { .. });
    let has_variable =
        pieces.iter().any(braced) || bare_names(written).any(|name| is_variable(name, expanded));
    let by_name = is_secret_header(name) && {
        let literal = !has_variable && !is_small_number(written);
        literal || pieces.iter().any(has_secret_default)
    };
    let in_clear: String = pieces.iter().map(|piece| in_clear(*piece)).collect();
    if !by_name && !shows_a_secret(&in_clear) {
        return None;
    }
    let variable = variable_for(name);
    if has_variable || !is_secret_header(name) {
        let kept = pieces.iter().map(|piece| shown(*piece, &variable));
        let kept: String = kept.collect();
        if !shows_a_secret(&kept) {
            return Some(kept);
        }
    }
    // The scheme is not secret and is kept.
    let scheme = written.split_once(' ').map(|(scheme, _)| scheme);
    let scheme = scheme.filter(|scheme| scheme.chars().all(|c| c.is_ascii_alphabetic()));
    let scheme = scheme.map_or_else(String::new, |scheme| format!("{scheme} "));
    Some(format!("{scheme}{variable}"))
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

fn has_secret_default(piece: &Piece<'_>) -> bool {
    matches!(piece, Piece::Variable { default: Some(default), .. } if !is_small_number(default))
}

/// The plain text of a piece.
fn in_clear(piece: Piece<'_>) -> String {
    match piece {
        Piece::Literal(text) => text.to_owned(),
        Piece::Variable { name, default } => {
            default.map_or_else(|| format!("${{{name}}}"), str::to_owned)
        }
    }
}

/// The piece without a default, and with a variable in place of a secret.
fn shown(piece: Piece<'_>, variable: &str) -> String {
    let text = match piece {
        Piece::Literal(text) => text,
        Piece::Variable { name, .. } => return format!("${{{name}}}"),
    };
    let (mut shown, mut from) = (String::new(), 0);
    for found in Redactor::default().find(text) {
        shown.push_str(&text[from..found.range.start]);
        shown.push_str(variable);
        from = found.range.end;
    }
    shown.push_str(&text[from..]);
    shown
}

/// The value of a variable is not plain text.
fn shows_a_secret(text: &str) -> bool {
    let found = Redactor::default().find(text);
    found
        .iter()
        .any(|one| !text[one.range.clone()].contains("${"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_clear_is_known_by_its_header_and_by_its_shape() {
        for (name, written, instead) in [
            (
                "X-Foo",
                "sk-proj-abcdefghijklmnopqrstuvwxyz0123",
                Some("${AGENT_X_FOO}"),
            ),
            (
                "X-Note",
                "Bearer abcdefgh123456789",
                Some("Bearer ${AGENT_X_NOTE}"),
            ),
            (
                "X-Note",
                "key=sk-proj-abcdefgh1234, for ${WHOM}",
                Some("key=${AGENT_X_NOTE}, for ${WHOM}"),
            ),
            ("X-Note", "${KEY:-sk-proj-abcdefgh1234}", Some("${KEY}")),
            (
                "X-Note",
                "Bearer ${KEY:-abcdefgh123456789}",
                Some("Bearer ${KEY}"),
            ),
            (
                "Authorization",
                "Bearer ${TOK:-sk-abc123}",
                Some("Bearer ${TOK}"),
            ),
            (
                "Authorization",
                "Bearer abcdef",
                Some("Bearer ${AGENT_AUTHORIZATION}"),
            ),
            ("Authorization", "pa$word", Some("${AGENT_AUTHORIZATION}")),
            (
                "Authorization",
                "Bearer abc$${def}",
                Some("Bearer ${AGENT_AUTHORIZATION}"),
            ),
            (
                "Authorization",
                "Bearer sk-proj-abcdefgh1234 ${X}",
                Some("Bearer ${AGENT_AUTHORIZATION} ${X}"),
            ),
            (
                "X-Foo",
                "sk-proj-${KEY:-abcdefgh1234}",
                Some("sk-proj-${KEY}"),
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
