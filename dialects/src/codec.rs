//! Content codings, incremental and in both directions.
//!
//! To edit a compressed body, Squall decodes it, edits it and encodes it again: `gzip`, `deflate` (with or without
//! the zlib wrapper of RFC 9110 §8.4.1.2; both are in use), `br` and `zstd`. Decoders return their output in pieces
//! of limited size. The memory for a body that decodes to a huge one is therefore limited by its reader.

mod decode;
mod encode;

use std::fmt;

use http::{HeaderMap, header};

pub use self::decode::{Decoder, Progress};
pub use self::encode::Encoder;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, `x-gzip`
    Gzip,
    /// `deflate`
    Deflate,
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
}

impl Coding {
    /// The coding of a message's body; `None`: it has none.
    pub fn of(headers: &HeaderMap) -> Result<Option<Self>, UnknownCoding> {
        let mut found = None;
        for value in headers.get_all(header::CONTENT_ENCODING) {
            let value = String::from_utf8_lossy(value.as_bytes());
            for name in value.split(',').map(str::trim) {
                let coding = match name.to_ascii_lowercase().as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "deflate" => Self::Deflate,
                    "br" => Self::Brotli,
                    "zstd" => Self::Zstd,
                    _ => return Err(UnknownCoding(value.into_owned())),
                };
                if found.replace(coding).is_some() {
                    return Err(UnknownCoding("more than one coding".into()));
                }
            }
        }
        Ok(found)
    }
}

/// A content coding that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCoding(String);

impl fmt::Display for UnknownCoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the content-encoding ({}) cannot be decoded; gzip, deflate, br and zstd can",
            self.0
        )
    }
}

/// The body does not match the coding in its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotInCoding(pub Coding);

impl fmt::Display for NotInCoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        };
        write!(f, "the body is not valid {name}")
    }
}

#[cfg(test)]
mod tests;
