//! Parses YAML and JSON (a subset of YAML) into a tree that keeps the position of every node.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::budget::BudgetBreach as Breach;
use serde_saphyr::{Error, Spanned};

use crate::error::{DocumentError, Position};
use crate::source::found_at;
use crate::variables::mentions_variable;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// The position where it begins.
    pub position: Position,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            position: spanned.referenced.into(),
            value: spanned.value,
        })
    }
}

impl From<serde_saphyr::Location> for Position {
    fn from(location: serde_saphyr::Location) -> Self {
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Self {
            line: number(location.line()),
            column: number(location.column()),
        }
    }
}

/// Any document, with the position of every node.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// An empty value or `null`.
    Null,
    /// A text, a number or a flag.
    Scalar {
        /// The text as written: a number keeps its decimal point.
        text: String,
        /// The kind of the scalar.
        kind: ScalarKind,
    },
    /// A list.
    List(Vec<At<Tree>>),
    /// A map, in the order written.
    Map(Vec<(At<String>, At<Tree>)>),
}

/// The kind of a scalar. A quoted one is always a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarKind {
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// Anything else.
    Text,
}

impl Tree {
    fn flag(text: impl Into<String>) -> Self {
        let (text, kind) = (text.into(), ScalarKind::Flag);
        Self::Scalar { text, kind }
    }

    fn number(text: impl Into<String>) -> Self {
        let (text, kind) = (text.into(), ScalarKind::Number);
        Self::Scalar { text, kind }
    }
}

macro_rules! numbers {
    ($($visit:ident($number:ty))*) => {$(
        fn $visit<E: de::Error>(self, value: $number) -> Result<Tree, E> {
            Ok(Tree::number(value.to_string()))
        }
    )*};
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TreeVisitor;

        impl<'de> Visitor<'de> for TreeVisitor {
            type Value = Tree;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
                Ok(Tree::Null)
            }

            fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
                Ok(Tree::Null)
            }

            fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Tree, D::Error> {
                Tree::deserialize(inner)
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tree, E> {
                Ok(Tree::flag(value.to_string()))
            }

            numbers! { visit_i64(i64) visit_u64(u64) visit_i128(i128) visit_u128(u128) }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
                // Keeps the decimal point, because `503.0` is rejected where a whole number is required.
                Ok(Tree::number(format!("{value:?}")))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Tree, E> {
                Ok(Tree::Scalar {
                    text: value.to_owned(),
                    kind: ScalarKind::Text,
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Tree::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Tree::Map(pairs))
            }
        }

        deserializer.deserialize_any(TreeVisitor)
    }
}

/// Most nodes that aliases may expand to: a few nested aliases could expand to millions.
const REPLAYED: usize = 100_000;

/// Most bytes of texts that aliases may repeat.
const REPEATED: usize = 16 << 20;

/// Deepest nesting of a document.
const DEPTH: usize = 64;

/// Parses YAML or JSON, with a limit that allows tens of thousands of rules. The error is the first syntax error.
pub fn parse(file: &str, text: &str) -> Result<At<Tree>, DocumentError> {
    from_str(text).map_err(|error| {
        let position = error.location().map(Position::from).unwrap_or_default();
        DocumentError {
            file: file.to_owned(),
            position,
            pointer: String::new(),
            message: message(&error, &found_at(text, position)),
        }
    })
}

fn from_str(text: &str) -> Result<At<Tree>, Error> {
    let budget = serde_saphyr::budget! {
        max_depth: DEPTH,
        max_events: 8_000_000,
        max_nodes: 4_000_000,
        // Aliases repeat texts.
        max_total_scalar_bytes: text.len() + REPEATED,
    };
    let alias_limits = serde_saphyr::alias_limits! {
        max_total_replayed_events: REPLAYED,
        max_alias_expansions_per_anchor: REPLAYED,
    };
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: budget,
        alias_limits: alias_limits,
        // `y`, `no` and `on` are words (YAML 1.2.2 §10.3.2) and may be names.
        strict_booleans: true,
        // Readers of `!!binary` decode it: its bytes may be no text.
        ignore_binary_tag_for_string: true,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// The parser limit that a document exceeds; `None`: the error is another one.
fn over_budget(error: &Error) -> Option<String> {
    let aliases = "its aliases (`*name`) stand for too much; write out what they stand for";
    Some(match error {
        Error::AliasError { error, .. } => return over_budget(error),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => aliases.to_owned(),
        Error::Budget { breach, .. } => match breach {
            Breach::Aliases { .. }
            | Breach::Anchors { .. }
            | Breach::AliasAnchorRatio { .. }
            | Breach::MergeKeys { .. }
            | Breach::ScalarBytes { .. } => aliases.to_owned(),
            Breach::Depth { .. } => too_deep(),
            _ => "the document is longer than is read; write it shorter".to_owned(),
        },
        // The limit of the parser below, which reads ahead of the budget.
        other if other.to_string().starts_with("recursion limit exceeded") => too_deep(),
        _ => return None,
    })
}

fn too_deep() -> String {
    format!("the document is nested deeper than {DEPTH} levels")
}

fn message(error: &Error, found: &str) -> String {
    if let Some(over) = over_budget(error) {
        return over;
    }
    match error {
        Error::AliasError { error, .. } => message(error, found),
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
            // The position is reported separately.
            text.rfind(" at line ")
                .map_or(text.as_str(), |end| &text[..end])
                .to_owned()
        }
    }
}

