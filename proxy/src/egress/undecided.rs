//! A body of JSON that may be a conversation with a model, though it goes nowhere that a dialect knows.
//!
//! What such a body repeats is history and no egress, but what it is only its members tell, in whatever
//! order they come. So its beginning is kept, and what was found in it is told at its end.

use squall_dialects::endpoint;
use squall_profiles::canary::{Found, Search};

use super::beside_history::{BesideHistory, MemberPiece};

/// Bytes of a body that are kept.
const KEPT: usize = 1 << 20;

/// Canaries of one body that are told of.
const FOUND: usize = 1 << 10;

/// A body that has not come to its end.
#[derive(Default)]
pub(super) struct Undecided {
    body: Vec<u8>,
    found: Vec<Found>,
}

impl Undecided {
    /// The next bytes; false: it is no JSON object, so there is nothing to wait for.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> bool {
        if self.body.is_empty() {
            let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
            if first.is_some_and(|first| *first != b'{') {
                return false;
            }
        }
        let room = KEPT - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        true
    }

    /// A canary stands in it.
    pub(super) fn found(&mut self, canary: Found) {
        if self.found.len() < FOUND && !self.found.contains(&canary) {
            self.found.push(canary);
        }
    }

    /// It is over: the canaries in it, but for those that a conversation repeats.
    pub(super) fn end(self, mut found: impl FnMut(Found)) {
        if self.found.is_empty() || !endpoint::is_conversation(&self.body) {
            self.found.into_iter().for_each(found);
            return;
        }
        let mut search = Search::new();
        BesideHistory::default().push(&self.body, |piece| match piece {
            MemberPiece::Of(bytes) => search.push(bytes, &mut found),
            MemberPiece::End => search = Search::new(),
        });
    }
}
