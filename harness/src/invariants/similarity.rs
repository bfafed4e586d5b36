//! `similarity`: the answer is like an expected one, by its words.

use super::words::{likeness, quoted};
use super::{Check, Kind, Subject, Verdict};

/// `expected`, or without it the clean answer of the same prompt; `threshold` 0 to 1, default 0.8.
pub(super) const SIMILARITY: Kind = Kind::answer("similarity", |fields| {
    let expected = fields.words("expected").map(|text| text.value);
    let threshold = fields.real("threshold", 0.0..=1.0, "");
    if !fields.has("expected") && !fields.has("baseline") {
        fields.missing(
            "expected",
            "the answer that is expected, or `baseline: auto`",
        );
        return None;
    }
    Some(Box::new(Similarity {
        expected,
        threshold: threshold.unwrap_or(0.8),
    }))
});

#[derive(Debug)]
struct Similarity {
    /// `None`: the clean answer.
    expected: Option<String>,
    threshold: f64,
}

impl Check for Similarity {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let clean = subject.baseline.map(|clean| clean.answer.text.as_str());
        match self.expected.as_deref().or(clean) {
            Some(expected) => alike(&subject.answer.text, expected, self.threshold),
            None => Verdict::Error("there is no clean answer to compare with".to_owned()),
        }
    }

    fn needs_baseline(&self) -> bool {
        self.expected.is_none()
    }
}

/// Whether two texts are at least so alike.
pub(super) fn alike(answer: &str, expected: &str, threshold: f64) -> Verdict {
    let likeness = likeness(answer, expected);
    let told = format!(
        "likeness {likeness:.2} to {}, demanded is {threshold}",
        quoted(expected)
    );
    if likeness >= threshold {
        Verdict::Holds(told)
    } else {
        Verdict::Fails(told)
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, judged};

    #[test]
    fn texts_are_compared_by_their_words() {
        let written = "{type: similarity, expected: 'The flight to Paris leaves at nine', \
                       threshold: 0.7}";
        for (answer, expected) in [
            ("The flight to Paris leaves at nine.", Holds),
            ("the FLIGHT to Paris, it leaves at nine!", Holds),
            ("At nine leaves the flight to Paris", Holds),
            ("Bananas are rich in potassium", Fails),
            ("", Fails),
        ] {
            assert_eq!(judged(written, answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_bound_of_zero_is_a_bound() {
        assert_eq!(
            judged(
                "{type: similarity, expected: x, threshold: 0}",
                "quite else"
            ),
            Holds
        );
    }
}
