//! Reads the tools that a model calls, by call id, from a response as it passes.
//!
//! If a provider stores the conversation, the agent sends only the result and the id of its call. The name of the
//! tool occurs only in the response before.

use std::collections::BTreeMap;

use crate::answer::AnswerForm;
use crate::answer_reader::AnswerReader;
use crate::dialect::Dialect;
use crate::model::{DeltaKind, Reading};

/// Maximum number of calls in one answer; further ones are not read.
const CALLS: usize = 256;

/// Longest id or name that is kept, in bytes.
const NAME: usize = 256;

/// Reads the calls of a response from a copy of its bytes. It never fails and never buffers more than its limits.
#[derive(Debug)]
pub struct CalledTools {
    answer: AnswerReader,
    calls: Calls,
}

/// Ids and tools, by choice and part. Each is empty until it is known.
type Calls = BTreeMap<(u64, u64), (String, String)>;

impl CalledTools {
    /// A reader for a response of this form; `None`: its form cannot be read, so it reports no calls.
    pub fn new(dialect: &'static dyn Dialect, form: Option<AnswerForm>) -> Self {
        Self {
            answer: AnswerReader::new(dialect, form),
            calls: Calls::new(),
        }
    }

    /// Reads a chunk of the response body, without content coding. Returns the ids and tools of the calls that are
    /// now complete, each once.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<(String, String)> {
        let mut complete = Vec::new();
        let calls = &mut self.calls;
        self.answer
            .push(chunk, |reading| note(calls, reading, &mut complete));
        complete
    }

    /// Ends the response. Returns the remaining calls.
    pub fn end(&mut self) -> Vec<(String, String)> {
        let mut complete = Vec::new();
        let calls = &mut self.calls;
        self.answer
            .end(|reading| note(calls, reading, &mut complete));
        complete
    }
}

fn note(calls: &mut Calls, reading: &Reading<'_>, complete: &mut Vec<(String, String)>) {
    for delta in &reading.deltas {
        let key = (delta.choice, delta.part);
        let is_known = calls.len() < CALLS || calls.contains_key(&key);
        if delta.repeats || delta.text.is_empty() || delta.text.len() > NAME || !is_known {
            continue;
        }
        let (id, tool) = match delta.kind {
            DeltaKind::ToolId | DeltaKind::ToolName => calls.entry(key).or_default(),
            _ => continue,
        };
        let was_complete = !id.is_empty() && !tool.is_empty();
        match delta.kind {
            DeltaKind::ToolId => delta.text.as_ref().clone_into(id),
            _ => delta.text.as_ref().clone_into(tool),
        }
        if !was_complete && !id.is_empty() && !tool.is_empty() {
            complete.push((id.clone(), tool.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::by_name;
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
        let dialect = by_name("openai-responses").expect("a dialect");
        let mut calls = CalledTools::new(dialect, Some(AnswerForm::Stream(Framing::Lines)));
        for index in 0..1000 {
            let item = r#"{"type":"function_call","call_id":"call"}"#;
            let event = format!(
                "{{\"type\":\"response.output_item.added\",\"output_index\":{index},\"item\":{item}}}\n"
            );
            calls.push(event.as_bytes());
        }
        assert_eq!(calls.calls.len(), CALLS);
    }
}
