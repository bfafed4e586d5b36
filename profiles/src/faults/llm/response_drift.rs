//! `response_drift`: a model's text changes, as after an unannounced release.

use serde_json::json;
use squall_documents::Fields;

use crate::amounts::positive;
use crate::changes::{ResponseDrift, Rewrite, Severity, StreamFault, TextDrift, Tools};
use crate::fault::Fault;
use crate::faults::fixed::drawn_change;

/// Default factor of `verbosity_shift`.
const FACTOR: f64 = 2.0;

/// The drift types of `response_drift`.
const DRIFT_TYPES: [(&str, TextDrift); 5] = [
    ("json_field_rename", TextDrift::FieldNames),
    (
        "verbosity_shift",
        TextDrift::Length {
            factor: FACTOR,
            compress: false,
        },
    ),
    ("format_change", TextDrift::Format),
    ("refusal_rephrase", TextDrift::Refusal),
    ("tone_shift", TextDrift::Tone),
];

const DIRECTIONS: [(&str, bool); 2] = [("expand", false), ("compress", true)];

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Kind of drift; default `json_field_rename`.";
    let kind = fields.word("drift_type", about, "drift type", &DRIFT_TYPES);
    let about = "How much it drifts; default `moderate`.";
    let severity = fields.word("severity", about, "severity", Severity::NAMES);
    let about = "Of `verbosity_shift`: by what factor the answer grows or shrinks.";
    let factor = positive(fields, "factor", about);
    let about = "Of `verbosity_shift`: whether it grows (default) or shrinks.";
    let compress = fields.word("direction", about, "direction", &DIRECTIONS);
    // An unknown type may be a misspelt one with a length.
    let may_have_length = match kind {
        None => fields.has("drift_type"),
        Some(kind) => matches!(kind, TextDrift::Length { .. }),
    };
    if may_have_length && factor.is_some_and(|factor| factor <= 1.0) {
        let allowed = "more than 1; to make the answer shorter, write `direction: compress`";
        fields.misplaced("factor", allowed);
    }
    let kind = match kind {
        Some(TextDrift::Length { .. }) => TextDrift::Length {
            factor: factor.unwrap_or(match severity {
                Some(Severity::Subtle) => 1.5,
                Some(Severity::Moderate) | None => FACTOR,
                Some(Severity::Significant) => 4.0,
            }),
            compress: compress.unwrap_or_default(),
        },
        kind => kind.unwrap_or(TextDrift::FieldNames),
    };
    let severity = severity.unwrap_or_default();
    let drift_type = match kind {
        TextDrift::FieldNames => "json_field_rename",
        TextDrift::Length { .. } => "verbosity_shift",
        TextDrift::Format => "format_change",
        TextDrift::Refusal => "refusal_rephrase",
        TextDrift::Tone => "tone_shift",
    };
    let parameters = if let TextDrift::Length { factor, compress } = kind {
        let direction = if compress { "compress" } else { "expand" };
        json!({ "drift_type": drift_type, "direction": direction, "factor": factor })
    } else {
        json!({ "drift_type": drift_type, "severity": severity.as_str() })
    };
    drawn_change(parameters, move |choice| {
        StreamFault::Rewrite(Rewrite::Drift(ResponseDrift {
            kind,
            severity,
            choice,
        }))
    })
}
