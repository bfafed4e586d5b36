//! What is read of answers, and where.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use squall_dialects::json::{Document, Edits, NodeId};
use squall_dialects::model::Reading;
use squall_dialects::stream::{Framing, Joiner};
use squall_dialects::{AnswerForm, Event, Reader, Target, by_name};

use crate::samples::{Is, Sample, samples};

fn answers() -> impl Iterator<Item = (Sample, AnswerForm)> {
    samples().into_iter().filter_map(|sample| match sample.is {
        Is::Answer(form) => Some((sample, form)),
        Is::Request => None,
    })
}

/// Every place that a reading names.
fn places(reading: &Reading<'_>) -> Vec<NodeId> {
    let deltas = reading.deltas.iter();
    let deltas = deltas.flat_map(|it| [Some(it.place), it.removed_with, it.status]);
    let finishes = reading.finishes.iter().map(|finished| Some(finished.place));
    let mirrors = reading.mirrors.iter().map(|(_, place)| Some(*place));
    let sources = reading.sources.iter().map(|source| Some(source.place));
    let usage = reading.usage.into_iter();
    let usage = usage.flat_map(|usage| [usage.output_place, usage.total_place]);
    let all = deltas.chain(finishes).chain(mirrors).chain(sources);
    all.chain(usage).flatten().collect()
}

/// Checks that every delta is where it is said to be, and that the places can be written to.
fn check(name: &str, document: &Document<'_>, reading: &Reading<'_>) {
    for delta in &reading.deltas {
        let value = document.value(delta.place);
        let text = value.as_str().unwrap_or(Cow::Borrowed(value.raw()));
        assert_eq!(delta.text, text, "{name}: {delta:?}");
    }
    let mut edits = Edits::new(document);
    for place in places(reading) {
        edits.replace(place, document.value(place).raw());
    }
    assert_eq!(edits.apply(), document.text().as_bytes(), "{name}");
}

/// One line of what a document says.
fn told(reading: &Reading<'_>) -> String {
    let mut told = Vec::new();
    let edge = |closes: bool| if closes { "]" } else { "[" };
    let opened = reading.edges.iter().filter(|edge| !edge.closes);
    told.extend(opened.map(|it| format!("{}{}", it.part, edge(it.closes))));
    for delta in &reading.deltas {
        let sign = if delta.repeats { "=" } else { ":" };
        let choice = match delta.choice {
            0 => String::new(),
            other => format!("{other}/"),
        };
        // The number of a call without one is a hash of it.
        let part = match delta.part {
            part if part < 1 << 32 => part.to_string(),
            _ => "#".to_owned(),
        };
        let (kind, text) = (delta.kind, &delta.text);
        told.push(format!("{choice}{part}{sign}{kind:?} {text:?}"));
    }
    let closed = reading.edges.iter().filter(|edge| edge.closes);
    told.extend(closed.map(|it| format!("{}{}", it.part, edge(it.closes))));
    for finished in &reading.finishes {
        told.push(format!("{}|{:?}", finished.choice, finished.finish));
    }
    told.extend(reading.usage.map(|it| {
        format!(
            "tokens {:?} in {:?} out, {} hidden",
            it.input, it.output, it.hidden
        )
    }));
    told.extend(
        reading
            .error
            .as_ref()
            .map(|error| format!("error {error:?}")),
    );
    told.extend(reading.ends.then(|| "end".to_owned()));
    told.join("  ")
}

