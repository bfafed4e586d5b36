//! Reads the journal's data about a model call, beside the forwarding path.

use crate::answer::AnswerForm;
use crate::answer_reader::AnswerReader;
use crate::dialect::Dialect;
use crate::registry::read_request;
use crate::tally::{ModelCall, Tally, Tokens, shortened};
use crate::target::Target;
use crate::tokens::Counting;

/// Reads a model call from a copy of its bytes. It never fails and never buffers more than its limits.
#[derive(Debug)]
pub struct Reader {
    dialect: &'static dyn Dialect,
    /// The requested model.
    model: Option<String>,
    stream: bool,
    tally: Tally,
    answer: AnswerReader,
}

impl Reader {
    /// A reader for a call to `target` in `dialect`. `request` is the decoded request body: complete, truncated, or
    /// `None`.
    pub fn new(dialect: &'static dyn Dialect, target: Target<'_>, request: Option<&[u8]>) -> Self {
        let request = request
            .and_then(|body| read_request(dialect, target, body))
            .unwrap_or_default();
        let counting = request.model.as_deref().map(Counting::of_model);
        Self {
            dialect,
            model: request.model.map(|model| shortened(&model)),
            stream: request.stream,
            tally: Tally::new(dialect, counting),
            answer: AnswerReader::new(dialect, None),
        }
    }

    /// Sets the requested model, if the request did not contain it.
    pub fn set_model(&mut self, model: &str) {
        if self.model.is_none() {
            self.model = Some(shortened(model));
            self.tally = Tally::new(self.dialect, Some(Counting::of_model(model)));
        }
    }

    /// Records that Squall, not the provider, counted the output tokens in the answer.
    pub fn counted_anew(&mut self) {
        self.tally.counted_anew = true;
    }

    /// Whether Squall counted any tokens of a call with this usage.
    pub fn has_counted(&self, tokens: Tokens) -> bool {
        tokens.estimated > 0 || self.tally.counted_anew
    }

    /// Sets the form of the response; `None` if its form or content coding cannot be read.
    pub fn head(&mut self, form: Option<AnswerForm>) {
        if self.model.is_none() && matches!(form, Some(AnswerForm::Stream(_))) {
            self.stream = true;
        }
        self.answer = AnswerReader::new(self.dialect, form);
    }

    /// Reads a chunk of the response body, without content coding.
    pub fn push(&mut self, chunk: &[u8]) {
        let tally = &mut self.tally;
        self.answer.push(chunk, |reading| tally.note(reading));
    }

    /// Takes the tally of a response that was read already.
    pub fn take_tally(&mut self, tally: Tally) {
        self.answer = AnswerReader::new(self.dialect, None);
        self.tally = tally;
    }

    /// Reads the last bytes of a response after a gap. Starts at the first certain start of an event, if the
    /// framing has one.
    pub fn resume(&mut self, rest: &[u8]) {
        let tally = &mut self.tally;
        self.answer.resume(rest, |reading| tally.note(reading));
    }

