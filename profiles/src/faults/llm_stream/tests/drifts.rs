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

#[test]
fn what_repeats_a_text_that_stays_stays_even_where_it_says_something_else() {
    let dialect = squall_dialects::by_name("openai-responses").expect("a dialect");
    let place = r#""item_id":"m","output_index":0,"content_index":0"#;
    let stream = format!(
        "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",{place},\"delta\":\".\"}}\n\n\
         event: response.output_text.done\ndata: {{\"type\":\"response.output_text.done\",{place},\"text\":\"Hi.\"}}\n\n"
    );
    let fault = StreamFault::Rewrite(Rewrite::Drift(drift(SHORTER, Severity::Significant)));
    let form = AnswerForm::Stream(squall_dialects::stream::Framing::Sse);
    let mut editor = StreamEditor::new(&fault, dialect, form);
    let mut steps = editor.push(stream.as_bytes());
    steps.extend(editor.finish());
    let sent: Vec<u8> = steps
        .iter()
        .flat_map(|step| match step {
            Step::Emit(bytes) => bytes.to_vec(),
            Step::Wait(_) | Step::End(_) | Step::Finish => Vec::new(),
        })
        .collect();
    assert!(!editor.touched());
    assert_eq!(String::from_utf8_lossy(&sent), stream);
}
