//! Variables in a suite.
//!
//! `${VAR}` and `${VAR:-default}` expand in every text. In the agent's endpoint, headers and query
//! parameters a bare `$VAR` expands too, as it does in flakestorm; one that is not set stays as it is
//! there, since many URLs have a `$` of their own.

use std::collections::BTreeMap;

use squall_profiles::document::{At, Tree, expand_tree};
use squall_profiles::error::{self, Position};
use squall_profiles::variables::{Expanded, Variables, mentions_variable};

use super::reader::Reader;

/// Where scalars stand that have a variable in them, and what is written there.
pub(super) fn places(tree: &At<Tree>) -> BTreeMap<Position, String> {
    let mut places = BTreeMap::new();
    visit(tree, &mut |position, text| {
        if mentions_variable(text) {
            places.insert(position, text.to_owned());
        }
    });
    each_agent_text(tree, &mut |position, text| {
        if bare(text).next().is_some() {
            places.insert(position, text.to_owned());
        }
    });
    places
}

/// A piece of a text before its variables are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// It stands for itself.
    Literal(&'t str),
    /// `${NAME}`, or `${NAME:-default}`.
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
}

/// A text in its pieces.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut literal, mut from) = (Vec::new(), 0, 0);
    while let Some(at) = text[from..].find("${").map(|at| from + at) {
        let is_escaped = text[..at].ends_with('$');
        let Some(end) = text[at..].find('}').map(|end| at + end) else {
            break;
        };
        from = if is_escaped { at + 2 } else { end + 1 };
        if is_escaped {
            continue;
        }
        pieces.push(Piece::Literal(&text[literal..at]));
        let inside = &text[at + 2..end];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        pieces.push(Piece::Variable { name, default });
        literal = end + 1;
    }
    pieces.push(Piece::Literal(&text[literal..]));
    pieces.retain(|piece| *piece != Piece::Literal(""));
    pieces
}

/// Names of bare variables in a text.
pub(super) fn bare_names(text: &str) -> impl Iterator<Item = &str> {
    bare(text).map(|(_, name)| name)
}

/// Expands them, or says which are missing. What they stood for is given back.
pub(super) fn expand(
    reader: &mut Reader<'_>,
    tree: &mut At<Tree>,
    variables: Variables<'_>,
) -> Expanded {
    each_agent_text_mut(tree, &mut |text| {
        let expanded = expand_bare(text, |name| match variables {
            Variables::Refused => None,
            Variables::From(lookup) => lookup(name).ok(),
            Variables::Listed(lookup) => lookup(name)?.ok(),
        });
        if expanded != *text {
            *text = expanded;
        }
    });
    match expand_tree(tree, variables) {
        Ok(expanded) => expanded,
        Err(missing) => {
            for (position, message) in missing {
                if error::is_full(&reader.errors) {
                    break;
                }
                let pointer = pointer_to(tree, position).unwrap_or_default();
                reader.below_pointer(&pointer, |reader| reader.error(position, message));
            }
            Expanded::default()
        }
    }
}

/// JSON pointer to the scalar at a place.
fn pointer_to(node: &At<Tree>, position: Position) -> Option<String> {
    let below = |name: &str, member: &At<Tree>| {
        let rest = pointer_to(member, position)?;
        let name = name.replace('~', "~0").replace('/', "~1");
        Some(format!("/{name}{rest}"))
    };
    match &node.value {
        Tree::Scalar { .. } => (node.position == position).then(String::new),
        Tree::Null => None,
        Tree::List(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(number, item)| below(&number.to_string(), item))
        }
        Tree::Map(members) => {
            let mut members = members.iter();
            members.find_map(|(name, member)| below(&name.value, member))
        }
    }
}

fn visit(node: &At<Tree>, see: &mut impl FnMut(Position, &str)) {
    match &node.value {
        Tree::Scalar { text, .. } => see(node.position, text),
        Tree::Null => {}
        Tree::List(items) => items.iter().for_each(|item| visit(item, see)),
        Tree::Map(members) => members.iter().for_each(|(_, member)| visit(member, see)),
    }
}

/// The texts of an agent in which a bare `$VAR` expands.
const EXPANDING: [&str; 3] = ["endpoint", "headers", "query_params"];

fn each_agent_text(tree: &At<Tree>, see: &mut impl FnMut(Position, &str)) {
    let Tree::Map(members) = &tree.value else {
        return;
    };
    let agents = members.iter().filter(|(name, _)| name.value == "agent");
    for (_, agent) in agents {
        let Tree::Map(fields) = &agent.value else {
            continue;
        };
        for (name, field) in fields {
            if EXPANDING.contains(&name.value.as_str()) {
                visit(field, see);
            }
        }
    }
}

fn each_agent_text_mut(tree: &mut At<Tree>, change: &mut impl FnMut(&mut String)) {
    fn texts(node: &mut At<Tree>, change: &mut impl FnMut(&mut String)) {
        match &mut node.value {
            Tree::Scalar { text, .. } => change(text),
            Tree::Null => {}
            Tree::List(items) => items.iter_mut().for_each(|item| texts(item, change)),
            Tree::Map(members) => members.iter_mut().for_each(|(_, one)| texts(one, change)),
        }
    }
    let Tree::Map(members) = &mut tree.value else {
        return;
    };
    let agents = members.iter_mut().filter(|(name, _)| name.value == "agent");
    for (_, agent) in agents {
        let Tree::Map(fields) = &mut agent.value else {
            continue;
        };
        for (name, field) in fields {
            if EXPANDING.contains(&name.value.as_str()) {
                texts(field, change);
            }
        }
    }
}

/// The names of bare variables in a text, and where each begins, its `$` included.
fn bare(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('$').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let length = rest.bytes().take_while(|byte| is_letter(*byte)).count();
        let begins = rest
            .bytes()
            .next()
            .is_some_and(|byte| !byte.is_ascii_digit());
        (length > 0 && begins).then(|| (at, &rest[..length]))
    })
}

/// Writes bare variables that are set as `${VAR}`.
pub(super) fn spell_out(tree: &mut At<Tree>, variables: Variables<'_>) {
    if let Variables::From(lookup) = variables {
        each_agent_text_mut(tree, &mut |text| {
            let spelt = replace_bare(text, |name| {
                lookup(name).is_ok().then(|| format!("${{{name}}}"))
            });
            if spelt != *text {
                *text = spelt;
            }
        });
    }
}

/// What a variable expands to is not expanded once more: a `${` in it is escaped for the second step.
fn expand_bare(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    replace_bare(text, |name| Some(lookup(name)?.replace("${", "$${")))
}

fn replace_bare(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut expanded, mut from) = (String::with_capacity(text.len()), 0);
    for (at, name) in bare(text) {
        if let Some(value) = value(name) {
            expanded.push_str(&text[from..at]);
            expanded.push_str(&value);
            from = at + 1 + name.len();
        }
    }
    expanded.push_str(&text[from..]);
    expanded
}