    /// The model, if known.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref().or(self.tally.model())
    }

    /// How tokens are counted if the provider does not count them.
    pub fn counting(&self) -> Counting {
        self.tally.counting()
    }

    /// The usage so far; see [`Tally::tokens`].
    pub fn tokens(&mut self, request: impl FnOnce(Counting) -> u64) -> Tokens {
        self.tally.tokens(request)
    }

    /// Ends the response and reads it if it is one document. Later chunks are ignored.
    pub fn end(&mut self) {
        let tally = &mut self.tally;
        self.answer.end(|reading| tally.note(reading));
    }

    /// Ends the response, also after an abort, and returns the result.
    pub fn finish(mut self) -> ModelCall {
        self.end();
        self.tally.call(self.model, self.stream)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answer_reader::{ANSWER_LIMIT, EVENT_LIMIT};
    use crate::registry::by_name;
    use crate::stream::Framing;
    use crate::tally::{NAME_LIMIT, TOOL_CALL_LIMIT};

    const SSE: AnswerForm = AnswerForm::Stream(Framing::Sse);

    fn reader(form: Option<AnswerForm>) -> Reader {
        let dialect = by_name("openai-chat").expect("built in");
        let mut reader = Reader::new(dialect, Target::default(), None);
        reader.head(form);
        reader
    }

    fn usage_event(output: u64) -> String {
        format!("data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":{output}}}}}\n\n")
    }

    #[test]
    fn an_event_over_the_limit_is_passed_over() {
        let mut reader = reader(Some(SSE));
        let padding = "x".repeat(EVENT_LIMIT);
        reader.push(usage_event(1).as_bytes());
        reader.push(
            format!("data: {{\"x\":\"{padding}\",\"usage\":{{\"completion_tokens\":2}}}}\n\n")
                .as_bytes(),
        );
        assert_eq!(reader.finish().output_tokens, Some(1));
    }

    #[test]
    fn a_document_over_the_limit_is_not_read_and_not_kept() {
        for (padding, expected) in [(0, Some(7)), (ANSWER_LIMIT, None)] {
            let mut reader = reader(Some(AnswerForm::Json));
            let padding = " ".repeat(padding);
            for chunk in ["{\"usage\":{\"completion_tokens\":7}", &padding, "}"] {
                reader.push(chunk.as_bytes());
            }
            assert_eq!(reader.finish().output_tokens, expected);
        }
    }

    #[test]
    fn no_more_tool_calls_are_kept_than_the_limit() {
        let mut reader = reader(Some(SSE));
        let name = "n".repeat(500);
        for index in 0..1000 {
            let call = format!("{{\"index\":{index},\"function\":{{\"name\":\"{name}\"}}}}");
            let event =
                format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n");
            reader.push(event.as_bytes());
        }
        let calls = reader.finish().tool_calls;
        assert_eq!(calls.len(), TOOL_CALL_LIMIT);
        assert!(calls.iter().all(|name| name.len() == NAME_LIMIT));
    }

    #[test]
    fn what_the_provider_does_not_count_is_estimated() {
        let event =
            |choice: &str, usage: &str| format!("data: {{\"choices\":[{choice}]{usage}}}\n\n");
        let said = |words: &str| event(&format!("{{\"delta\":{{\"content\":\"{words}\"}}}}"), "");
        let end = event("{\"delta\":{},\"finish_reason\":\"stop\"}", "");
        let usage = event(
            "",
            ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}",
        );
        let (words, error) = (said(" one two"), "data: {\"error\":{}}\n\n".to_owned());
        for (events, input, output, estimated) in [
            (vec![&words, &words, &end], Some(100), Some(4), 104),
            (vec![&words, &words], Some(100), Some(4), 104),
            (vec![&words, &words, &end, &usage], Some(7), Some(2), 0),
            // Counted before the end, and lower than the text received since.
            (vec![&usage, &words, &words], Some(7), Some(4), 4),
            (vec![&usage, &words], Some(7), Some(2), 0),
            (vec![&error], None, None, 0),
            (vec![], None, None, 0),
        ] {
            let mut reader = reader(Some(SSE));
            for event in &events {
                reader.push(event.as_bytes());
            }
            let expected = Tokens {
                input,
                output,
                estimated,
            };
            assert_eq!(reader.tokens(|_| 100), expected, "{events:?}");
        }
    }

    #[test]
    fn a_document_that_broke_off_is_worth_the_text_that_has_come() {
        let answer = r#"{"model":"gpt-4","choices":[{"index":0,"finish_reason":"stop","message":{"content":"one two\nthree \u00e9\\ four"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#;
        let count = |text: &str| crate::tokens::count_piece(Counting::of_model("gpt-4"), text);
        for (up_to, said) in [
            ("\"content\":", None),
            ("\"one", Some("one")),
            ("one two", Some("one two")),
            ("two\\", Some("one two")),
            ("two\\n", Some("one two\n")),
            ("three \\u00", Some("one two\nthree ")),
            ("\\u00e9", Some("one two\nthree é")),
            (" four\"}}", Some("one two\nthree é\\ four")),
            ("_tokens\":7", Some("one two\nthree é\\ four")),
        ] {
            let cut = answer.find(up_to).expect("a part of it") + up_to.len();
            let mut reader = reader(Some(AnswerForm::Json));
            reader.push(&answer.as_bytes()[..cut]);
            reader.end();
            let tokens = reader.tokens(|_| 100);
            assert_eq!(tokens.output, said.map(count), "{up_to}");
            assert_eq!(tokens.input, said.map(|_| 100), "{up_to}");
            assert_eq!(reader.finish().finish, None, "{up_to}");
        }
        let mut reader = reader(Some(AnswerForm::Json));
        reader.push(&answer.as_bytes()[..answer.len() - 1]);
        reader.end();
        assert_eq!(
            reader.tokens(|_| 100).output,
            Some(3),
            "the provider counted"
        );
    }

    #[test]
    fn the_end_of_a_stream_is_read_without_its_middle() {
        for (rest, output) in [
            (format!("oken\"}}}}]}}\n\n{}", usage_event(7)), Some(7)),
            (format!("en\"}}\r\n\r\n{}", usage_event(7)), Some(7)),
            (usage_event(7), None),
            (String::new(), None),
        ] {
            let mut reader = reader(Some(SSE));
            reader.push(b"data: {\"model\":\"m\"}\n\ndata: {\"cho");
            reader.resume(rest.as_bytes());
            let call = reader.finish();
            assert_eq!(
                (call.model.as_deref(), call.output_tokens),
                (Some("m"), output),
                "{rest}"
            );
        }
    }

    #[test]
    fn an_answer_in_another_form_is_left_alone() {
        let mut reader = reader(None);
        reader.push(usage_event(1).as_bytes());
        assert_eq!(reader.finish(), ModelCall::default());
    }

    /// An event with this text.
    fn event_of(text: &str) -> String {
        let said = serde_json::json!({ "choices": [{ "delta": { "content": text } }] });
        format!("data: {said}\n\n")
    }

    #[test]
    fn a_model_that_only_the_answer_names_is_counted_as_that_model() {
        let text = "お誕生日おめでとう";
        for (model, tokens) in [("gpt-4o", 8), ("gpt-4", 9), ("qwen3", 9)] {
            let mut reader = reader(Some(SSE));
            let said = serde_json::json!({ "model": model, "choices": [{ "delta": { "content": text } }] });
            reader.push(format!("data: {said}\n\n").as_bytes());
            assert_eq!(reader.tokens(|_| 0).output, Some(tokens), "{model}");
            assert_eq!(reader.counting(), Counting::of_model(model));
        }
    }

    #[test]
    fn no_vocabulary_is_read_where_the_provider_counts() {
        let mut reader = reader(Some(SSE));
        reader.set_model("gpt-4");
        for text in ["one", " two three"] {
            reader.push(event_of(text).as_bytes());
        }
        let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":\
                   {\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n";
        reader.push(end.as_bytes());
        assert_eq!(reader.tokens(|_| 0).output, Some(3));
        assert_eq!(reader.tally.written, 0, "nothing was counted");
    }

    proptest! {
        #[test]
        fn an_answer_counts_as_its_deltas_do_whoever_asks_meanwhile(
            texts in proptest::collection::vec("[a-zA-Z0-9,. \n]{0,12}|\\PC{1,3}", 1..20),
        ) {
            for model in ["gpt-4o", "gpt-4", "claude-sonnet-4-5"] {
                let counting = Counting::of_model(model);
                let count = |text: &String| crate::tokens::count_piece(counting, text);
                let tokens: u64 = texts.iter().map(count).sum();
                for asks_meanwhile in [false, true] {
                    let mut reader = reader(Some(SSE));
                    reader.set_model(model);
                    for text in &texts {
                        reader.push(event_of(text).as_bytes());
                        if asks_meanwhile {
                            reader.tokens(|_| 0);
                        }
                    }
                    let said = texts.iter().any(|text| !text.is_empty());
                    let expected = said.then_some(tokens);
                    prop_assert_eq!(reader.tokens(|_| 0).output, expected, "{}", model);
                }
            }
        }

        #[test]
        fn no_bytes_make_it_panic(
            request in proptest::collection::vec(any::<u8>(), 0..60),
            answer in proptest::collection::vec(any::<u8>(), 0..200),
            stream: bool,
        ) {
            let dialect = by_name("openai-chat").expect("built in");
            let mut reader = Reader::new(dialect, Target::default(), Some(&request));
            reader.head(Some(if stream { SSE } else { AnswerForm::Json }));
            reader.push(&answer);
            reader.finish();
        }
    }
}
