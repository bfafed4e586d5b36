//! Every fault on every dialect's corpus: what is left of an answer is well-formed, says what the
//! fault made it say, and says the same in every repetition of it.

#![expect(
    clippy::disallowed_methods,
    reason = "the corpus of every dialect is found, not listed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use squall_dialects::json::{Document, Value};
use squall_dialects::model::{DeltaKind, Finish};
use squall_dialects::stream::{DEFAULT_LIMIT, Splitter, SyntheticEvent};
use squall_dialects::{ALL, ErrorContext, Event, Quirk, of_endpoint};

use super::*;

/// An answer of the corpus.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) dialect: &'static dyn Dialect,
    pub(super) form: AnswerForm,
    pub(super) bytes: Vec<u8>,
}

/// Every answer of every dialect that is no error.
pub(super) fn samples() -> Vec<Sample> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/corpus");
    let mut samples = Vec::new();
    for dialect in ALL {
        let folder = fs::read_dir(corpus.join(dialect.name())).expect("a corpus");
        for entry in folder {
            let file = entry.expect("an entry").path();
            let sample = sample(*dialect, &file);
            samples.extend(sample.filter(|sample| read(sample, &sample.bytes).error.is_none()));
        }
    }
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    samples
}

fn sample(dialect: &'static dyn Dialect, file: &Path) -> Option<Sample> {
    let name = file.file_name()?.to_str()?;
    let bytes = fs::read(file).expect("a file that can be read");
    let (form, bytes) = match file.extension()?.to_str()? {
        "json" if name.starts_with("request") => return None,
        "json" => (AnswerForm::Json, bytes),
        "sse" => (AnswerForm::Stream(Framing::Sse), bytes),
        "ndjson" => (AnswerForm::Stream(Framing::Lines), bytes),
        "array" => (AnswerForm::Stream(Framing::Array), bytes),
        "bin" => (AnswerForm::Stream(Framing::AwsEvents), bytes),
        "aws" => framed(Framing::AwsEvents, &bytes),
        "aws-chunks" => framed(Framing::AwsChunks, &bytes),
        _ => return None,
    };
    Some(Sample {
        name: format!("{}/{name}", dialect.name()),
        dialect,
        form,
        bytes,
    })
}

/// Amazon's messages, of which a file names one a line.
fn framed(framing: Framing, lines: &[u8]) -> (AnswerForm, Vec<u8>) {
    let lines = std::str::from_utf8(lines).expect("text").lines();
    let made = lines.filter(|line| !line.trim().is_empty()).map(|line| {
        match line.split_once(' ').filter(|_| !line.starts_with('{')) {
            None => SyntheticEvent::data(line),
            Some((name, data)) => match name.strip_prefix('!') {
                Some(name) => SyntheticEvent::exception(name.to_owned(), data),
                None => SyntheticEvent::event(name.to_owned(), data),
            },
        }
    });
    let stream = made.flat_map(|made| framing.first_frame(&made).to_vec());
    (AnswerForm::Stream(framing), stream.collect())
}

/// What an answer says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Read {
    /// The model that answers.
    model: Option<String>,
    /// By choice, part and kind, in the order in which they begin.
    pub(super) texts: Vec<((u64, u64, DeltaKind), String)>,
    /// What is repeated, where it differs from what was said.
    contradictions: Vec<String>,
    finishes: BTreeMap<u64, Finish>,
    error: Option<String>,
    /// How often parts were begun and not closed.
    open: BTreeMap<(u64, u64), i32>,
    /// Parts are opened and closed by events of their own.
    has_edges: bool,
    /// What stands behind the event that ends the stream.
    behind: usize,
    unread: usize,
    /// The latest event's number.
    numbers: Option<u64>,
}

impl Read {
    fn number(&mut self, number: u64) {
        if let Some(before) = self.numbers.replace(number)
            && number != before + 1
        {
            self.contradictions
                .push(format!("number {number} follows {before}"));
        }
    }

