//! The first step of reading: text to raw structs. What fails here is the shape of the document:
//! YAML itself, an unknown field, a list where a word belongs.

use serde::de::DeserializeOwned;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach as Breach;

use super::expansion::{Expansion, Strings};
use super::located::{At, Tree};
use super::misshapen::{self, Shape};
use crate::error::{self, Position, ProfileError};
use crate::variables::{Expanded, Variables, mentions_variable, recorded};
use squall_journal::redact::Redactor;

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Read<T> {
    /// The raw struct, variables expanded.
    pub(crate) raw: T,
    /// What variables stood for in its texts.
    pub(crate) redactor: Redactor,
    /// What variables stood for anywhere.
    pub(crate) expanded: Expanded,
}

/// Why a document was not read.
pub(crate) struct Unread {
    /// What is wrong, in the order of the text.
    pub(crate) errors: Vec<ProfileError>,
    /// The document, if all of the errors are about parts of it.
    pub(crate) tree: Option<At<Tree>>,
}

/// Reads a document into a raw struct and expands its variables, or says where its shape is wrong or
/// which variables are missing, each time all that is.
pub(crate) fn read<T: DeserializeOwned + Strings + Shape>(
    file: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<Read<T>, Unread> {
    let mut raw = read_raw::<T>(file, text)?;
    if !mentions_variable(text) {
        return Ok(Read {
            raw,
            redactor: Redactor::default(),
            expanded: Expanded::default(),
        });
    }
    let ((complaints, secrets), expanded) = recorded(variables, |variables| {
        let mut expansion = Expansion::new(variables);
        raw.expand(Position::default(), &mut expansion);
        (expansion.complaints, expansion.secrets)
    });
    if complaints.is_empty() {
        return Ok(Read {
            raw,
            redactor: Redactor::with_values(secrets),
            expanded,
        });
    }
    let tree = from_str::<At<Tree>>(text).ok();
    let mut errors = Vec::new();
    for (position, message) in complaints {
        if error::is_full(&errors) {
            break;
        }
        let pointer = tree.as_ref().and_then(|tree| pointer_to(tree, position));
        let error = ProfileError {
            file: file.to_owned(),
            position,
            pointer: pointer.unwrap_or_default(),
            message,
        };
        error::note(&mut errors, error);
    }
    errors.sort_by_key(|error| error.position);
    Err(Unread { errors, tree })
}

fn read_raw<T: DeserializeOwned + Shape>(file: &str, text: &str) -> Result<T, Unread> {
    from_str(text).map_err(|error| {
        let tree = from_str::<At<Tree>>(text).ok();
        let complaints = tree
            .as_ref()
            .map(|tree| misshapen::complaints::<T>(file, text, tree));
        if let Some(complaints) = complaints.filter(|complaints| !complaints.is_empty()) {
            return Unread {
                errors: complaints,
                tree,
            };
        }
        Unread {
            errors: vec![unreadable(file, text, &error, tree.as_ref())],
            tree: None,
        }
    })
}

/// What the reader stopped at.
pub(crate) fn unreadable(
    file: &str,
    text: &str,
    error: &Error,
    tree: Option<&At<Tree>>,
) -> ProfileError {
    let position = error.location().map(Position::from).unwrap_or_default();
    ProfileError {
        file: file.to_owned(),
        position,
        pointer: tree
            .and_then(|tree| pointer_to(tree, position))
            .unwrap_or_default(),
        message: message(error, &found_at(text, position)),
    }
}

/// Most that aliases may stand for, in parts of the document: a few lines can name each other into millions.
const REPLAYED: usize = 100_000;

/// Reads YAML or JSON (which is YAML), with room for tens of thousands of rules.
pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let budget = serde_saphyr::budget! {
        max_events: 8_000_000,
        max_nodes: 4_000_000,
        max_total_scalar_bytes: 256 * 1024 * 1024,
    };
    let alias_limits = serde_saphyr::alias_limits! {
        max_total_replayed_events: REPLAYED,
        max_alias_expansions_per_anchor: REPLAYED,
    };
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: budget,
        alias_limits: alias_limits,
        // `y`, `no` and `on` are words (YAML 1.2.2 §10.3.2), and somebody's names.
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// What of a document is more than its reader takes; `None`: something else is wrong.
pub(crate) fn over_budget(error: &Error) -> Option<String> {
    let most = |one_more: usize, what: &str, remedy: &str| {
        format!(
            "the document has more than {} {what}; {remedy}",
            one_more - 1
        )
    };
    let fewer_aliases = "write out what some of them stand for";
    Some(match error {
        Error::AliasError { error, .. } => return over_budget(error),
        Error::AliasReplayLimitExceeded {
            max_total_replayed_events: most,
            ..
        } => format!("its aliases (`*name`) stand for more than {most} values; use fewer of them"),
        Error::AliasExpansionLimitExceeded {
            max_expansions_per_anchor: most,
            ..
        } => format!("more than {most} aliases (`*name`) name one anchor; {fewer_aliases}"),
        Error::AliasReplayStackDepthExceeded {
            max_depth: most, ..
        } => format!(
            "aliases (`*name`) lead on to others for more than {most} steps; {fewer_aliases}"
        ),
        Error::AliasReplayCounterOverflow { .. } => {
            "its aliases (`*name`) stand for too many values; use fewer of them".to_owned()
        }
        Error::Budget { breach, .. } => match breach {
            Breach::Nodes { nodes } => most(*nodes, "values, names included", "write it shorter"),
            Breach::Events { events } => most(
                *events,
                "values and ends of lists and maps",
                "write it shorter",
            ),
            Breach::Aliases { aliases } => most(*aliases, "aliases (`*name`)", fewer_aliases),
            Breach::Anchors { anchors } => most(*anchors, "anchors (`&name`)", "name fewer values"),
            Breach::AliasAnchorRatio { aliases, anchors } => format!(
                "the document has {aliases} aliases (`*name`) of {anchors} anchors, which is more than 10 of each; \
                 {fewer_aliases}"
            ),
            Breach::Depth { depth } => {
                format!("the document is nested deeper than {} levels", depth - 1)
            }
            Breach::MergeKeys { merge_keys } => most(
                *merge_keys,
                "merge keys (`<<`)",
                "write out what they merge",
            ),
            Breach::ScalarBytes { .. } => {
                "the document's texts are longer than is read; write them shorter".to_owned()
            }
            _ => "the document is more than is read; write it shorter".to_owned(),
        },
        _ => return None,
    })
}

fn message(error: &Error, found: &str) -> String {
    if let Some(over) = over_budget(error) {
        return over;
    }
    match error {
        Error::AliasError { error, .. } => message(error, found),
        Error::SerdeUnknownField {
            field, expected, ..
        } => misshapen::unknown_field(field, expected),
        Error::InvalidScalar { ty, .. } => format!("found `{found}`, allowed is {}", kind(ty)),
        Error::InvalidBooleanStrict { .. } => {
            format!("found `{found}`, allowed is {}", kind("bool"))
        }
        Error::Unexpected { expected, .. } => {
            format!("found `{found}`, allowed is {}", kind(expected))
        }
        Error::SerdeInvalidType {
            unexpected,
            expected,
            ..
        }
        | Error::SerdeInvalidValue {
            unexpected,
            expected,
            ..
        } => {
            format!("found {unexpected}, allowed is {expected}")
        }
        Error::DuplicateMappingKey { key, .. } => format!(
            "`{}` stands here a second time; keep one of them",
            key.as_deref().unwrap_or(found)
        ),
        Error::MultipleDocuments { .. } => {
            "a second document begins here; write one a file".to_owned()
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias (`*name`) stands inside the value that its anchor (`&name`) names; write the value out".to_owned()
        }
        other => {
            let text = other.to_string();
            // The place is told apart from the message.
            text.rfind(" at line ")
                .map_or(text.as_str(), |end| &text[..end])
                .to_owned()
        }
    }
}

/// The reader's words for a type in a user's.
fn kind(expected: &str) -> &str {
    match expected {
        "floating point" | "f64" => "a number",
        "string scalar" => "a text",
        "sequence start" => "a list",
        "mapping start" => "a map",
        "bool" | "boolean" => "`true` or `false`",
        other => other,
    }
}

/// What stands at a place, up to the end of the value or the line.
pub(crate) fn found_at(text: &str, position: Position) -> String {
    let line = text
        .lines()
        .nth(position.line.saturating_sub(1) as usize)
        .unwrap_or_default();
    let rest: String = line
        .chars()
        .skip(position.column.saturating_sub(1) as usize)
        .collect();
    let end = quoted(&rest).unwrap_or_else(|| plain(&rest));
    let found = rest[..end].trim();
    match found.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &found[..end]),
        None => found.to_owned(),
    }
}

