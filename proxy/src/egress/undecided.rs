//! A JSON body that may be a model conversation, at a URL that no dialect recognises.
//!
//! Repeated content in a conversation is history and not egress. But only the members show whether
//! it is one, in any order. So the start of the body is stored, and its canaries are reported at
//! its end.

use squall_dialects::endpoint;
use squall_profiles::canary::{Found, Search};

use super::beside_history::{BesideHistory, MemberPiece};

/// Most stored bytes of a body.
const KEPT: usize = 1 << 20;

/// Most canaries that are reported for one body.
const FOUND: usize = 1 << 10;

/// A body that has not ended.
#[derive(Default)]
pub(super) struct Undecided {
    body: Vec<u8>,
    found: Vec<Found>,
}

impl Undecided {
    /// Stores the next bytes; false if it is not a JSON object, so that waiting is unnecessary.
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

    /// Records a canary in it.
    pub(super) fn found(&mut self, canary: Found) {
        if self.found.len() < FOUND && !self.found.contains(&canary) {
            self.found.push(canary);
        }
    }

    /// The body has ended: reports its canaries, except those that a conversation repeats.
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
