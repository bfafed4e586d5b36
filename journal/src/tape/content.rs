//! Stored bodies: decoded, whole or as pieces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Bytes that are stored as text if they are UTF-8, and in base64 otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
pub struct Data(pub Bytes);

impl Data {
    /// The text; `None` if it is not UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The bytes in base64.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Decodes base64.
    pub fn of_base64(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim()).ok()?;
        Some(Self(bytes.into()))
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Data {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// The stored form of [`Data`].
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Coded { base64: String },
}

impl From<Data> for Stored {
    fn from(data: Data) -> Self {
        let base64 = || Self::Coded {
            base64: data.to_base64(),
        };
        let text = data.as_text().map(|text| Self::Text(text.to_owned()));
        text.unwrap_or_else(base64)
    }
}

impl TryFrom<Stored> for Data {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        match stored {
            Stored::Text(text) => Ok(text.into()),
            Stored::Coded { base64 } => Self::of_base64(&base64).ok_or("this is not base64"),
        }
    }
}

/// A piece of a stream: one event, or bytes between two events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// When its last byte arrived, milliseconds after the response's head.
    pub at_ms: u64,
    /// Its bytes.
    pub data: Data,
}

/// A response's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A whole body.
    Body(Data),
    /// A stream, event by event.
    Stream(Vec<Piece>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Body(Data::default())
    }
}

impl Content {
    /// All of its bytes, joined.
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