    fn add(&mut self, reading: &Reading<'_>) {
        let model = reading
            .model
            .as_ref()
            .map(|model| model.clone().into_owned());
        self.model = self.model.take().or(model);
        // A part that is closed was opened, by events of its own or by its first piece.
        self.has_edges |= !reading.edges.is_empty();
        for edge in reading.edges.iter().filter(|edge| !edge.closes) {
            *self.open.entry((edge.choice, edge.part)).or_default() += 1;
        }
        for delta in reading.deltas.iter().filter(|delta| !delta.repeats) {
            let open = self.open.entry((delta.choice, delta.part)).or_default();
            *open = (*open).max(1);
        }
        for delta in &reading.deltas {
            let key = (delta.choice, delta.part, delta.kind);
            let known = self.texts.iter().position(|(found, _)| *found == key);
            let at = known.unwrap_or_else(|| {
                self.texts.push((key, String::new()));
                self.texts.len() - 1
            });
            let said = &mut self.texts[at].1;
            if !delta.repeats {
                said.push_str(&delta.text);
            } else if *said != delta.text {
                self.contradictions
                    .push(format!("{said:?} is repeated as {:?}", delta.text));
            }
        }
        for edge in reading.edges.iter().filter(|edge| edge.closes) {
            let open = self.open.entry((edge.choice, edge.part)).or_default();
            *open -= 1;
            if *open < 0 {
                self.contradictions
                    .push(format!("{edge:?} of what is not open"));
            }
        }
        for finished in &reading.finishes {
            self.finishes
                .insert(finished.choice, finished.finish.clone());
        }
        let error = reading
            .error
            .as_ref()
            .map(|error| error.clone().into_owned());
        self.error = error.or(self.error.take());
    }

    fn all(&self, kind: DeltaKind) -> String {
        let of_kind = self
            .texts
            .iter()
            .filter(|((_, _, found), _)| *found == kind);
        of_kind.map(|(_, text)| text.as_str()).collect()
    }

    fn tokens(&self) -> u64 {
        let counted = self
            .texts
            .iter()
            .filter(|((_, _, kind), _)| !matches!(kind, DeltaKind::ToolId | DeltaKind::Signature));
        let counting = Counting::of(self.model.as_deref());
        counted.map(|(_, text)| tokens::count(counting, text)).sum()
    }

    /// Tokens of words and calls, which leave those of thinking out.
    fn spoken(&self) -> u64 {
        let counting = Counting::of(self.model.as_deref());
        self.tokens() - tokens::count(counting, &self.all(DeltaKind::Reasoning))
    }

    fn calls(&self) -> usize {
        let calls = self
            .texts
            .iter()
            .filter(|((_, _, kind), _)| kind.is_of_a_call());
        calls.count()
    }
}

/// What an answer says, read anew.
pub(super) fn read(sample: &Sample, bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let AnswerForm::Stream(framing) = sample.form else {
        match Document::parse(bytes) {
            Ok(document) => read.add(&sample.dialect.read(Event::unnamed(&document))),
            Err(_) => read.unread += 1,
        }
        return read;
    };
    let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
    let mut frames = splitter.push(bytes);
    frames.extend(splitter.finish());
    let mut ended = false;
    for frame in &frames {
        let Some(data) = frame.data() else { continue };
        read.behind += usize::from(ended);
        if let Ok(document) = Document::parse(&data) {
            let number = sample
                .dialect
                .provider()
                .number(Event::of(frame, &document));
            if let Some(number) = number.and_then(Value::as_u64) {
                read.number(number);
            }
            let reading = sample.dialect.read(Event::of(frame, &document));
            ended |= reading.ends;
            read.add(&reading);
        } else if sample.dialect.provider().is_end_mark(&data) {
            ended = true;
        } else {
            read.unread += 1;
        }
    }
    read
}

