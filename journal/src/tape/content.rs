//! Bodies as they are kept: decoded, whole or piece by piece.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are written as text where they are UTF-8, in base64 elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Data(pub Bytes);

impl Data {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The bytes in base64.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Bytes out of base64.
    pub fn of_base64(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim()).ok()?;
        Some(Self(bytes.into()))
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Data {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// A text, or what `base64` holds.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<'a> {
    Text(Cow<'a, str>),
    Coded { base64: Cow<'a, str> },
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_text() {
            Some(text) => Written::Text(text.into()),
            None => Written::Coded {
                base64: self.to_base64().into(),
            },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Text(text) => Ok(text.into_owned().into()),
            Written::Coded { base64 } => {
                Self::of_base64(&base64).ok_or_else(|| D::Error::custom("this is no base64"))
            }
        }
    }
}

/// A piece of a stream: one event, or what came between two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// When its last byte came, milliseconds after the answer's head.
    pub at_ms: u64,
    /// Its bytes.
    pub data: Data,
}

/// An answer's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// In one piece.
    Body(Data),
    /// Event by event.
    Stream(Vec<Piece>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Body(Data::default())
    }
}

impl Content {
    /// All of its bytes.
    pub fn whole(&self) -> Bytes {
        match self {
            Self::Body(body) => body.0.clone(),
            Self::Stream(pieces) => {
                let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &piece.data.0[..]).collect();
                pieces.concat().into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_text_where_they_can_be() {
        for (data, written) in [
            (&b"caf\xc3\xa9"[..], "\"café\""),
            (b"\xff\x00", "{\"base64\":\"/wA=\"}"),
            (b"", "\"\""),
        ] {
            let data = Data(Bytes::from_static(data));
            let json = serde_json::to_string(&data).expect("JSON");
            assert_eq!(json, written);
            assert_eq!(serde_json::from_str::<Data>(&json).expect("data"), data);
        }
        assert!(serde_json::from_str::<Data>(r#"{"base64":"?"}"#).is_err());
    }
}
