//! A document with the place of every node, so that errors can say where.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Error, Spanned};

/// Line and column, both from 1; 0 when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) position: Position,
}

/// Any document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Scalar(Value),
    List(Vec<At<Tree>>),
    Map(Vec<(At<String>, At<Tree>)>),
}

impl Tree {
    /// The document without its places.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.value.to_value()).collect(),
            Self::Map(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, member)| (name.value.clone(), member.value.to_value()))
                    .collect(),
            ),
        }
    }

    /// What it is, for an error message.
    pub(super) fn found(&self) -> String {
        match self {
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a map".to_owned(),
            Self::Scalar(Value::String(text)) => {
                let shown: String = text.chars().take(40).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                format!("`{}{more}`", shown.escape_debug())
            }
            Self::Scalar(other) => format!("`{other}`"),
        }
    }
}

/// Reads YAML or JSON (which is YAML), with room for a long recording.
pub(super) fn read(text: &str) -> Result<At<Tree>, (Position, String)> {
    let budget = serde_saphyr::budget! {
        max_events: 8_000_000,
        max_nodes: 4_000_000,
        max_total_scalar_bytes: 256 * 1024 * 1024,
    };
    let options = serde_saphyr::options! { with_snippet: false, budget: budget };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let position = error.location().map(Position::from).unwrap_or_default();
        (position, message(&error))
    })
}

fn message(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("`{key}` stands here a second time; keep one of them")
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins here; write one session a file".to_owned()
        }
        other => {
            let text = other.to_string();
            // The place is told apart from the message.
            let end = text.rfind(" at line ").unwrap_or(text.len());
            text[..end].to_owned()
        }
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

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            position: spanned.referenced.into(),
            value: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Tree, D::Error> {
        Tree::deserialize(inner)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Tree, E> {
        serde_json::from_str(&value.to_string())
            .map(Tree::Scalar)
            .map_err(E::custom)
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Tree, E> {
        serde_json::from_str(&value.to_string())
            .map(Tree::Scalar)
            .map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
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