/// What the agent gets of a sample in chunks of `size` bytes, and why it is the sample itself.
pub(super) fn edited(
    sample: &Sample,
    fault: &StreamFault,
    size: usize,
) -> (Vec<Step>, Option<String>) {
    let choices = read(sample, &sample.bytes).finishes.len().max(1) as u64;
    let request = ModelRequest {
        choices,
        stream: sample.form != AnswerForm::Json,
        ..ModelRequest::default()
    };
    let call = AnsweredCall::new(sample.dialect).for_request(&request);
    let editor = super::super::editor(fault, sample.form, call);
    run_chunked(editor, &sample.bytes, size)
}

pub(super) fn bytes(steps: &[Step]) -> Vec<u8> {
    let emitted = steps.iter().map(|step| match step {
        Step::Emit(bytes) => bytes.to_vec(),
        Step::Wait(_) | Step::End(_) | Step::Finish => Vec::new(),
    });
    emitted.collect::<Vec<_>>().concat()
}

/// What comes of a fault on every sample that it changes; it has to change a stream of each dialect
/// at least, but for those that are excused.
pub(super) fn on_every_sample(
    fault: &StreamFault,
    excused: &[&str],
    check: impl Fn(&Sample, &Read, &Read) -> Result<(), String>,
) {
    let mut changed: BTreeSet<&str> = BTreeSet::new();
    for sample in samples() {
        let (steps, why) = edited(&sample, fault, usize::MAX >> 1);
        let got = bytes(&steps);
        for size in [1, 13] {
            let (steps, _) = edited(&sample, fault, size);
            // A break comes before the end of a list's line or behind it, as that came.
            assert_eq!(
                bytes(&steps).trim_ascii_end(),
                got.trim_ascii_end(),
                "{}: {fault:?} in chunks of {size}",
                sample.name
            );
        }
        if why.is_some() {
            assert_eq!(got, sample.bytes, "{}: {fault:?} {why:?}", sample.name);
            continue;
        }
        if sample.form != AnswerForm::Json {
            changed.insert(sample.dialect.name());
        }
        let (before, after) = (read(&sample, &sample.bytes), read(&sample, &got));
        if let Err(what) = check(&sample, &before, &after) {
            let text = String::from_utf8_lossy(&got);
            panic!("{}: {fault:?}: {what}\n{after:#?}\n{text}", sample.name);
        }
    }
    for dialect in ALL {
        let name = dialect.name();
        assert!(
            changed.contains(name) || excused.contains(&name),
            "{fault:?} never on {name}"
        );
    }
}

/// What holds of every answer that is changed and goes on to its end.
pub(super) fn is_sound(before: &Read, after: &Read) -> Result<(), String> {
    let expect = |what: &str, holds: bool| if holds { Ok(()) } else { Err(what.to_owned()) };
    expect("not all can be read", after.unread <= before.unread)?;
    expect("it contradicts itself", after.contradictions.is_empty())?;
    let closed = !before.has_edges || after.open.values().all(|open| *open == 0);
    expect("parts are left open", closed)?;
    expect("something follows the end", after.behind <= before.behind)?;
    expect(
        "not every choice ends",
        after.finishes.len() == before.finishes.len(),
    )
}

/// Agents give thinking back, so each of it is what it was, or is not there.
fn thinking_is_whole(before: &Read, after: &Read) -> Result<(), String> {
    let kinds = [DeltaKind::Reasoning, DeltaKind::Signature];
    let mut thoughts = after
        .texts
        .iter()
        .filter(|((.., kind), _)| kinds.contains(kind));
    match thoughts.find(|thought| !before.texts.contains(thought)) {
        None => Ok(()),
        Some(thought) => Err(format!("{thought:?} is another")),
    }
}

/// The thinking that comes before everything else.
fn first_thought(read: &Read) -> Option<&((u64, u64, DeltaKind), String)> {
    let first = read.texts.first()?;
    (first.0.2 == DeltaKind::Reasoning).then_some(first)
}

