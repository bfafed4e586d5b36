//! Documents that people write, as trees that keep the place of every node.
//!
//! What is read from a tree can say of anything in it where it stands, whatever shape it has. Profiles
//! are read into flat structs instead; documents of other crates, suites above all, are read from
//! trees.

use serde_json::{Map, Number, Value};

use crate::error::{Position, ProfileError};
use crate::pointer::steps;
pub use crate::profile::located::{At, ScalarKind, Tree};
pub use crate::profile::scalar::flag_of_yaml_1_1;
use crate::profile::shape;
use crate::variables::{Expanded, Variables, expand, mentions_variable, recorded};

/// Reads YAML, or JSON, which is YAML. The error is the first thing that is neither.
pub fn read(file: &str, text: &str) -> Result<At<Tree>, ProfileError> {
    shape::from_str(text).map_err(|error| shape::unreadable(file, text, &error, None))
}

/// What of a document is more than its reader takes, as a sentence; `None`: something else is wrong.
pub fn over_budget(error: &serde_saphyr::Error) -> Option<String> {
    shape::over_budget(error)
}

/// What stands at a place of a text, up to the end of the value or the line, at most 40 characters.
pub fn found_at(text: &str, position: Position) -> String {
    shape::found_at(text, position)
}

/// A variable that cannot be expanded: where, and a sentence that names it.
pub type Missing = (Position, String);

/// Expands `${VAR}` and `${VAR:-default}` in every text of a tree but the keys of its maps, and says
/// what they stood for.
pub fn expand_tree(
    tree: &mut At<Tree>,
    variables: Variables<'_>,
) -> Result<Expanded, Vec<Missing>> {
    let mut missing = Vec::new();
    let ((), expanded) = recorded(variables, |variables| {
        expand_node(tree, variables, &mut missing);
    });
    if missing.is_empty() {
        Ok(expanded)
    } else {
        Err(missing)
    }
}

fn expand_node(node: &mut At<Tree>, variables: Variables<'_>, missing: &mut Vec<Missing>) {
    match &mut node.value {
        Tree::Scalar { text, .. } if mentions_variable(text) => match expand(text, variables) {
            Ok(expanded) => *text = expanded,
            Err(message) => missing.push((node.position, message)),
        },
        Tree::Scalar { .. } | Tree::Null => {}
        Tree::List(items) => {
            for item in items {
                expand_node(item, variables, missing);
            }
        }
        Tree::Map(members) => {
            for (_, member) in members {
                expand_node(member, variables, missing);
            }
        }
    }
}

impl At<Tree> {
    /// The node a JSON pointer (RFC 6901) leads to, or the last one on the way that is there.
    pub fn nearest(&self, pointer: &str) -> &Self {
        let mut node = self;
        for step in steps(pointer) {
            let next = match &node.value {
                Tree::List(items) => step.parse::<usize>().ok().and_then(|at| items.get(at)),
                Tree::Map(members) => {
                    let named = members.iter().find(|(name, _)| name.value == step);
                    named.map(|(_, member)| member)
                }
                Tree::Null | Tree::Scalar { .. } => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

impl Tree {
    /// The same on one line, as YAML; what is JSON is written as JSON.
    pub(crate) fn to_line(&self) -> String {
        let mut line = String::new();
        self.write_line(&mut line);
        line
    }

    fn write_line(&self, line: &mut String) {
        let text = |text: &str| Value::from(text).to_string();
        match self {
            Self::Null => line.push_str("null"),
            Self::Scalar { text: scalar, kind } => match kind {
                // As it was written: YAML has numbers that JSON has no word for.
                ScalarKind::Flag | ScalarKind::Number => line.push_str(scalar),
                ScalarKind::Text => line.push_str(&text(scalar)),
            },
            Self::List(items) => {
                line.push('[');
                for (number, item) in items.iter().enumerate() {
                    line.push_str(if number == 0 { "" } else { "," });
                    item.value.write_line(line);
                }
                line.push(']');
            }
            Self::Map(members) => {
                line.push('{');
                for (number, (name, member)) in members.iter().enumerate() {
                    line.push_str(if number == 0 { "" } else { "," });
                    line.push_str(&text(&name.value));
                    line.push(':');
                    member.value.write_line(line);
                }
                line.push('}');
            }
        }
    }

    /// The same as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Scalar { text, kind } => match kind {
                ScalarKind::Flag => Value::Bool(text == "true"),
                ScalarKind::Number => text
                    .parse::<Number>()
                    .map_or_else(|_| Value::String(text.clone()), Value::Number),
                ScalarKind::Text => Value::String(text.clone()),
            },
            Self::List(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Self::Map(members) => {
                let members = members
                    .iter()
                    .map(|(name, member)| (name.value.clone(), member.value.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_gives_the_json_that_was_written() {
        let tree = read("f", "a: [1, 1.5, null, true, 'true', -3]\n'b/~c': {d: x}\n");
        let tree = tree.expect("YAML");
        let expected = json!({
            "a": [1, 1.5, null, true, "true", -3],
            "b/~c": { "d": "x" },
        });
        assert_eq!(tree.value.to_json(), expected);
        for (pointer, line, column) in [
            ("/a/1", 1, 8),
            ("/b~1~0c/d", 2, 13),
            ("/b~1~0c/none/x", 2, 9),
            ("/a/99", 1, 4),
            ("", 1, 1),
        ] {
            let position = tree.nearest(pointer).position;
            assert_eq!(position, Position { line, column }, "{pointer}");
        }
    }

    #[test]
    fn only_true_and_false_are_flags() {
        let tree = read("f", "[y, n, yes, no, on, off, Y, NO, true, False, 'true']").expect("YAML");
        let expected = json!([
            "y", "n", "yes", "no", "on", "off", "Y", "NO", true, false, "true"
        ]);
        assert_eq!(tree.value.to_json(), expected);
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_place() {
        let error = read("f.yaml", "a: 1\na: 2\n").expect_err("twice");
        assert_eq!(
            error.to_string(),
            "f.yaml:2:1: `a` stands here a second time; keep one of them"
        );
    }

    #[test]
    fn every_text_is_expanded_and_every_missing_variable_told() {
        let table = |name: &str| match name {
            "HOST" => Ok("api.example".to_owned()),
            _ => Err(VarError::NotPresent),
        };
        let mut tree =
            read("f", "a: ['${HOST}', {b: 'x${NOPE:-y}', c: '$$${HOST}' }]").expect("YAML");
        let expanded = expand_tree(&mut tree, Variables::From(&table)).expect("all are there");
        let expected = json!({ "a": ["api.example", { "b": "xy", "c": "$${HOST}" }] });
        assert_eq!(tree.value.to_json(), expected);
        assert_eq!(
            expanded.iter().collect::<Vec<_>>(),
            [("HOST", "api.example")]
        );
        let mut tree = read("f", "a: ${NOPE}\nb: ${GONE}").expect("YAML");
        let missing = expand_tree(&mut tree, Variables::From(&table)).expect_err("missing");
        let lines: Vec<_> = missing.iter().map(|(position, _)| position.line).collect();
        assert_eq!(lines, [1, 2]);
    }
}
