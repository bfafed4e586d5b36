//! Whole responses for requested streams: the events as one JSON document.

use squall_dialects::json::Document;
use squall_dialects::model::{DeltaKind, Finish, Reading};
use squall_dialects::stream::{Frame, Framing, Splitter};
use squall_dialects::{Event, Part, Transcript};

use super::{AnsweredCall, too_short};
use crate::faults::editing::EditedAnswer;

/// The document with the stream's content, or why there is none.
pub(super) fn assembled(
    framing: Framing,
    stream: &[u8],
    call: &AnsweredCall,
) -> Result<EditedAnswer, String> {
    let mut splitter = Splitter::new(framing, stream.len());
    let mut frames: Vec<Frame> = splitter.push(stream);
    frames.extend(splitter.finish());
    let data: Vec<_> = frames
        .iter()
        .filter_map(|frame| Some((frame, frame.data()?)))
        .collect();
    let documents: Vec<_> = data
        .iter()
        .filter_map(|(frame, data)| Some((*frame, Document::parse(data).ok()?)))
        .collect();
    let events: Vec<_> = documents
        .iter()
        .map(|(frame, document)| Event::of(frame, document))
        .map(|event| (event, call.dialect.read(event)))
        .collect();
    if let Some(error) = events
        .iter()
        .find_map(|(_, reading)| reading.error.as_ref())
    {
        return Err(format!("the answer is an error: {error}"));
    }
    let mut said = events.iter().filter(|(_, reading)| says_something(reading));
    let first = said.next().ok_or_else(|| too_short(0, 0))?;
    let last = said.rfind(|(_, reading)| holds_answer(reading));
    let last = last.unwrap_or(first);
    let mut gathered = AssembledPart::default();
    for (_, reading) in &events {
        gathered.add(reading);
    }
    let transcript = Transcript {
        first: first.0,
        last: last.0,
        parts: gathered.parts(),
        finishes: gathered.finishes,
        tokens: gathered.tokens,
    };
    let answer = call.dialect.whole_answer(&transcript);
    let answer = answer.ok_or("the stream cannot be put together")?;
    Ok(EditedAnswer {
        media_type: Some("application/json"),
        ..EditedAnswer::new(answer)
    })
}

/// Whether an event belongs to the response, unlike a keep-alive.
fn says_something(reading: &Reading<'_>) -> bool {
    !reading.deltas.is_empty()
        || !reading.finishes.is_empty()
        || reading.usage.is_some()
        || reading.introduces
        || reading.model.is_some()
        || reading.ends
}

/// Whether an event says something of the answer's own or counts its tokens, unlike a bare end.
fn holds_answer(reading: &Reading<'_>) -> bool {
    !reading.deltas.is_empty() || !reading.finishes.is_empty() || reading.usage.is_some()
}

/// The content so far.
#[derive(Default)]
struct AssembledPart {
    /// In the order in which they began.
    parts: Vec<((u64, u64, PartSort), Part)>,
    finishes: Vec<(u64, Finish)>,
    tokens: (Option<u64>, Option<u64>),
}

/// What pieces have in common that belong to one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartSort {
    Words(DeltaKind),
    Call,
}

impl AssembledPart {
    fn add(&mut self, reading: &Reading<'_>) {
        for delta in reading.deltas.iter().filter(|delta| !delta.repeats) {
            let sort = match delta.kind {
                DeltaKind::ToolId | DeltaKind::ToolName | DeltaKind::ToolArguments => {
                    PartSort::Call
                }
                DeltaKind::Reasoning | DeltaKind::Signature => {
                    PartSort::Words(DeltaKind::Reasoning)
                }
                DeltaKind::Text | DeltaKind::Refusal => PartSort::Words(delta.kind),
            };
            let key = (delta.choice, delta.part, sort);
            let known = self.parts.iter().rposition(|(known, _)| *known == key);
            let at = known.unwrap_or_else(|| {
                let part = Part {
                    choice: delta.choice,
                    part: delta.part,
                    kind: match sort {
                        PartSort::Words(kind) => kind,
                        PartSort::Call => DeltaKind::ToolArguments,
                    },
                    text: String::new(),
                    call: (sort == PartSort::Call).then(Default::default),
                    signature: None,
                };
                self.parts.push((key, part));
                self.parts.len() - 1
            });
            let part = &mut self.parts[at].1;
            match (delta.kind, &mut part.call) {
                (DeltaKind::ToolId, Some((id, _))) => id.push_str(&delta.text),
                (DeltaKind::ToolName, Some((_, name))) => name.push_str(&delta.text),
                (DeltaKind::Signature, _) => {
                    part.signature.get_or_insert_default().push_str(&delta.text);
                }
                _ => part.text.push_str(&delta.text),
            }
        }
        for finished in &reading.finishes {
            self.finishes
                .push((finished.choice, finished.finish.clone()));
        }
        if let Some(usage) = &reading.usage {
            self.tokens.0 = usage.input.or(self.tokens.0);
            self.tokens.1 = usage.output.or(self.tokens.1);
        }
    }

    fn parts(&mut self) -> Vec<Part> {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_by_key(|((choice, ..), _)| *choice);
        parts.into_iter().map(|(_, part)| part).collect()
    }
}
