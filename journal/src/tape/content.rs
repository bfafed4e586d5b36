//! Bodies as they are stored: decoded, whole or piece by piece.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Bytes that are stored as text if they are UTF-8, and in base64 otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
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
        text.to_owned().into()
    }
}

impl From<String> for Data {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// [`Data`] in the store.
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

/// A piece of a stream: one event, or what was between two.
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
