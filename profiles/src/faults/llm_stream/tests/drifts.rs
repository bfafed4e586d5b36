//! Texts that drift, in every kind and severity, on every dialect's corpus: a stream says what a whole
//! answer would.

use squall_dialects::ALL;
use squall_dialects::model::DeltaKind;

use super::dialects::{is_sound, on_every_sample};
use super::*;
use crate::faults::llm_rewrite::drift::drifted;

const LONGER: TextDrift = TextDrift::Length {
    factor: 2.0,
    compress: false,
};

const SHORTER: TextDrift = TextDrift::Length {
    factor: 2.0,
    compress: true,
};

fn drift(kind: TextDrift, severity: Severity) -> ResponseDrift {
    ResponseDrift {
        kind,
        severity,
        choice: 0,
    }
}

#[test]
fn a_stream_says_what_its_whole_text_becomes() {
    let all: Vec<_> = ALL.iter().map(|dialect| dialect.name()).collect();
    let kinds = [
        TextDrift::FieldNames,
        LONGER,
        SHORTER,
        TextDrift::Format,
        TextDrift::Refusal,
        TextDrift::Tone,
    ];
    for kind in kinds {
        for severity in [Severity::Subtle, Severity::Moderate, Severity::Significant] {
            let how = drift(kind, severity);
            // No corpus holds JSON or a refusal as text in every dialect.
            let excused = match kind {
                TextDrift::FieldNames | TextDrift::Refusal => &all[..],
                TextDrift::Length { .. } | TextDrift::Format | TextDrift::Tone => &[],
            };
            let fault = StreamFault::Rewrite(Rewrite::Drift(how));
            on_every_sample(&fault, excused, |_, before, after| {
                is_sound(before, after)?;
                for ((key, text), (_, said)) in before.texts.iter().zip(&after.texts) {
                    let same = || text.clone();
                    let due = match key.2 {
                        DeltaKind::Text => drifted(&how, text).unwrap_or_else(|_| same()),
                        _ => same(),
                    };
                    if *said != due {
                        return Err(format!("{key:?} says {said:?}, not {due:?}"));
                    }
                }
                Ok(())
            });
        }
    }
}
