//! Digests that identify a text.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The SHA-256 of some bytes as 64 hex digits.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(digest(&SHA256, bytes.as_ref()).as_ref())
}
