//! `${VAR}` and `${VAR:-default}` in strings of local files.

use std::collections::BTreeMap;

/// Why a variable has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableError {
    /// It is not set.
    NotSet,
    /// Its value cannot be used; a sentence that names the variable.
    Invalid(String),
}

/// How the variables of a text are resolved. Their values are secret.
#[derive(Clone, Copy)]
pub enum Variables<'a> {
    /// Variables are an error. A document from a client must not read this process's environment.
    Refused,
    /// Every variable is resolved by this function.
    From(&'a dyn Fn(&str) -> Result<String, VariableError>),
    /// Variables for which the function returns `None` are an error. A document from a client may read only the
    /// variables that the config lists in `api.env`.
    Listed(&'a dyn Fn(&str) -> Option<Result<String, VariableError>>),
}

impl std::fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Refused => "Refused",
            Self::From(_) => "From(..)",
            Self::Listed(_) => "Listed(..)",
        })
    }
}

/// Whether a text is exactly one variable without a default. This is the required form for secrets.
pub fn is_one_variable(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(is_variable_name)
}

/// Whether this is a valid variable name: letters, digits and `_`, not starting with a digit.
pub fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a text contains `${`, as a variable or escaped.
pub fn mentions_variable(text: &str) -> bool {
    text.contains("${")
}

/// Longest text after the expansion of variables, in bytes.
const LONGEST: usize = 4 << 20;

/// Replaces every `${VAR}` and `${VAR:-default}`; `$${` is a literal `${`.
///
/// The default is used if the variable is unset or empty, as in a shell. The error is a sentence that names the
/// variable.
pub fn expand(text: &str, variables: Variables<'_>) -> Result<String, String> {
    expand_noting(text, variables, &mut Expanded::default())
}

/// Like [`expand`], and adds the variables that are set to `found`.
pub(crate) fn expand_noting(
    text: &str,
    variables: Variables<'_>,
    found: &mut Expanded,
) -> Result<String, String> {
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
            let value = value(&after[..end], variables, found)?;
            if expanded.len() + value.len() > LONGEST {
                return Err(format!(
                    "its variables make this text longer than {LONGEST} bytes; name them less often"
                ));
            }
            expanded.push_str(&value);
            rest = &after[end + 1..];
        } else {
            expanded.push('$');
            rest = &rest[1..];
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The values of a document's variables, by name. `Debug` prints only the names.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Expanded(BTreeMap<String, String>);

impl Expanded {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The values, which are secret.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// Adds the variables of another document.
    pub(crate) fn add(&mut self, other: &Self) {
        let others = other.0.iter();
        self.0
            .extend(others.map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Whether it contains no variable.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Expanded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The value for the content of one pair of braces.
fn value(inside: &str, variables: Variables<'_>, seen: &mut Expanded) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_variable_name(name) {
        return Err(format!(
            "`${{{inside}}}` does not name a variable; write `${{NAME}}` or `${{NAME:-default}}`"
        ));
    }
    let found = match variables {
        Variables::Refused => None,
        Variables::From(lookup) => Some(lookup(name)),
        Variables::Listed(lookup) => lookup(name),
    };
    let Some(found) = found else {
        let list = match variables {
            Variables::Listed(_) => format!("list `{name}` in the config's `api.env`, "),
            Variables::Refused | Variables::From(_) => String::new(),
        };
        return Err(format!(
            "`${{{inside}}}` does not expand in a document that arrives by API; {list}write the value, or \
             `$${{{inside}}}` for the text itself"
        ));
    };
    if let Ok(value) = &found {
        seen.0.insert(name.to_owned(), value.clone());
    }
    match (found, default) {
        (Ok(value), None) => Ok(value),
        (Ok(value), Some(_)) if !value.is_empty() => Ok(value),
        // A default does not hide a file that cannot be read.
        (Err(VariableError::Invalid(why)), _) => Err(why),
        (_, Some(default)) => Ok(default.to_owned()),
        (Err(VariableError::NotSet), None) => Err(format!(
            "the variable `{name}` is not set; set it, or write `${{{name}:-default}}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Result<String, VariableError> {
        match name {
            "HOST" => Ok("api.example".into()),
            "EMPTY" => Ok(String::new()),
            "BROKEN" => Err(VariableError::Invalid("cannot be read".into())),
            _ => Err(VariableError::NotSet),
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
            ("${BROKEN:-x}", Err("cannot be read")),
            ("${HOST", Err("is not closed")),
            ("${1X}", Err("does not name a variable")),
            ("${}", Err("does not name a variable")),
        ] {
            match (expand(written, Variables::From(&table)), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{written}"),
                (Err(found), Err(expected)) => {
                    assert!(found.contains(expected), "{written}: {found}");
                }
                (found, expected) => panic!("{written}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_document_that_was_sent_names_no_variable() {
        let error = expand("${HOST:-x}", Variables::Refused).unwrap_err();
        assert!(error.contains("`${HOST:-x}` does not expand"), "{error}");
        assert_eq!(expand("$${HOST}", Variables::Refused).unwrap(), "${HOST}");
    }

    #[test]
    fn a_document_that_was_sent_names_listed_variables_only() {
        let listed = |name: &str| (name != "HOST").then(|| table(name));
        let mut kept = Expanded::default();
        let expanded = expand_noting("${EMPTY}${NOPE:-x}", Variables::Listed(&listed), &mut kept);
        assert_eq!(expanded.unwrap(), "x");
        assert_eq!(kept.iter().collect::<Vec<_>>(), [("EMPTY", "")]);
        for (written, said) in [
            ("${HOST:-x}", "list `HOST` in the config's `api.env`"),
            ("${NOPE}", "`NOPE` is not set"),
        ] {
            let error = expand(written, Variables::Listed(&listed)).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn what_was_looked_up_is_kept_and_not_printed() {
        let mut expanded = Expanded::default();
        let text = expand_noting(
            "${HOST} ${NOPE:-x} ${EMPTY}",
            Variables::From(&table),
            &mut expanded,
        );
        assert_eq!(text.unwrap(), "api.example x ");
        let found: Vec<_> = expanded.iter().collect();
        assert_eq!(found, [("EMPTY", ""), ("HOST", "api.example")]);
        assert_eq!(format!("{expanded:?}"), "{\"EMPTY\", \"HOST\"}");
    }
}