impl At<Tree> {
    /// Visits each text of the tree, including names of members.
    pub(crate) fn each_text(&self, see: &mut impl FnMut(Position, &str)) {
        match &self.value {
            Tree::Null => {}
            Tree::Scalar { text, .. } => see(self.position, text),
            Tree::List(items) => items.iter().for_each(|item| item.each_text(see)),
            Tree::Map(members) => {
                for (name, member) in members {
                    see(name.position, &name.value);
                    member.each_text(see);
                }
            }
        }
    }

    /// The text, or the texts of a list.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let items = match &self.value {
            Tree::List(items) => &items[..],
            Tree::Null | Tree::Scalar { .. } | Tree::Map(_) => std::slice::from_ref(self),
        };
        items.iter().filter_map(|item| match &item.value {
            Tree::Scalar { text, .. } => Some(text.as_str()),
            Tree::Null | Tree::List(_) | Tree::Map(_) => None,
        })
    }

    /// Visits each text of the tree, except names of members, and allows changes.
    pub fn each_text_mut(&mut self, change: &mut impl FnMut(&mut String)) {
        match &mut self.value {
            Tree::Null => {}
            Tree::Scalar { text, .. } => change(text),
            Tree::List(items) => items.iter_mut().for_each(|item| item.each_text_mut(change)),
            Tree::Map(members) => {
                let members = members.iter_mut();
                members.for_each(|(_, member)| member.each_text_mut(change));
            }
        }
    }

    /// A member of a map, by its name.
    pub fn member_mut(&mut self, name: &str) -> Option<&mut Self> {
        let Tree::Map(members) = &mut self.value else {
            return None;
        };
        let found = members.iter_mut().find(|(found, _)| found.value == name);
        found.map(|(_, member)| member)
    }

    /// The items of a list; empty for other kinds.
    pub fn items_mut(&mut self) -> &mut [Self] {
        match &mut self.value {
            Tree::List(items) => items,
            Tree::Null | Tree::Scalar { .. } | Tree::Map(_) => &mut [],
        }
    }

    /// Visits each position of the tree, and allows changes.
    pub fn each_position(&mut self, change: &mut impl FnMut(&mut Position)) {
        change(&mut self.position);
        match &mut self.value {
            Tree::Null | Tree::Scalar { .. } => {}
            Tree::List(items) => items.iter_mut().for_each(|item| item.each_position(change)),
            Tree::Map(members) => {
                for (name, member) in members {
                    change(&mut name.position);
                    member.each_position(change);
                }
            }
        }
    }

    pub(crate) fn mentions_variable(&self) -> bool {
        let mut any = false;
        self.each_text(&mut |_, text| any |= mentions_variable(text));
        any
    }

    /// The node at a JSON pointer (RFC 6901), or its nearest existing ancestor.
    pub fn nearest(&self, pointer: &str) -> &Self {
        let mut node = self;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
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
    /// The tree as JSON.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_gives_the_json_that_was_written() {
        let tree = parse("f", "a: [1, 1.5, null, true, 'true', -3]\n'b/~c': {d: x}\n");
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
        let tree =
            parse("f", "[y, n, yes, no, on, off, Y, NO, true, False, 'true']").expect("YAML");
        let expected = json!([
            "y", "n", "yes", "no", "on", "off", "Y", "NO", true, false, "true"
        ]);
        assert_eq!(tree.value.to_json(), expected);
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_place() {
        let error = parse("f.yaml", "a: 1\na: 2\n").expect_err("twice");
        assert_eq!(
            error.to_string(),
            "f.yaml:2:1: `a` stands here a second time; keep one of them"
        );
    }

    #[test]
    fn aliases_stand_for_so_much_and_no_more() {
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (last, this) in ["ab", "bc", "cd", "de", "ef"].map(|pair| pair.split_at(1)) {
            let ten = vec![format!("*{last}"); 10].join(", ");
            bomb.push_str(&[this, ": &", this, " [", &ten, "]\n"].concat());
            let read = from_str(&bomb);
            assert_eq!(read.is_ok(), this < "e", "{this}");
        }
        let long = |times| {
            let repeated = vec!["*a"; times].join(", ");
            let text = "x".repeat(1 << 20);
            format!("a: &a {text}\nb: &b 1\nc: [{repeated}]\n")
        };
        assert!(from_str(&long(8)).is_ok());
        for text in [bomb, long(20)] {
            let error = from_str(&text).expect_err("too much");
            assert_eq!(
                over_budget(&error).as_deref(),
                Some("its aliases (`*name`) stand for too much; write out what they stand for")
            );
        }
    }
}
