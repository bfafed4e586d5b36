//! `max_length`: the maximum length of the answer.

use super::{Check, InvariantKind, Verdict};

/// `max`, in characters.
pub(super) const MAX_LENGTH: InvariantKind = InvariantKind::answer("max_length", |fields| {
    let most = fields.whole("max", "Most characters.", 0..=u64::MAX, " characters");
    fields.require("max", "the greatest number of characters");
    let most = most?;
    Some(Check::new(move |subject| {
        let length = subject.answer.text.chars().count() as u64;
        if length <= most {
            let verdict = Verdict::holds(format!(
                "the answer has {length} of at most {most} characters"
            ));
            verdict.with_margin_of(length, most)
        } else {
            Verdict::fails(format!(
                "the answer has {length} characters; the limit is {most}"
            ))
        }
    }))
});

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, judged};

    #[test]
    fn characters_are_counted_and_not_bytes() {
        for (answer, expected) in [("", Holds), ("äöü", Holds), ("four", Fails)] {
            assert_eq!(
                judged("{type: max_length, max: 3}", answer),
                expected,
                "{answer}"
            );
        }
    }
}
