//! Values that remember where in the text they stood.
//!
//! Errors about what a value means come long after the text was read, so the raw structs keep every
//! position. The types here take the place of `flatten` and `untagged`, which lose it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::error::Position;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it begins.
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

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Reads a word where `null` is one of them, which YAML would take for nothing at all.
pub(crate) fn word_or_null<'de, D>(deserializer: D) -> Result<Option<At<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let At { value, position } = At::<Tree>::deserialize(deserializer)?;
    let value = match value {
        Tree::Null => "null".to_owned(),
        Tree::Scalar { text, .. } => text,
        Tree::List(_) | Tree::Map(_) => return Err(de::Error::custom("expected a word")),
    };
    Ok(Some(At { value, position }))
}

/// One value or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OneOrMany(pub(crate) Vec<At<String>>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The position of a single value is that of the whole; a list's items have their own.
        let tree = At::<Tree>::deserialize(deserializer)?;
        let items = match tree.value {
            Tree::List(items) => items,
            Tree::Scalar { .. } | Tree::Map(_) | Tree::Null => vec![tree],
        };
        let words = items.into_iter().map(|item| match item.value {
            Tree::Scalar { text, .. } => Ok(At {
                value: text,
                position: item.position,
            }),
            _ => Err(de::Error::custom("expected a word or a list of words")),
        });
        Ok(Self(words.collect::<Result<_, _>>()?))
    }
}

impl JsonSchema for OneOrMany {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": ["string", "integer"] },
                { "type": "array", "items": { "type": ["string", "integer"] } },
            ]
        })
    }
}

/// A word, or a number that stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Tree::deserialize(deserializer)? {
            Tree::Scalar { text, .. } => Ok(Self(text)),
            Tree::Null | Tree::List(_) | Tree::Map(_) => {
                Err(de::Error::custom("expected a word or a number"))
            }
        }
    }
}

impl JsonSchema for Word {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["string", "integer"] })
    }
}

/// A text that no number or flag is taken for: what is written is what somebody reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Tree::deserialize(deserializer)? {
            Tree::Scalar {
                text,
                kind: ScalarKind::Text,
            } => Ok(Self(text)),
            Tree::Scalar { .. } | Tree::Null | Tree::List(_) | Tree::Map(_) => {
                Err(de::Error::custom("expected a text"))
            }
        }
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// A map in the order written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairs<T>(pub(crate) Vec<(At<String>, At<T>)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Pairs<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pairs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        schemars::json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// Any document, with the place of every node.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// Nothing, or `null`.
    Null,
    /// A text, a number or a flag.
    Scalar {
        /// As it is read: a number's point is kept.
        text: String,
        /// What it is.
        kind: ScalarKind,
    },
    /// A list.
    List(Vec<At<Tree>>),
    /// A map, in the order written.
    Map(Vec<(At<String>, At<Tree>)>),
}

/// What a scalar is without quotes; with them it is a text.
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

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tree, E> {
                Ok(Tree::number(value.to_string()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tree, E> {
                Ok(Tree::number(value.to_string()))
            }

            fn visit_i128<E: de::Error>(self, value: i128) -> Result<Tree, E> {
                Ok(Tree::number(value.to_string()))
            }

            fn visit_u128<E: de::Error>(self, value: u128) -> Result<Tree, E> {
                Ok(Tree::number(value.to_string()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Tree, E> {
                // With its point: where a whole number is allowed, `503.0` is none.
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

impl JsonSchema for Tree {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Any".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}
