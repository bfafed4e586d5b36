//! `response_drift`: a model's text drifts, as after an unannounced release.

use serde_json::{Map, Value, json};

use super::AnswerFault;
use crate::fault::{self, Rewrite, Severity, StreamFault, TextDrift};
use crate::faults::mode::{Fields, Tools};
use crate::profile::amounts::positive;

/// In this way, so much.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseDrift {
    kind: TextDrift,
    severity: Severity,
}

/// By what factor `verbosity_shift` changes a text when nothing else is written.
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

const SEVERITIES: [(&str, Severity); 3] = [
    ("subtle", Severity::Subtle),
    ("moderate", Severity::Moderate),
    ("significant", Severity::Significant),
];

const DIRECTIONS: [(&str, bool); 2] = [("expand", false), ("compress", true)];

impl AnswerFault for ResponseDrift {
    const NAME: &'static str = "response_drift";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "Kind of drift; default `json_field_rename`.";
        let kind = fields.word("drift_type", about, "drift type", &DRIFT_TYPES);
        let about = "How much it drifts; default `moderate`.";
        let severity = fields.word("severity", about, "severity", &SEVERITIES);
        let about = "Of `verbosity_shift`: by what factor the answer grows or shrinks.";
        let factor = positive(fields, "factor", about);
        let about = "Of `verbosity_shift`: whether it grows (default) or shrinks.";
        let compress = fields.word("direction", about, "direction", &DIRECTIONS);
        // One that is not known may have been meant to have a length.
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
        Some(Self {
            kind,
            severity: severity.unwrap_or_default(),
        })
    }

    fn change(&self) -> StreamFault {
        StreamFault::Rewrite(Rewrite::Drift(fault::ResponseDrift {
            kind: self.kind,
            severity: self.severity,
            choice: 0,
        }))
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        let drift_type = match self.kind {
            TextDrift::FieldNames => "json_field_rename",
            TextDrift::Length { .. } => "verbosity_shift",
            TextDrift::Format => "format_change",
            TextDrift::Refusal => "refusal_rephrase",
            TextDrift::Tone => "tone_shift",
        };
        into.insert("drift_type".into(), json!(drift_type));
        if let TextDrift::Length { factor, compress } = self.kind {
            let direction = if compress { "compress" } else { "expand" };
            into.insert("direction".into(), json!(direction));
            into.insert("factor".into(), json!(factor));
        } else {
            let named = SEVERITIES
                .iter()
                .find(|(_, severity)| *severity == self.severity);
            into.insert("severity".into(), json!(named.map(|(word, _)| word)));
        }
    }
}