#[test]
fn an_answer_is_truncated() {
    let all: Vec<_> = ALL.iter().map(|dialect| dialect.name()).collect();
    // Every place where a block may end, and more than some answers say.
    for max_tokens in (0..=16).chain([20, 30, 50]) {
        on_every_sample(
            &StreamFault::Truncate { max_tokens },
            if max_tokens > 7 { &all } else { &[] },
            |sample, before, after| {
                is_sound(before, after)?;
                thinking_is_whole(before, after)?;
                let most = max_tokens * before.finishes.len() as u64;
                let thought = after.tokens() - after.spoken();
                let left = most.saturating_sub(thought);
                if after.spoken() > left {
                    return Err(format!("{} of {left} tokens", after.spoken()));
                }
                let ends = after.finishes.values();
                let length = ends.clone().any(|finish| *finish == Finish::Length);
                // A turn that is too long ends as usual there.
                if length || sample.dialect.name() == "gemini-live" {
                    Ok(())
                } else {
                    Err("no length reason".into())
                }
            },
        );
    }
}

#[test]
fn an_answer_is_other_words() {
    for (instead, finish) in [
        (Instead::Nothing, Finish::Done),
        (Instead::Filtered, Finish::Filtered),
        (Instead::Refusal { choice: 0 }, Finish::Refused),
        (Instead::Garbage { choice: 1 }, Finish::Done),
    ] {
        let words = match instead {
            Instead::Nothing | Instead::Filtered => String::new(),
            Instead::Refusal { choice } => {
                crate::faults::llm_rewrite::words::refusal(choice).into()
            }
            Instead::Garbage { choice } => crate::faults::llm_rewrite::words::garbage(choice),
        };
        on_every_sample(&StreamFault::Instead(instead), &[], |_, before, after| {
            is_sound(before, after)?;
            let said = after.all(DeltaKind::Text) + &after.all(DeltaKind::Refusal);
            if said != words.repeat(before.finishes.len()) {
                return Err(format!("it says {said:?}"));
            }
            if after.calls() > 0 {
                return Err("it says more".into());
            }
            thinking_is_whole(before, after)?;
            if first_thought(before).is_some_and(|first| !after.texts.contains(first)) {
                return Err("its thinking is another".into());
            }
            // Providers without a word for a refusal or a filter say that they are done.
            let ends = |end: &Finish| [&finish, &Finish::Done, &Finish::Refused].contains(&end);
            if after.finishes.values().all(ends) {
                Ok(())
            } else {
                Err("it ends otherwise".into())
            }
        });
    }
}

#[test]
fn a_tool_call_goes_wrong() {
    for (rewrite, kind) in [
        (
            Rewrite::Call(WrongCall::of_any_tool(CallError::UnknownTool, 0)),
            DeltaKind::ToolName,
        ),
        (
            Rewrite::Call(WrongCall::of_any_tool(CallError::WrongArguments, 1)),
            DeltaKind::ToolArguments,
        ),
    ] {
        on_every_sample(&StreamFault::Rewrite(rewrite), &[], |_, before, after| {
            is_sound(before, after)?;
            let all = before.texts.iter().zip(&after.texts);
            let changed: Vec<_> = all
                .filter(|((_, before), (_, after))| before != after)
                .map(|(((_, _, kind), _), _)| *kind)
                .collect();
            if after.texts.len() != before.texts.len() {
                return Err("it has other parts".into());
            }
            if changed == [kind] {
                Ok(())
            } else {
                Err(format!("{changed:?} changed"))
            }
        });
    }
}

#[test]
fn a_tool_call_is_none() {
    let fault = StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
        CallError::MalformedArguments,
        0,
    )));
    on_every_sample(&fault, &["ollama"], |sample, before, after| {
        match (sample.dialect.name(), sample.form) {
            // In a stream Bedrock gives arguments as text.
            ("gemini" | "gemini-live", _) | ("bedrock", AnswerForm::Json) => {
                is_sound(before, after)?;
                if after.calls() > 0 || after.finishes[&0] != Finish::BadTool {
                    return Err("a call is left, or it ends otherwise".into());
                }
                return Ok(());
            }
            _ => is_sound(before, after)?,
        }
        let arguments = |read: &Read| -> Vec<bool> {
            let all = read.texts.iter();
            let arguments = all.filter(|((_, _, kind), _)| *kind == DeltaKind::ToolArguments);
            arguments
                .map(|(_, text)| Document::parse(text.as_bytes()).is_ok())
                .collect()
        };
        let (before, after) = (arguments(before), arguments(after));
        let spoilt = |all: &[bool]| all.iter().filter(|is_json| !**is_json).count();
        if spoilt(&after) == spoilt(&before) + 1 {
            Ok(())
        } else {
            Err("not one call is none".into())
        }
    });
}

