//! Which tool a model's call is of, by the call's id, read from answers as they pass.
//!
//! Where a provider keeps the conversation, the agent sends nothing but the result and the id of the
//! call that it answers. What the tool is called stood in the answer before.

use crate::dialect::{AnswerForm, Dialect};
use crate::documents::Documents;
use crate::model::{DeltaKind, Reading};

/// Calls of one answer that are told apart; of further ones nothing is known.
const CALLS: usize = 256;

/// Bytes of an id, or of a name, up to which it is kept.
const NAME: usize = 256;

/// A call in an answer: the choice and the part.
type Place = (u64, u64);

/// Reads the calls of an answer from a copy of its bytes: never fails, never keeps more than its
/// limits.
#[derive(Debug)]
pub struct CalledTools {
    documents: Documents,
    calls: Calls,
}

#[derive(Debug, Default)]
struct Calls {
    /// Calls of which only the id, or only the tool, is known.
    begun: Vec<(Place, Half)>,
    /// Ids and tools of those that nobody has taken so far.
    complete: Vec<(String, String)>,
    seen: usize,
}

#[derive(Debug)]
enum Half {
    Id(String),
    Tool(String),
}

impl CalledTools {
    /// Of an answer whose head has come; `None`: its form cannot be read, and it says nothing.
    pub fn new(dialect: &'static dyn Dialect, form: Option<AnswerForm>) -> Self {
        Self {
            documents: Documents::new(dialect, form),
            calls: Calls::default(),
        }
    }

    /// Some bytes of the answer's body, without content coding: the ids and the tools of the calls
    /// that are complete by now, each once.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<(String, String)> {
        let calls = &mut self.calls;
        self.documents.push(chunk, |reading| calls.note(reading));
        std::mem::take(&mut self.calls.complete)
    }

    /// The answer's body is over: the same of what a whole answer says.
    pub fn end(&mut self) -> Vec<(String, String)> {
        let calls = &mut self.calls;
        self.documents.end(|reading| calls.note(reading));
        std::mem::take(&mut self.calls.complete)
    }
}

impl Calls {
    fn note(&mut self, reading: &Reading<'_>) {
        for delta in &reading.deltas {
            let text = || delta.text.as_ref().to_owned();
            let half = match delta.kind {
                _ if delta.repeats || delta.text.is_empty() || delta.text.len() > NAME => continue,
                DeltaKind::ToolId => Half::Id(text()),
                DeltaKind::ToolName => Half::Tool(text()),
                DeltaKind::Text
                | DeltaKind::Reasoning
                | DeltaKind::Signature
                | DeltaKind::Refusal
                | DeltaKind::ToolArguments => continue,
            };
            self.add((delta.choice, delta.part), half);
        }
    }

    fn add(&mut self, place: Place, half: Half) {
        let Some(known) = self.begun.iter().position(|(at, _)| *at == place) else {
            if self.seen < CALLS {
                self.seen += 1;
                self.begun.push((place, half));
            }
            return;
        };
        match (self.begun.swap_remove(known).1, half) {
            (Half::Id(id), Half::Tool(tool)) | (Half::Tool(tool), Half::Id(id)) => {
                self.complete.push((id, tool));
            }
            (_, again) => self.begun.push((place, again)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;
    use crate::stream::Framing;

    fn read(answer: &str, form: AnswerForm, size: usize) -> Vec<(String, String)> {
        let dialect = by_name("openai-responses").expect("a dialect");
        let mut calls = CalledTools::new(dialect, Some(form));
        let pieces = answer.as_bytes().chunks(size);
        let mut read: Vec<_> = pieces.flat_map(|piece| calls.push(piece)).collect();
        read.extend(calls.end());
        read
    }

    #[test]
    fn calls_are_known_by_their_ids_however_the_answer_comes() {
        const WHOLE: &str = include_str!("../corpus/openai-responses/tool_calls.json");
        const STREAM: &str = include_str!("../corpus/openai-responses/tool_calls.sse");
        for (answer, form) in [
            (WHOLE, AnswerForm::Json),
            (STREAM, AnswerForm::Stream(Framing::Sse)),
        ] {
            let calls = read(answer, form, answer.len());
            assert!(!calls.is_empty(), "{form:?}");
            for (id, tool) in &calls {
                assert!(id.starts_with("call_"), "{id}");
                assert!(answer.contains(tool.as_str()), "{tool}");
            }
            for size in [1, 7] {
                assert_eq!(read(answer, form, size), calls, "{form:?} by {size}");
            }
        }
    }

    #[test]
    fn a_stream_tells_a_call_before_it_ends() {
        let dialect = by_name("openai-responses").expect("a dialect");
        let mut calls = CalledTools::new(dialect, Some(AnswerForm::Stream(Framing::Sse)));
        let event = "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\
             \"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"fc_1\",\
             \"call_id\":\"call_1\",\"name\":\"find_hotel\",\"arguments\":\"\"}}\n\n";
        let known = calls.push(event.as_bytes());
        assert_eq!(known, [("call_1".to_owned(), "find_hotel".to_owned())]);
        assert_eq!(calls.end(), []);
    }

    #[test]
    fn no_answer_makes_it_keep_more_than_its_limits() {
        let mut calls = Calls::default();
        for part in 0..1000 {
            calls.add((0, part), Half::Id("call".to_owned()));
        }
        assert_eq!(calls.begun.len(), CALLS);
    }
}
