//! `contains`, `contains_any`, `not_contains`: words that the answer must or must not contain.

use squall_documents::Fields;

use super::words::{fold, quoted};
use super::{Check, InvariantKind, Subject, Verdict};

pub(super) const CONTAINS: InvariantKind = InvariantKind::answer("contains", |fields| {
    let (value, case_sensitive) = value(fields);
    Some(contains(vec![value?], case_sensitive, true))
});

pub(super) const CONTAINS_ANY: InvariantKind = InvariantKind::answer("contains_any", |fields| {
    let what = "the texts of which one must be there";
    let values = fields.texts("values", "Texts of which one must be there.", what);
    let case_sensitive = case_sensitive(fields);
    fields.require("values", "the texts of which one must be there, a list");
    let values = values?.into_iter().map(|text| text.value).collect();
    Some(contains(values, case_sensitive, true))
});

pub(super) const NOT_CONTAINS: InvariantKind = InvariantKind::answer("not_contains", |fields| {
    let (value, case_sensitive) = value(fields);
    Some(contains(vec![value?], case_sensitive, false))
});

pub(super) fn value(fields: &mut Fields<'_, '_>) -> (Option<String>, bool) {
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

/// Whether a text contains another.
pub(super) fn includes(text: &str, value: &str, case_sensitive: bool) -> bool {
    if case_sensitive {
        text.contains(value)
    } else {
        fold(text).contains(&fold(value))
    }
}

/// Whether the answer contains one of `values`, if `expected`, or none.
fn contains(values: Vec<String>, case_sensitive: bool, expected: bool) -> Check {
    Check::new(move |subject: &Subject<'_>| {
        let text = &subject.answer.text;
        let mut all = values.iter();
        let found = all.find(|value| includes(text, value, case_sensitive));
        let reason = match (found, &values[..]) {
            (Some(value), _) => format!("the answer contains {}", quoted(value)),
            (None, [one]) => format!("the answer does not contain {}", quoted(one)),
            (None, several) => {
                let several: Vec<_> = several.iter().map(|value| quoted(value)).collect();
                format!("the answer contains none of {}", several.join(", "))
            }
        };
        Verdict::of(found.is_some() == expected, reason)
    })
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, judged};

    #[test]
    #[rustfmt::skip]
    fn words_are_found_in_any_case_unless_case_counts() {
        for (written, answer, expected) in [
            ("{type: contains, value: Paris}", "It is PARIS.", Holds),
            ("{type: contains, value: Paris}", "It is London.", Fails),
            ("{type: contains, value: Straße}", "die STRASSE? nein: STRAßE", Holds),
            ("{type: contains, value: Paris, case_sensitive: true}", "PARIS", Fails),
            ("{type: contains, value: Paris, negate: true}", "London", Holds),
            ("{type: contains, value: Paris, negate: true}", "Paris", Fails),
            ("{type: contains_any, values: [rain, sun]}", "Sunny", Holds),
            ("{type: contains_any, values: [rain, sun]}", "snow", Fails),
            ("{type: contains_any, values: [rain, sun], negate: true}", "snow", Holds),
            ("{type: not_contains, value: sorry}", "Here it is", Holds),
            ("{type: not_contains, value: sorry}", "SORRY, no", Fails),
            ("{type: not_contains, value: sorry, negate: true}", "so sorry", Holds),
        ] {
            assert_eq!(judged(written, answer), expected, "{written}: {answer}");
        }
    }
}