/// Where a scalar in quotes ends, behind its closing one.
fn quoted(text: &str) -> Option<usize> {
    let quote = text
        .chars()
        .next()
        .filter(|first| ['"', '\''].contains(first))?;
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        match letter {
            '\\' if quote == '"' => drop(letters.next()),
            '\'' if quote == '\'' && next == Some('\'') => drop(letters.next()),
            _ if letter == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Where anything else ends, as far as one line tells.
fn plain(text: &str) -> usize {
    let mut depth = 0;
    let end = text.char_indices().find_map(|(at, letter)| match letter {
        '[' | '{' => {
            depth += 1;
            None
        }
        ']' | '}' if depth > 1 => {
            depth -= 1;
            None
        }
        ']' | '}' if depth == 1 => Some(at + 1),
        ',' | ']' | '}' | '#' if depth == 0 => Some(at),
        _ => None,
    });
    end.unwrap_or(text.len())
}

/// JSON pointer to the node, or the member's name, that begins last at or before a place.
fn pointer_to(tree: &At<Tree>, target: Position) -> Option<String> {
    let mut best = None;
    visit(tree, "", &mut |position, pointer| {
        let nearer = best
            .as_ref()
            .is_none_or(|(nearest, _)| *nearest <= position);
        if position <= target && nearer {
            best = Some((position, pointer.to_owned()));
        }
    });
    best.map(|(_, pointer)| pointer)
}

fn visit(node: &At<Tree>, pointer: &str, see: &mut impl FnMut(Position, &str)) {
    see(node.position, pointer);
    match &node.value {
        Tree::List(items) => {
            for (index, item) in items.iter().enumerate() {
                visit(item, &format!("{pointer}/{index}"), see);
            }
        }
        Tree::Map(members) => {
            for (key, member) in members {
                let name = key.value.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{name}");
                see(key.position, &pointer);
                visit(member, &pointer, see);
            }
        }
        Tree::Null | Tree::Scalar { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_stand_for_so_much_and_no_more() {
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (last, this) in ["ab", "bc", "cd", "de", "ef"].map(|pair| pair.split_at(1)) {
            let ten = vec![format!("*{last}"); 10].join(", ");
            bomb.push_str(&[this, ": &", this, " [", &ten, "]\n"].concat());
            let read = from_str::<At<Tree>>(&bomb);
            assert_eq!(read.is_ok(), this < "e", "{this}");
        }
        let error = from_str::<At<Tree>>(&bomb).expect_err("too much");
        assert_eq!(
            over_budget(&error).as_deref(),
            Some("its aliases (`*name`) stand for more than 100000 values; use fewer of them")
        );
    }
}