#[test]
fn a_stream_breaks_off_fails_halts_repeats_itself() {
    let wait = Duration::from_secs(1);
    for after_tokens in [0, 1, 3] {
        on_every_sample(
            &StreamFault::Cut { after_tokens },
            &[],
            |sample, before, after| {
                if sample.form == AnswerForm::Json {
                    return Ok(());
                }
                let said = after.tokens() <= after_tokens && after.finishes.is_empty();
                let begun = before
                    .all(DeltaKind::Text)
                    .starts_with(&after.all(DeltaKind::Text));
                if said && begun {
                    Ok(())
                } else {
                    Err("it says more".into())
                }
            },
        );
        let error = ModelError::Overloaded;
        on_every_sample(
            &StreamFault::Error {
                after_tokens,
                error,
            },
            &[],
            |_, _, after| {
                if after.tokens() > after_tokens || !after.finishes.is_empty() {
                    return Err("it says more".into());
                }
                if after.error.is_some() {
                    Ok(())
                } else {
                    Err("no error".into())
                }
            },
        );
        on_every_sample(
            &StreamFault::Stall { after_tokens, wait },
            &[],
            |_, before, after| {
                if before == after {
                    Ok(())
                } else {
                    Err("it is another".into())
                }
            },
        );
    }
    on_every_sample(&StreamFault::Repeat, &[], |_, before, after| {
        let length = |read: &Read| -> usize { read.texts.iter().map(|(_, text)| text.len()).sum() };
        let more = length(after) > length(before) && after.unread == before.unread;
        thinking_is_whole(before, after)?;
        if more {
            Ok(())
        } else {
            Err("nothing comes twice".into())
        }
    });
}

#[test]
fn a_stream_becomes_a_whole_answer() {
    on_every_sample(
        &StreamFault::WholeForStream,
        &["openai-realtime", "gemini-live"],
        |_, _, _| Ok(()),
    );
    for sample in samples() {
        let (steps, why) = edited(&sample, &StreamFault::WholeForStream, 50);
        if why.is_some() {
            continue;
        }
        let before = read(&sample, &sample.bytes);
        let whole = Sample {
            form: AnswerForm::Json,
            ..sample
        };
        let after = read(&whole, &bytes(&steps));
        for kind in [
            DeltaKind::Text,
            DeltaKind::Reasoning,
            DeltaKind::Refusal,
            DeltaKind::ToolName,
            DeltaKind::ToolId,
        ] {
            assert_eq!(
                after.all(kind),
                before.all(kind),
                "{}: {kind:?}",
                whole.name
            );
        }
        // Providers may end a call with the word for being done, and say it in an event of its own.
        let ends = |read: &Read| -> Vec<Finish> {
            let ends = read.finishes.values().cloned();
            let neutral = ends.map(|end| match end {
                Finish::Tool if sample.dialect.provider().has(Quirk::ToolCallsEndAsDone) => {
                    Finish::Done
                }
                other => other,
            });
            neutral.collect()
        };
        assert_eq!(ends(&after), ends(&before), "{}", whole.name);
    }
}

