//! Verifies the audit log: each entry holds the hash of the previous one.
//!
//! An edited entry does not match its own hash. A deleted, inserted or moved entry breaks the link to the
//! previous hash. The head protects the newest entry: it holds the number of entries and the last hash. A writer
//! of the store can rewrite all of it, head included; only a hash kept elsewhere detects that.

use super::Entry;

/// The previous hash of the first entry.
pub const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The head of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Number of entries.
    pub number: i64,
    /// Hash of the newest entry; [`BEGINNING`] when there is none.
    pub hash: String,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            number: 0,
            hash: BEGINNING.to_owned(),
        }
    }
}

/// A defect of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry}: {what}")]
pub struct Broken {
    /// The first entry that is wrong or missing.
    pub entry: i64,
    /// The reason.
    pub what: &'static str,
}

/// Verifies a chain from its beginning, entry by entry.
#[derive(Debug, Clone, Default)]
pub struct Follower {
    came_to: Head,
}

impl Follower {
    /// The last entry that it verified.
    pub fn came_to(&self) -> &Head {
        &self.came_to
    }

    /// Verifies the next entry.
    pub fn take(&mut self, entry: &Entry) -> Result<(), Broken> {
        let expected = self.came_to.number + 1;
        let broken = |what| {
            let entry = expected;
            Err(Broken { entry, what })
        };
        if entry.number != expected {
            return broken("it is missing, or not in its place");
        }
        if entry.previous != self.came_to.hash {
            return broken(
                "it does not follow the one before: one of the two was edited, or one was taken out or put in",
            );
        }
        if entry.hash != entry.hashed() {
            return broken("it was edited: it has another hash than is written in it");
        }
        self.came_to = Head {
            number: entry.number,
            hash: entry.hash.clone(),
        };
        Ok(())
    }

    /// Compares the last entry with the separately stored head.
    pub fn finish(&self, head: &Head) -> Result<(), Broken> {
        let came_to = &self.came_to;
        let broken = |entry, what| Err(Broken { entry, what });
        if came_to.number < head.number {
            return broken(
                came_to.number + 1,
                "it is missing: the head knows more entries than there are",
            );
        }
        if came_to.number > head.number {
            return broken(
                head.number + 1,
                "the head does not know it: it was put in, or the head was edited",
            );
        }
        if came_to.hash != head.hash {
            return broken(head.number, "it is not the one that the head knows");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Draft, Outcome};
    use super::*;

    fn chain(targets: &[String]) -> (Vec<Entry>, Head) {
        let (mut entries, mut head) = (Vec::new(), Head::default());
        for (at, target) in (1_u64..).zip(targets) {
            let draft = Draft {
                at,
                workspace: "default".to_owned(),
                actor: "ops".to_owned(),
                source: "127.0.0.1".to_owned(),
                action: "PUT /v1/chaos".to_owned(),
                target: target.clone(),
                before: None,
                after: (at % 2 == 0).then(|| target.clone()),
                outcome: Outcome::Done,
                detail: String::new(),
            };
            let entry = Entry::after(&draft, head.number, &head.hash);
            head = Head {
                number: entry.number,
                hash: entry.hash.clone(),
            };
            entries.push(entry);
        }
        (entries, head)
    }

    fn verify(entries: &[Entry], head: &Head) -> Result<(), Broken> {
        let mut follower = Follower::default();
        for entry in entries {
            follower.take(entry)?;
        }
        follower.finish(head)
    }

    /// Changes one field of an entry.
    fn edit(entry: &mut Entry, field: usize) {
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
        assert_eq!(verify(&[], &Head::default()), Ok(()));
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
            prop_assert!(found.entry == number || found.entry == number + 1, "{}", found);

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
