//! `max_length`: the maximum length of the answer.

use super::{Check, Kind, Subject, Verdict};

/// `max`, in characters.
pub(super) const MAX_LENGTH: Kind = Kind::answer("max_length", |fields| {
    let most = fields.whole("max", "Most characters.", 0..=u64::MAX, " characters");
    fields.require("max", "the greatest number of characters");
    Some(Box::new(MaxLength(most?)))
});

#[derive(Debug)]
struct MaxLength(u64);

impl Check for MaxLength {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let (length, most) = (subject.answer.text.chars().count() as u64, self.0);
        if length <= most {
            Verdict::holds(format!(
                "the answer has {length} of at most {most} characters"
            ))
        } else {
            Verdict::fails(format!(
                "the answer has {length} characters, allowed are {most}"
            ))
        }
    }
}

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
