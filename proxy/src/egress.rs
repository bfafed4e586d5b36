//! Searches request bodies for canaries as they pass, after decoding.
//!
//! Nothing is held back: each piece is searched in place. Encoded bodies are decoded through a
//! small buffer.

use squall_dialects::codec::Coding;
use squall_profiles::canary::{Found, Search};

use crate::body::decoding::Decoding;

/// The search of one request's body.
pub(crate) struct BodySearch {
    search: Search,
    decoding: Decoding,
}

impl BodySearch {
    /// For a body in this content coding.
    pub(crate) fn new(coding: Option<Coding>) -> Self {
        Self {
            search: Search::new(),
            decoding: Decoding::of(coding),
        }
    }

    /// For a body that is not searched.
    pub(crate) fn none() -> Self {
        Self {
            decoding: Decoding::Over,
            ..Self::new(None)
        }
    }

    /// Searches the next bytes, as sent.
    pub(crate) fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Found)) {
        let Self { search, decoding } = self;
        decoding.push(bytes, |plain| search.push(plain, &mut found));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::Write as _;

    use squall_journal::record::Encoding;

    use super::*;
    use crate::body::decoding::DECODED;

    const WRITTEN: &str = "sq-0123456789ab";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("a vector takes everything");
        encoder.finish().expect("a vector takes everything")
    }

    #[test]
    fn a_canary_is_found_in_every_coding_and_in_any_pieces() {
        let whole = format!("note {WRITTEN}.").into_bytes();
        let long = [&vec![b'.'; 100_000][..], &whole].concat();
        for (what, coding, body) in [
            ("plain", None, whole.clone()),
            ("gzip", Some(Coding::Gzip), gzip(&whole)),
            ("a long gzip", Some(Coding::Gzip), gzip(&long)),
            ("no gzip at all", Some(Coding::Gzip), whole.clone()),
        ] {
            for size in [1, 2, 3, 7, 1000, body.len()] {
                let mut search = BodySearch::new(coding);
                let mut found = HashSet::new();
                for piece in body.chunks(size) {
                    search.push(piece, |one| {
                        found.insert((one.canary.to_string(), one.encoding));
                    });
                }
                let expected = HashSet::from([(WRITTEN.to_owned(), Encoding::Raw)]);
                assert_eq!(found, expected, "{what} by {size}");
            }
        }
    }

    #[test]
    fn no_more_is_searched_than_is_decoded() {
        let bomb = gzip(&[&vec![0; DECODED][..], WRITTEN.as_bytes()].concat());
        let mut search = BodySearch::new(Some(Coding::Gzip));
        for _ in 0..2 {
            search.push(&bomb, |found| panic!("{found:?}"));
        }
    }
}
