//! Numbers and flags as they are written: no text is taken for one, and a variable may stand for one.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::{Value, json};

use super::expansion::{Expansion, Strings};
use crate::error::Position;
use crate::variables::{expand, mentions_variable};

/// A number. Those written with a decimal point or an exponent are told from whole ones: `503.0` is
/// no count.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Number {
    /// Written without a point; exact up to 2⁵³.
    Whole(f64),
    /// Written with one.
    Fraction(f64),
    /// A text with a variable in it, until it is expanded.
    Variable(String),
}

/// `true` or `false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flag {
    /// As written.
    Is(bool),
    /// A text with a variable in it, until it is expanded.
    Variable(String),
}

impl Number {
    /// Its value; not a number as long as a variable stands for it.
    pub(crate) fn value(&self) -> f64 {
        match self {
            Self::Whole(value) | Self::Fraction(value) => *value,
            Self::Variable(_) => f64::NAN,
        }
    }

    /// Reads what a variable stands for: a decimal number, with or without a fraction.
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_decimal = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let value = text.parse().ok().filter(|_| is_decimal)?;
        Some(if digits.contains('.') {
            Self::Fraction(value)
        } else {
            Self::Whole(value)
        })
    }
}

/// As it was written: a fraction keeps its point.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Fraction(value) => write!(f, "{value:?}"),
            Self::Variable(text) => f.write_str(text),
        }
    }
}

impl From<&Number> for Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and exact, or over every bound"
    )]
    fn from(number: &Number) -> Self {
        match number {
            Number::Whole(value) => json!(*value as i64),
            Number::Fraction(value) => json!(value),
            Number::Variable(text) => json!(text),
        }
    }
}

impl Flag {
    /// Whether it is `true`.
    pub(crate) fn is_set(&self) -> bool {
        *self == Self::Is(true)
    }
}

impl Strings for Number {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        if let Self::Variable(text) = self {
            match stand_for(text, expansion, Self::parse, "a number") {
                Ok(number) => *self = number,
                Err(message) => expansion.complaints.push((position, message)),
            }
        }
    }
}

impl Strings for Flag {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        if let Self::Variable(text) = self {
            let parse = |text: &str| text.parse().ok().map(Self::Is);
            match stand_for(text, expansion, parse, "`true` or `false`") {
                Ok(flag) => *self = flag,
                Err(message) => expansion.complaints.push((position, message)),
            }
        }
    }
}

/// What a text with variables stands for. What it expands to is not repeated: it may be a secret.
fn stand_for<T>(
    text: &str,
    expansion: &Expansion<'_>,
    parse: impl FnOnce(&str) -> Option<T>,
    allowed: &str,
) -> Result<T, String> {
    let expanded = expand(text, expansion.variables)?;
    parse(expanded.trim())
        .ok_or_else(|| format!("`{text}` does not stand for what is allowed here, {allowed}"))
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;

        impl Visitor<'_> for NumberVisitor {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            #[expect(
                clippy::cast_precision_loss,
                reason = "what a double does not hold is over every bound"
            )]
            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Whole(value as f64))
            }

            #[expect(
                clippy::cast_precision_loss,
                reason = "what a double does not hold is over every bound"
            )]
            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number::Whole(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Fraction(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                if mentions_variable(text) {
                    return Ok(Number::Variable(text.to_owned()));
                }
                Err(E::invalid_type(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(NumberVisitor)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlagVisitor;

        impl Visitor<'_> for FlagVisitor {
            type Value = Flag;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true` or `false`")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Flag, E> {
                Ok(Flag::Is(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Flag, E> {
                if mentions_variable(text) {
                    return Ok(Flag::Variable(text.to_owned()));
                }
                if let Some(value) = flag_of_yaml_1_1(text) {
                    return Ok(Flag::Is(value));
                }
                Err(E::invalid_type(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(FlagVisitor)
    }
}

/// What a word of YAML 1.1's says where a flag belongs, as readers of that version take it: `yes`, `no`,
/// `on` and `off`, small, capitalised or in capitals. Elsewhere they are words.
pub fn flag_of_yaml_1_1(word: &str) -> Option<bool> {
    match word {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        or_variable("number")
    }
}

impl JsonSchema for Flag {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Flag".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        or_variable("boolean")
    }
}

/// A type, or a text in which a variable stands for one.
fn or_variable(kind: &str) -> Schema {
    json_schema!({ "anyOf": [{ "type": kind }, { "type": "string", "pattern": "\\$\\{" }] })
}