#[test]
fn an_error_takes_the_number_of_the_event_that_it_stands_for() {
    let name = "response.output_text.delta";
    let stream: String = [4, 5]
        .map(|number| {
            format!(
                "event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{number},\
                 \"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\
                 \"delta\":\"One\"}}\n\n"
            )
        })
        .concat();
    let dialect = by_name("openai-responses").expect("built in");
    for (after_tokens, numbers) in [(0, vec![4]), (1, vec![4, 5])] {
        let fault = StreamFault::Error {
            after_tokens,
            error: ModelError::Overloaded,
        };
        let (steps, why) = run(
            super::super::editor(&fault, SSE, AnsweredCall::new(dialect)),
            &stream,
        );
        assert_eq!(why, None);
        let (text, _) = received(&steps);
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let got: Vec<u64> = data
            .map(|data| {
                let event: serde_json::Value = serde_json::from_str(data).expect("JSON");
                event["sequence_number"].as_u64().expect("a number")
            })
            .collect();
        assert_eq!(got, numbers, "{text}");
        assert!(text.contains("event: error\n"), "{text}");
    }
}

#[test]
fn a_tools_result_goes_with_the_call_that_was_cut() {
    let answer = concat!(
        r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":["#,
        r#"{"type":"text","text":"One two three"},"#,
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"a"}},"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},"#,
        r#"{"type":"text","text":"Four five six"}],"#,
        r#""stop_reason":"end_turn","stop_sequence":null,"#,
        r#""usage":{"input_tokens":1,"output_tokens":20}}"#
    );
    let words = ["text"].as_slice();
    let all = ["text", "server_tool_use", "web_search_tool_result", "text"];
    for dialect in ["anthropic", "bedrock"] {
        let dialect = by_name(dialect).expect("built in");
        for (max_tokens, kept) in [(2, words), (5, words), (13, &all)] {
            let fault = StreamFault::Truncate { max_tokens };
            let call = AnsweredCall::new(dialect);
            let (steps, why) = run(super::super::editor(&fault, AnswerForm::Json, call), answer);
            assert_eq!(why, None, "{max_tokens}");
            let (text, _) = received(&steps);
            let message: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let blocks = message["content"].as_array().expect("blocks");
            let kinds: Vec<_> = blocks.iter().map(|block| &block["type"]).collect();
            assert_eq!(kinds, kept, "{max_tokens}: {text}");
        }
    }
}

#[test]
fn a_refusal_is_text_where_messages_have_no_place_for_one() {
    let refusal = "I'm not able to assist with that request.";
    let fault = StreamFault::Instead(Instead::Refusal { choice: 1 });
    let groq = "/openai/v1/chat/completions";
    for (name, path, in_text) in [
        ("openai-chat", "/v1/chat/completions", false),
        ("openai-chat", groq, true),
        ("openai-chat/groq", "/v1/chat/completions", true),
        ("openai-chat/mistral", "/v1/chat/completions", true),
        ("openai-chat/azure", groq, false),
        ("openai-chat/openrouter", "/api/v1/chat/completions", false),
    ] {
        let dialect = of_endpoint(name).expect("built in");
        let context = ErrorContext {
            target: Target::new(path),
            ..ErrorContext::default()
        };
        for (form, answer) in [(AnswerForm::Json, WHOLE.to_owned()), (SSE, paris())] {
            let call = AnsweredCall::new(dialect).about(&context);
            let (steps, why) = run(super::super::editor(&fault, form, call), &answer);
            assert_eq!(why, None);
            let (text, _) = received(&steps);
            let quoted = json::quote(refusal);
            let said = |key: &str| {
                text.replace(": ", ":")
                    .contains(&format!("\"{key}\":{quoted}"))
            };
            assert_eq!(
                (said("content"), said("refusal")),
                (in_text, !in_text),
                "{name} {path}: {text}"
            );
        }
    }
}

#[test]
fn groq_s_arguments_stay_as_they_are() {
    let fault = StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
        CallError::MalformedArguments,
        0,
    )));
    let dialect = of_endpoint("openai-chat/groq").expect("built in");
    for (form, answer) in [
        (AnswerForm::Json, super::calls::WHOLE_CALLS.to_owned()),
        (SSE, super::calls::calls()),
    ] {
        let call = AnsweredCall::new(dialect);
        let (steps, why) = run(super::super::editor(&fault, form, call), &answer);
        assert_eq!(received(&steps).0, answer);
        assert_eq!(
            why.as_deref(),
            Some(
                "this provider checks the arguments that a model writes, and answers with an error"
            )
        );
    }
}