/// The snapshot shows what the journal says of each answer, then what each document of it says:
/// `part[` and `part]` open and close, `part:kind text` is a piece, `part=kind text` a repetition,
/// `choice|reason` an end.
#[test]
fn answers_are_read_into_neutral_words() {
    let mut all = String::new();
    for (sample, form) in answers() {
        let (name, dialect) = (&sample.name, sample.dialect);
        let read = |size: usize| {
            let mut reader = Reader::new(dialect, Target::default(), None);
            reader.head(Some(form));
            sample.bytes.chunks(size).for_each(|it| reader.push(it));
            reader.finish()
        };
        let call = read(sample.bytes.len());
        for size in [1, 7, 50] {
            assert_eq!(read(size), call, "{name} in chunks of {size}");
        }
        writeln!(all, "{name}\n  {call:?}").expect("text");
        let mut line = |document: &Document<'_>, event: Event<'_>| {
            let reading = dialect.read(event);
            check(name, document, &reading);
            writeln!(all, "  {}", told(&reading)).expect("text");
        };
        if form == AnswerForm::Json {
            let document = Document::parse(&sample.bytes).expect(name);
            line(&document, Event::unnamed(&document));
        }
        for frame in sample.frames(sample.bytes.len()) {
            let Some(data) = frame.data() else { continue };
            if let Ok(document) = Document::parse(&data) {
                line(&document, Event::of(&frame, &document));
            } else {
                assert!(dialect.provider().is_end_mark(&data), "{name}: {data:?}");
            }
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_stream_is_split_into_the_same_events_however_it_arrives() {
    for (sample, form) in answers() {
        let AnswerForm::Stream(framing) = form else {
            continue;
        };
        let name = &sample.name;
        let said = |size: usize| -> Vec<(Option<String>, Vec<u8>)> {
            let frames = sample.frames(size);
            let event = |frame: &squall_dialects::stream::Frame| {
                let data = frame.data()?.into_owned();
                assert_eq!(frame.with(None, &data), frame.bytes(), "{name}");
                Some((frame.name().map(str::to_owned), data))
            };
            frames.iter().filter_map(event).collect()
        };
        let whole = said(sample.bytes.len());
        assert!(!whole.is_empty(), "{name}");
        for size in (1..=64).chain([100, 1000, 4096]) {
            assert_eq!(said(size), whole, "{name} in chunks of {size}");
            let mut joiner = Joiner::new(framing);
            let frames = sample.frames(size).into_iter();
            let whole: Vec<u8> = frames
                .flat_map(|frame| joiner.join(frame.into_bytes()))
                .collect();
            assert_eq!(whole, sample.bytes, "{name} in chunks of {size}");
        }
    }
}

#[test]
#[rustfmt::skip]
fn the_form_of_an_answer_follows_from_media_type_and_path() {
    const AWS: &str = "application/vnd.amazon.eventstream";
    let stream = |framing| Some(AnswerForm::Stream(framing));
    let json = Some(AnswerForm::Json);
    let (sse, list) = (
        "/models/m:streamGenerateContent?alt=sse",
        "/models/m:streamGenerateContent",
    );
    for (dialect, path, media_type, expected) in [
        ("openai-chat", "", "application/json; charset=utf-8", json),
        ("openai-chat", "", "application/problem+json", json),
        ("openai-chat", "", "Text/Event-Stream;charset=utf-8", stream(Framing::Sse)),
        ("openai-chat", "", "text/html", None),
        ("ollama", "", "application/x-ndjson", stream(Framing::Lines)),
        ("gemini", "/models/m:generateContent", "application/json", json),
        ("gemini", sse, "text/event-stream", stream(Framing::Sse)),
        // An error.
        ("gemini", sse, "application/json", json),
        ("gemini", list, "application/json", stream(Framing::Array)),
        ("bedrock", "/model/m/converse", "application/json", json),
        ("bedrock", "/model/m/converse-stream", AWS, stream(Framing::AwsEvents)),
        ("bedrock", "/model/m/invoke-with-response-stream", AWS, stream(Framing::AwsChunks)),
        ("bedrock", "/model/m/invoke-with-response-stream", "application/json", json),
    ] {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
        let dialect = by_name(dialect).expect("a dialect");
        let form = dialect.form(Target::new(path), &headers);
        assert_eq!(form, expected, "{path} {media_type}");
    }
}

#[test]
fn two_calls_of_one_tool_are_two_calls() {
    let call = |id: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{\"id\":\"{id}\",\
             \"name\":\"look\",\"args\":{{}}}}}}]}}}}]}}\r\n\r\n"
        )
    };
    let dialect = by_name("gemini").expect("a dialect");
    let mut reader = Reader::new(dialect, Target::default(), None);
    reader.head(Some(AnswerForm::Stream(Framing::Sse)));
    reader.push((call("a") + &call("b")).as_bytes());
    assert_eq!(reader.finish().tool_calls, ["look", "look"]);
}

/// Anthropic counts thinking apart only where it hides it.
#[test]
fn hidden_thinking_is_counted_apart() {
    let dialect = by_name("anthropic").expect("a dialect");
    for (thinking, hidden) in [("", 40), ("well", 0)] {
        let answer = format!(
            r#"{{"content":[{{"type":"thinking","thinking":"{thinking}","signature":"x"}}],"usage":{{"output_tokens":50,"output_tokens_details":{{"thinking_tokens":40}}}}}}"#
        );
        let document = Document::parse(answer.as_bytes()).expect("JSON");
        let usage = dialect.read(Event::unnamed(&document)).usage;
        assert_eq!(usage.map(|usage| usage.hidden), Some(hidden));
    }
}
