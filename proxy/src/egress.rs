//! Searches request bodies for canaries as they pass, after decoding.
//!
//! Nothing is held back: each piece is searched in place. Encoded bodies are decoded through a
//! small buffer.

use squall_dialects::codec::Coding;
use squall_dialects::endpoint;
use squall_profiles::canary::{Found, Search};

use crate::body::decoding::Decoding;

/// Most stored bytes of a body that may be a conversation.
const STORED: usize = 1 << 20;

/// Most canaries that are reported for such a body.
const REPORTED: usize = 1 << 10;

/// The search of one request's body.
pub(crate) struct BodySearch {
    search: Search,
    decoding: Decoding,
    conversation: Option<PossibleConversation>,
}

/// A JSON body that may be a model conversation, at a URL that no dialect recognises.
///
/// Repeated content in a conversation is history and not egress. But only its members show whether
/// it is one, in any order. So the start of the body is stored, and its canaries are reported at
/// its end.
#[derive(Default)]
struct PossibleConversation {
    body: Vec<u8>,
    found: Vec<Found>,
}

impl BodySearch {
    /// For a body in this content coding.
    pub(crate) fn new(coding: Option<Coding>) -> Self {
        Self {
            search: Search::new(),
            decoding: Decoding::of(coding),
            conversation: None,
        }
    }

    /// For a body that is not searched.
    pub(crate) fn none() -> Self {
        Self {
            decoding: Decoding::Over,
            ..Self::new(None)
        }
    }

    /// The body's shape decides whether it is a conversation with a model.
    pub(crate) fn by_shape(&mut self) {
        self.conversation = Some(PossibleConversation::default());
    }

    /// The body has ended: reports canaries that only its end can decide.
    pub(crate) fn end(self, found: impl FnMut(Found)) {
        if let Some(body) = self.conversation
            && !(body.found.is_empty() || endpoint::is_conversation(&body.body))
        {
            body.found.into_iter().for_each(found);
        }
    }

    /// Searches the next bytes, as sent.
    pub(crate) fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Found)) {
        let Self {
            search,
            decoding,
            conversation,
        } = self;
        decoding.push(bytes, |plain| {
            if conversation.as_mut().is_some_and(|body| !body.store(plain)) {
                *conversation = None;
            }
            search.push(plain, |canary| match conversation {
                Some(body) => body.note(canary),
                None => found(canary),
            });
        });
    }
}

impl PossibleConversation {
    /// Stores the next bytes; false if it is not a JSON object, so that waiting is unnecessary.
    fn store(&mut self, bytes: &[u8]) -> bool {
        if self.body.is_empty() {
            let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
            if first.is_some_and(|first| *first != b'{') {
                return false;
            }
        }
        let room = STORED - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        true
    }

    fn note(&mut self, canary: Found) {
        if self.found.len() < REPORTED && !self.found.contains(&canary) {
            self.found.push(canary);
        }
    }
}

#[cfg(test)]
mod tests {
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
                let mut found = Vec::new();
                for piece in body.chunks(size) {
                    search.push(piece, |canary| found.push(canary));
                }
                let found: Vec<_> = found
                    .iter()
                    .map(|found| (found.canary.to_string(), found.encoding))
                    .collect();
                let expected = [(WRITTEN.to_owned(), Encoding::Raw)];
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
