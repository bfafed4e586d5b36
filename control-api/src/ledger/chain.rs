//! Verifies the audit log: each entry holds the hash of the previous one.
//!
//! An edited entry does not match its own hash. A deleted, inserted or moved entry breaks the link to the
//! previous hash. The head protects the newest entry: it holds the number of entries and the last hash. A writer
//! of the store can rewrite all of it, head included; only a hash kept elsewhere detects that.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::Serialize;

use super::AuditEntry;

/// The previous hash of the first entry.
pub const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The head of the chain: the number of entries, and the hash of the newest one ([`BEGINNING`] without entries).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// Number of entries.
    pub number: i64,
    /// Hash of the newest entry.
    pub hash: String,
}

impl Default for ChainHead {
    fn default() -> Self {
        Self {
            number: 0,
            hash: BEGINNING.to_owned(),
        }
    }
}

/// A defect of a chain: the first entry that is wrong or missing, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AuditProblem")]
pub struct ChainError {
    /// Number of the first entry that is wrong or missing.
    pub entry: i64,
    /// The reason.
    pub what: &'static str,
}

impl ChainHead {
    /// Verifies the entry after this head, and moves to it.
    pub fn follow(&mut self, entry: &AuditEntry) -> Result<(), ChainError> {
        let expected = self.number + 1;
        let wrong = if entry.number != expected {
            Some("it is missing, or not in its place")
        } else if entry.previous != self.hash {
            Some(
                "it does not follow the entry before: one of the two was edited, or one was removed or added",
            )
        } else if entry.hash != entry.hashed() {
            Some("it was edited: its contents have another hash than the entry states")
        } else {
            None
        };
        if let Some(what) = wrong {
            return Err(ChainError {
                entry: expected,
                what,
            });
        }
        self.number = entry.number;
        self.hash.clone_from(&entry.hash);
        Ok(())
    }

    /// Compares the head of the verified entries with the separately stored one.
    pub fn check(&self, stored: &Self) -> Result<(), ChainError> {
        let (entry, what) = match self.number.cmp(&stored.number) {
            Ordering::Less => (
                self.number + 1,
                "it is missing: the head counts more entries than there are",
            ),
            Ordering::Greater => (
                stored.number + 1,
                "the head does not count it: it was added, or the head was edited",
            ),
            Ordering::Equal if self.hash != stored.hash => {
                (stored.number, "its hash is not the one in the head")
            }
            Ordering::Equal => return Ok(()),
        };
        Err(ChainError { entry, what })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chain(targets: &[String]) -> (Vec<AuditEntry>, ChainHead) {
        let (mut entries, mut head) = (Vec::new(), ChainHead::default());
        for (at, target) in (1_i64..).zip(targets) {
            let entry = AuditEntry {
                at,
                workspace: "default".to_owned(),
                actor: "ops".to_owned(),
                source: "127.0.0.1".to_owned(),
                action: "PUT /v1/chaos".to_owned(),
                target: target.clone(),
                after: (at % 2 == 0).then(|| target.clone()),
                outcome: "done".to_owned(),
                ..AuditEntry::default()
            };
            let entry = entry.after(head.number, &head.hash);
            head = ChainHead {
                number: entry.number,
                hash: entry.hash.clone(),
            };
            entries.push(entry);
        }
        (entries, head)
    }

    fn verify(entries: &[AuditEntry], stored: &ChainHead) -> Result<(), ChainError> {
        let mut head = ChainHead::default();
        for entry in entries {
            head.follow(entry)?;
        }
        head.check(stored)
    }

    /// Changes one field of an entry.
    fn edit(entry: &mut AuditEntry, field: usize) {
        match field {
            0 => entry.number += 1,
            1 => entry.at += 1,
            2 => entry.workspace.push('x'),
            3 => entry.actor.push('x'),
            4 => entry.source.push('x'),
            5 => entry.action.push('x'),
            6 => entry.target.push('x'),
            7 => entry.before = Some("x".to_owned()),
            8 => entry.after = entry.after.take().map_or(Some(String::new()), |_| None),
            9 => entry.outcome.push('x'),
            10 => entry.detail.push('x'),
            11 => entry.previous.replace_range(0..1, "x"),
            _ => entry.hash.replace_range(0..1, "x"),
        }
    }

    #[test]
    fn the_canonical_form_is_what_others_can_compute() {
        let (entries, _) = chain(&["a \"b\" ü".to_owned()]);
        assert_eq!(
            entries[0].canonical(),
            format!(
                "{BEGINNING}\n[1,1,\"default\",\"ops\",\"127.0.0.1\",\"PUT /v1/chaos\",\
                 \"a \\\"b\\\" ü\",null,null,\"done\",\"\"]"
            )
        );
        assert_eq!(
            entries[0].hash,
            squall_harness::digest::sha256(entries[0].canonical())
        );
    }

    #[test]
    fn an_empty_chain_is_whole_and_one_that_lost_everything_is_not() {
        assert_eq!(verify(&[], &ChainHead::default()), Ok(()));
        let (_, head) = chain(&["a".to_owned()]);
        assert_eq!(verify(&[], &head).map_err(|broken| broken.entry), Err(1));
    }

    proptest! {
        #[test]
        fn any_edit_deletion_insertion_swap_or_truncation_is_found(
            targets in prop::collection::vec("\\PC{0,8}", 1..20),
            at: prop::sample::Index,
            other: prop::sample::Index,
            field in 0_usize..13,
            rehash: bool,
        ) {
            let (entries, head) = chain(&targets);
            prop_assert_eq!(verify(&entries, &head), Ok(()));
            let (at, other) = (at.index(entries.len()), other.index(entries.len()));

            let mut edited = entries.clone();
            edit(&mut edited[at], field);
            if rehash && field < 12 {
                // An attacker also fixes the entry's hash: then the next entry does not match.
                edited[at].hash = edited[at].hashed();
            }
            let found = verify(&edited, &head).expect_err("an edit");
            let number = i64::try_from(at).unwrap() + 1;
            prop_assert!(found.entry == number || found.entry == number + 1, "{found:?}");

            let mut shorter = entries.clone();
            shorter.remove(at);
            prop_assert_eq!(verify(&shorter, &head).map_err(|broken| broken.entry), Err(number));

            prop_assert!(verify(&entries[..at], &head).is_err(), "the newest are gone");

            let mut longer = entries.clone();
            longer.insert(at, entries[other].clone());
            prop_assert!(verify(&longer, &head).is_err());

            let mut swapped = entries.clone();
            swapped.swap(at, other);
            prop_assert_eq!(verify(&swapped, &head).is_err(), at != other);
        }
    }
}
