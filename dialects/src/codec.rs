//! Content codings, in pieces and both ways.
//!
//! An edit of a compressed body decodes it, changes it and puts it back into the same coding:
//! `gzip`, `deflate` (with or without the zlib wrapper that RFC 9110 §8.4.1.2 asks for; both are in
//! use), `br` and `zstd`. Decoders give their output in pieces of bounded size, so a small body
//! that decodes to a huge one costs no more memory than its reader asks for.

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

/// A body that is not in the coding its head names.
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
