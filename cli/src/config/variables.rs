//! `${VAR}` and `${VAR:-default}` in strings of local files.

use std::env::VarError;

/// Where variables come from: the environment, or a table in tests.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Result<String, VarError>;

/// The process environment.
pub(crate) fn environment(name: &str) -> Result<String, VarError> {
    std::env::var(name)
}

/// Whether a text is one variable and nothing else, not even a default: the form for secrets.
pub(crate) fn is_one_variable(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(is_name)
}

/// Replaces every `${VAR}` and `${VAR:-default}`; `$${` stands for a literal `${`.
///
/// The default is used when the variable is unset or empty, as in a shell. The error is a sentence
/// that names the variable.
pub(crate) fn expand(text: &str, variables: Variables<'_>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        if let Some(after) = rest.strip_prefix("$${") {
            expanded.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let Some(end) = after.find('}') else {
                return Err(format!("`{rest}` is not closed; write `${{NAME}}`"));
            };
            expanded.push_str(&value(&after[..end], variables)?);
            rest = &after[end + 1..];
        } else {
            expanded.push('$');
            rest = &rest[1..];
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// What stands for the inside of one pair of braces.
fn value(inside: &str, variables: Variables<'_>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        return Err(format!(
            "`${{{inside}}}` does not name a variable; write `${{NAME}}` or `${{NAME:-default}}`"
        ));
    }
    match (variables(name), default) {
        (Ok(value), None) => Ok(value),
        (Ok(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (Err(VarError::NotPresent), None) => Err(format!(
            "the variable `{name}` is not set; set it, or write `${{{name}:-default}}`"
        )),
        (Err(VarError::NotUnicode(_)), None) => {
            Err(format!("the variable `{name}` does not hold valid UTF-8"))
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Result<String, VarError> {
        match name {
            "HOST" => Ok("api.example".into()),
            "EMPTY" => Ok(String::new()),
            _ => Err(VarError::NotPresent),
        }
    }

    #[test]
    fn variables_are_expanded_and_missing_ones_are_named() {
        for (written, expected) in [
            ("plain", Ok("plain")),
            ("https://${HOST}/v1", Ok("https://api.example/v1")),
            ("${HOST}${HOST}", Ok("api.exampleapi.example")),
            ("${NOPE:-8080}", Ok("8080")),
            ("${NOPE:-}", Ok("")),
            ("${EMPTY:-full}", Ok("full")),
            ("${EMPTY}", Ok("")),
            ("$${HOST}", Ok("${HOST}")),
            ("cost: $5", Ok("cost: $5")),
            ("${NOPE}", Err("`NOPE` is not set")),
            ("${HOST", Err("is not closed")),
            ("${1X}", Err("does not name a variable")),
            ("${}", Err("does not name a variable")),
        ] {
            match (expand(written, &table), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{written}"),
                (Err(found), Err(expected)) => {
                    assert!(found.contains(expected), "{written}: {found}");
                }
                (found, expected) => panic!("{written}: {found:?}, not {expected:?}"),
            }
        }
    }
}
