//! Shapes of values that a plain struct of scalars cannot hold, and the words of the schema.

use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::position::{Position, Scalar};

/// A map in the order it is written in; keys keep their place.
#[derive(Debug)]
pub(crate) struct Pairs<V>(pub(crate) Vec<(Scalar, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
            type Value = Pairs<V>;

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

/// One text or a list of them.
#[derive(Debug)]
pub(crate) struct OneOrMany(pub(crate) Vec<Scalar>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Vec<(String, Option<Position>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(vec![(text.to_owned(), None)])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut texts = Vec::new();
                while let Some(Scalar { text, at }) = list.next_element()? {
                    texts.push((text, Some(at)));
                }
                Ok(texts)
            }
        }

        struct Texts(Vec<(String, Option<Position>)>);

        impl<'de> Deserialize<'de> for Texts {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Either).map(Self)
            }
        }

        let spanned = Spanned::<Texts>::deserialize(deserializer)?;
        let whole = Position::from(spanned.referenced);
        let scalars = spanned.value.0.into_iter();
        Ok(Self(
            scalars
                .map(|(text, at)| Scalar {
                    text,
                    at: at.unwrap_or(whole),
                })
                .collect(),
        ))
    }
}

impl JsonSchema for OneOrMany {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        ]})
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A number, or a text with a unit or a variable.
pub(crate) struct Amount;

impl JsonSchema for Amount {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0 })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Values of `proxy.credentials`, for the schema.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum CredentialsWord {
    Scope,
    Required,
    None,
}

/// Values of `proxy.observe`, for the schema.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum ObserveWord {
    Headers,
    Model,
    Bodies,
}

/// Values of `store.exchanges`, for the schema.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum KeptWord {
    All,
    Faulted,
    None,
}

/// Values of a token's role, for the schema.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum RoleWord {
    Viewer,
    Operator,
    Admin,
}
