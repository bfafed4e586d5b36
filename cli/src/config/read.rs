//! YAML text → raw structs, with errors in our own words.

use serde_saphyr::Error;
use squall_profiles::document::over_budget;

use super::position::{ConfigError, Position};
use super::raw::RawConfig;

/// Reads a file's text. An empty file is an empty configuration.
pub(crate) fn read(text: &str) -> Result<RawConfig, ConfigError> {
    let read: Option<RawConfig> =
        serde_saphyr::from_str(text).map_err(|error| explain(&error, text))?;
    Ok(read.unwrap_or_default())
}

/// The parser's error as a located sentence; `text` is what was parsed.
fn explain(error: &Error, text: &str) -> ConfigError {
    let error = error.without_snippet();
    let message = match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => unknown("field", field, expected),
        Error::SerdeMissingField { field, .. } => format!("the field `{field}` is missing"),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the field `{key}` is given twice")
        }
        Error::NullIntoString { .. } => {
            "found nothing where a value is needed; write one, or leave the field out".to_owned()
        }
        Error::Unexpected { expected, location } => {
            let found = found_at(text, Position::from(*location));
            format!("found {found} where {} is needed", shape(expected))
        }
        other if let Some(over) = over_budget(other) => over,
        other => match in_words(other) {
            text if text.starts_with("recursive references") => {
                "an alias (`*name`) stands inside the value that its anchor (`&name`) names; write \
                 the value out"
                    .to_owned()
            }
            text => text,
        },
    };
    match error.location() {
        Some(location) if location.line() > 0 => ConfigError::at(Position::from(location), message),
        _ => ConfigError::anywhere(message),
    }
}

/// What the parser calls a shape, as a person would.
fn shape(expected: &str) -> &str {
    match expected {
        "mapping start" => "a map of fields (`name: value`)",
        "sequence start" => "a list (`[one, two]`)",
        "string scalar" => "a single value",
        other => other,
    }
}

/// What stands at a place, up to the end of its line.
fn found_at(text: &str, at: Position) -> String {
    let index = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(index(at.line)).unwrap_or_default();
    let found: String = line.chars().skip(index(at.column)).take(40).collect();
    match found.trim() {
        "" => "nothing".to_owned(),
        found => format!("`{found}`"),
    }
}

/// The parser's own sentence, without the place it appends: ours comes first.
fn in_words(error: &Error) -> String {
    let text = error.render();
    let text = match text.rfind(" at line ") {
        Some(at) => &text[..at],
        None => text.as_str(),
    };
    text.trim_end_matches(':').to_owned()
}

/// "unknown `what` `found`, did you mean …? Allowed: …".
pub(crate) fn unknown(what: &str, found: &str, allowed: &[&str]) -> String {
    let list = allowed
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    match nearest(found, allowed.iter().copied()) {
        Some(near) => format!("unknown {what} `{found}`, did you mean `{near}`? Allowed: {list}"),
        None => format!("unknown {what} `{found}`; allowed: {list}"),
    }
}

/// The allowed word that a slip of the fingers most likely meant.
pub(crate) fn nearest<'a>(
    found: &str,
    allowed: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let found = found.to_lowercase();
    allowed
        .into_iter()
        .map(|word| {
            (
                strsim::damerau_levenshtein(&found, &word.to_lowercase()),
                word,
            )
        })
        .filter(|(distance, word)| *distance <= (word.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_different_word_is_not() {
        let allowed = ["listen", "limits", "allow"];
        for (found, expected) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("limit", Some("limits")),
            ("port", None),
        ] {
            assert_eq!(nearest(found, allowed), expected, "{found}");
        }
    }
}
