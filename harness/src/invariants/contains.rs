//! `contains`, `contains_any`, `not_contains`: words that the answer must or must not contain.

use squall_documents::Fields;

use super::words::{fold, quoted};
use super::{Check, Kind, Subject, Verdict};

pub(super) const CONTAINS: Kind = Kind::answer("contains", |fields| {
    let (value, case_sensitive) = value(fields);
    boxed(vec![value?], case_sensitive, Wanted::There)
});

pub(super) const CONTAINS_ANY: Kind = Kind::answer("contains_any", |fields| {
    let what = "the texts of which one must be there";
    let values = fields.texts("values", "Texts of which one must be there.", what);
    let case_sensitive = case_sensitive(fields);
    fields.require("values", "the texts of which one must be there, a list");
    let values = values?.into_iter().map(|text| text.value).collect();
    boxed(values, case_sensitive, Wanted::There)
});

pub(super) const NOT_CONTAINS: Kind = Kind::answer("not_contains", |fields| {
    let (value, case_sensitive) = value(fields);
    boxed(vec![value?], case_sensitive, Wanted::Absent)
});

fn value(fields: &mut Fields<'_, '_>) -> (Option<String>, bool) {
    let value = fields.words("value", "The text that is looked for.");
    let case_sensitive = case_sensitive(fields);
    fields.require("value", "the text that is looked for");
    (value.map(|text| text.value), case_sensitive)
}

fn case_sensitive(fields: &mut Fields<'_, '_>) -> bool {
    let case_sensitive = fields.flag("case_sensitive", CASE_SENSITIVE);
    case_sensitive.unwrap_or(false)
}

/// The description of `case_sensitive`.
pub(super) const CASE_SENSITIVE: &str = "Whether case counts.";

#[expect(clippy::unnecessary_wraps, reason = "what `read` gives")]
fn boxed(values: Vec<String>, case_sensitive: bool, wanted: Wanted) -> Option<Box<dyn Check>> {
    Some(Box::new(Contains {
        values,
        case_sensitive,
        wanted,
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    There,
    Absent,
}

/// The answer contains one of `values`.
#[derive(Debug)]
struct Contains {
    values: Vec<String>,
    /// Default false.
    case_sensitive: bool,
    wanted: Wanted,
}

impl Check for Contains {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let text = &subject.answer.text;
        let found = self.values.iter().find(|value| {
            if self.case_sensitive {
                text.contains(value.as_str())
            } else {
                fold(text).contains(&fold(value))
            }
        });
        match (found, self.wanted) {
            (Some(value), Wanted::There) => {
                Verdict::holds(format!("the answer contains {}", quoted(value)))
            }
            (Some(value), Wanted::Absent) => {
                Verdict::fails(format!("the answer contains {}", quoted(value)))
            }
            (None, wanted) => {
                let values: Vec<_> = self.values.iter().map(|value| quoted(value)).collect();
                let reason = match &values[..] {
                    [one] => format!("the answer does not contain {one}"),
                    several => format!("the answer contains none of {}", several.join(", ")),
                };
                match wanted {
                    Wanted::There => Verdict::fails(reason),
                    Wanted::Absent => Verdict::holds(reason),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, judged};

    #[test]
    fn words_are_found_in_any_case_unless_case_counts() {
        for (written, answer, expected) in [
            ("{type: contains, value: Paris}", "It is PARIS.", Holds),
            ("{type: contains, value: Paris}", "It is London.", Fails),
            (
                "{type: contains, value: Straße}",
                "die STRASSE? nein: STRAßE",
                Holds,
            ),
            (
                "{type: contains, value: Paris, case_sensitive: true}",
                "PARIS",
                Fails,
            ),
            (
                "{type: contains, value: Paris, negate: true}",
                "London",
                Holds,
            ),
            (
                "{type: contains, value: Paris, negate: true}",
                "Paris",
                Fails,
            ),
            ("{type: contains_any, values: [rain, sun]}", "Sunny", Holds),
            ("{type: contains_any, values: [rain, sun]}", "snow", Fails),
            (
                "{type: contains_any, values: [rain, sun], negate: true}",
                "snow",
                Holds,
            ),
            ("{type: not_contains, value: sorry}", "Here it is", Holds),
            ("{type: not_contains, value: sorry}", "SORRY, no", Fails),
            (
                "{type: not_contains, value: sorry, negate: true}",
                "so sorry",
                Holds,
            ),
        ] {
            assert_eq!(judged(written, answer), expected, "{written}: {answer}");
        }
    }
}
