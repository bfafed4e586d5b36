//! Answers that are made to say something else, and events that no provider sent.

use std::fmt::Write as _;

use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{DeltaKind, Finish, Reading, Saying};
use squall_dialects::stream::{DEFAULT_LIMIT, Frame, Splitter, SyntheticEvent};
use squall_dialects::{AnswerForm, Event, Part, Transcript, by_name};

use crate::samples::{Is, named, samples};

const FINISHES: [Finish; 7] = [
    Finish::Done,
    Finish::Length,
    Finish::Tool,
    Finish::Filtered,
    Finish::Refused,
    Finish::Context,
    Finish::BadTool,
];

/// Whole answers of each dialect, and what in them ends a choice.
const WHOLE: [(&str, &str); 6] = [
    ("openai-chat/text.json", "finish_reason"),
    ("openai-responses/text.json", "status"),
    ("anthropic/text.json", "stop_reason"),
    ("bedrock/text.json", "stopReason"),
    ("gemini/text.json", "finishReason"),
    ("ollama/text.json", "done_reason"),
];

/// The snapshot shows each reason as the dialect writes it, and as what it is read back.
#[test]
fn a_reason_to_stop_is_written_in_the_providers_word() {
    let mut told = String::new();
    for (name, member) in WHOLE {
        let sample = named(name);
        let document = Document::parse(&sample.bytes).expect(name);
        let at = sample.dialect.read(Event::unnamed(&document)).finishes;
        let foreign = Finish::Foreign("other".to_owned());
        writeln!(told, "{}", sample.dialect.name()).expect("text");
        for finish in FINISHES.iter().chain([&foreign]) {
            let mut edits = Edits::new(&document);
            let dialect = sample.dialect;
            dialect.put_finish(&mut edits, &document, &at[0], Some(finish));
            let edited = edits.apply();
            let edited = Document::parse(&edited).expect("JSON");
            let place = edited.text().find(&format!("\"{member}\"")).expect(member);
            let written = edited.text()[place..].split([',', '}', '\n']).next();
            let back = &dialect.read(Event::unnamed(&edited)).finishes[0].finish;
            let written = written.unwrap_or_default();
            writeln!(told, "  {finish:?} -> {written} -> {back:?}").expect("text");
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
#[rustfmt::skip]
fn what_goes_with_a_reason_to_stop_follows_it() {
    const NO: &str = r#"{"type":"refusal","category":null,"explanation":null}"#;
    let refused = format!(r#""refusal","stop_sequence":null,"stop_details":{NO}"#);
    let refusing = format!(r#""refusal","stop_details":{NO},"stop_sequence":null"#);
    let anthropic = |reason: &str| {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{reason}}},"usage":{{}}}}"#)
    };
    let gemini = |end: &str| format!(r#"{{"candidates":[{{"content":{{}}{end},"index":0}}]}}"#);
    let stop = r#","finishReason":"STOP","finishMessage":"m""#;
    for (dialect, before, finish, after) in [
        (
            "anthropic",
            anthropic(r#""stop_sequence","stop_sequence":"\n""#),
            Some(Finish::Length),
            anthropic(r#""max_tokens","stop_sequence":null"#),
        ),
        (
            "anthropic",
            anthropic(&refused),
            Some(Finish::Length),
            anthropic(r#""max_tokens","stop_sequence":null,"stop_details":null"#),
        ),
        (
            "anthropic",
            anthropic(r#""end_turn","stop_sequence":null,"stop_details":null"#),
            Some(Finish::Refused),
            anthropic(&refused),
        ),
        (
            "anthropic",
            anthropic(r#""end_turn","stop_sequence":null"#),
            Some(Finish::Refused),
            anthropic(&refusing),
        ),
        ("anthropic", anthropic(r#""end_turn""#), None, anthropic("null")),
        ("gemini", gemini(stop), None, gemini("")),
        ("gemini", gemini(stop), Some(Finish::Length), gemini(r#","finishReason":"MAX_TOKENS""#)),
        // Nothing was written, so nothing can have been too long.
        (
            "gemini",
            r#"{"promptFeedback":{"blockReason":"OTHER"}}"#.to_owned(),
            Some(Finish::Length),
            r#"{"promptFeedback":{"blockReason":"OTHER"}}"#.to_owned(),
        ),
        (
            "ollama",
            r#"{"response":"x","done":true,"done_reason":"stop","context":[1],"eval_count":3}"#
                .to_owned(),
            None,
            r#"{"response":"x","done":false}"#.to_owned(),
        ),
        // As older servers end.
        (
            "ollama",
            r#"{"response":"","done":true,"eval_count":3}"#.to_owned(),
            Some(Finish::Length),
            r#"{"response":"","done":true,"done_reason":"length","eval_count":3}"#.to_owned(),
        ),
    ] {
        let dialect = by_name(dialect).expect("a dialect");
        let document = Document::parse(before.as_bytes()).expect("JSON");
        let at = dialect.read(Event::unnamed(&document)).finishes.remove(0);
        let mut edits = Edits::new(&document);
        dialect.put_finish(&mut edits, &document, &at, finish.as_ref());
        assert_eq!(String::from_utf8_lossy(&edits.apply()), after);
    }
}

/// The snapshot shows the events with other text that follow some events of a stream.
#[test]
fn synthetic_events_are_modelled_on_those_of_the_stream() {
    for (name, events) in [
        ("openai-chat/text.sse", &[1, 4][..]),
        ("openai-responses/text.sse", &[2]),
        ("gemini-live/text.sse", &[0, 4]),
        ("gemini-live/audio.sse", &[3, 10]),
        ("anthropic/text.sse", &[1, 3, 8, 9]),
        ("bedrock/text.aws", &[0, 1, 5, 6]),
        ("bedrock/tool_use.aws", &[3]),
        ("bedrock/nova.aws-chunks", &[1]),
        ("bedrock/anthropic.aws-chunks", &[2]),
        ("bedrock/openai.aws-chunks", &[0]),
    ] {
        let sample = named(name);
        let dialect = sample.dialect;
        let frames = sample.frames(sample.bytes.len());
        let frames: Vec<&Frame> = frames.iter().filter(|it| it.data().is_some()).collect();
        let mut told = String::new();
        for at in events {
            let frame = frames[*at];
            let data = frame.data().expect("data");
            let document = Document::parse(&data).expect("JSON");
            let event = Event::of(frame, &document);
            let mut show = |what: &str, made: Vec<SyntheticEvent>| {
                writeln!(told, "{at} {what}").expect("text");
                for made in made {
                    let bytes = frame.following(&made);
                    let mut splitter = Splitter::new(framing(sample.is), DEFAULT_LIMIT);
                    let mut read = splitter.push(&bytes);
                    read.extend(splitter.finish());
                    let data = String::from_utf8_lossy(&made.data).into_owned();
                    let name = read.iter().find_map(Frame::name).unwrap_or_default();
                    writeln!(told, "  {name} {data}").expect("text");
                }
            };
            for saying in [Saying::Text("no"), Saying::Refusal("no")] {
                show(&format!("{saying:?}"), dialect.say_events(event, 0, saying));
            }
            let elsewhere = dialect.say_events(event, 9, Saying::Text("no"));
            assert!(elsewhere.is_empty(), "{name}: there is no such choice");
        }
        insta::assert_snapshot!(name.replace('/', "_"), told);
    }
}

fn framing(is: Is) -> squall_dialects::stream::Framing {
    match is {
        Is::Answer(AnswerForm::Stream(framing)) => framing,
        Is::Answer(AnswerForm::Json) | Is::Request => panic!("no stream"),
    }
}

/// Of two choices the other is left out, and so are its token counts; unknown members stay.
#[test]
fn a_synthetic_chunk_holds_its_own_choice_alone() {
    let dialect = by_name("openai-chat").expect("a dialect");
    let data = concat!(
        r#"{"id":"c","new":[1],"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null},"#,
        r#"{"index":1,"delta":{"role":"assistant","content":"b"},"logprobs":{"content":[]},"#,
        r#""finish_reason":null,"x":2}],"usage":{"n":1},"obfuscation":"x"}"#,
    );
    let document = Document::parse(data.as_bytes()).expect("JSON");
    let made = dialect.say_events(Event::unnamed(&document), 1, Saying::Text("no"));
    let expected = concat!(
        r#"{"id":"c","new":[1],"choices":[{"index":1,"delta":{"role":"assistant","content":"no"},"#,
        r#""logprobs":null,"finish_reason":null,"x":2}],"usage":null,"obfuscation":"x"}"#,
    );
    assert_eq!(String::from_utf8_lossy(&made[0].data), expected);
    let made = dialect.say_events(Event::unnamed(&document), 1, Saying::Refusal("no"));
    let delta = r#""delta":{"role":"assistant","content":null,"refusal":"no"}"#;
    let made = String::from_utf8_lossy(&made[0].data).into_owned();
    assert!(made.contains(delta), "{made}");
}

fn words(reading: &Reading<'_>) -> Vec<(DeltaKind, String)> {
    let words = reading
        .deltas
        .iter()
        .filter(|it| it.choice == 0 && it.speaks());
    let words = words.filter(|it| !it.is_thinking());
    words.map(|it| (it.kind, it.text.to_string())).collect()
}

fn first_thoughts(reading: &Reading<'_>) -> String {
    let deltas = reading.deltas.iter().filter(|it| it.choice == 0);
    let thoughts = deltas.take_while(|it| it.is_thinking() || !it.speaks());
    thoughts
        .filter(|it| it.speaks())
        .map(|it| &*it.text)
        .collect()
}

#[test]
fn a_whole_answer_is_made_to_say_something_else_behind_its_thinking() {
    let whole = samples().into_iter();
    for sample in whole.filter(|it| it.is == Is::Answer(AnswerForm::Json)) {
        let (name, dialect) = (&sample.name, sample.dialect);
        let document = Document::parse(&sample.bytes).expect(name);
        let before = dialect.read(Event::unnamed(&document));
        for (saying, finish) in [
            (Saying::Text("no"), Finish::Done),
            (Saying::Refusal("no"), Finish::Refused),
            (Saying::Text(""), Finish::Length),
        ] {
            let mut edits = Edits::new(&document);
            let can = dialect.say(&mut edits, &document, 0, saying, &finish);
            if !can {
                // Neither an error nor a prompt that was blocked has choices.
                let has_none = before.error.is_some() || name.contains("blocked");
                assert!(has_none && edits.is_empty(), "{name}");
                continue;
            }
            let edited = edits.apply();
            let edited = Document::parse(&edited).expect("JSON");
            let after = dialect.read(Event::unnamed(&edited));
            let said: String = words(&after).into_iter().map(|(_, text)| text).collect();
            assert_eq!(said, saying.text(), "{name}");
            let left = after.deltas.iter().filter(|it| it.choice == 0);
            let left = left.filter(|it| it.is_thinking() && it.speaks());
            let left: String = left.map(|it| &*it.text).collect();
            assert_eq!(left, first_thoughts(&before), "{name}");
            let calls = after.deltas.iter().filter(|it| it.choice == 0);
            assert!(!calls.clone().any(|it| it.kind.is_of_a_call()), "{name}");
        }
        let mut edits = Edits::new(&document);
        let elsewhere = dialect.say(&mut edits, &document, 9, Saying::Text(""), &Finish::Done);
        assert!(!elsewhere && edits.is_empty(), "{name}");
    }
}

/// What a stream said, by hand: thinking with its signature, words, and two calls.
#[test]
fn a_stream_becomes_a_whole_answer_with_its_signatures() {
    let part = |kind, text: &str, signature: Option<&str>, call: Option<(&str, &str)>| Part {
        choice: 0,
        part: 0,
        kind,
        text: text.to_owned(),
        call: call.map(|(id, name)| (id.to_owned(), name.to_owned())),
        signature: signature.map(str::to_owned),
    };
    let parts = || {
        vec![
            part(DeltaKind::Reasoning, "Hm.", Some("c2ln"), None),
            part(DeltaKind::Text, "So.", None, None),
            part(DeltaKind::Reasoning, "", Some("bW9yZQ"), None),
            part(
                DeltaKind::ToolArguments,
                r#"{"city": "Kiel", "n": 1.50}"#,
                None,
                Some(("call_1", "weather")),
            ),
            part(DeltaKind::ToolArguments, "", None, Some(("", "time"))),
        ]
    };
    let mut told = String::new();
    for (name, last) in [
        ("openai-chat/text.sse", 0),
        ("anthropic/tool_use.sse", 1),
        ("bedrock/tool_use.aws", 0),
        ("gemini/text.sse", 0),
        ("ollama/tool_calls.ndjson", 0),
        ("ollama/generate.ndjson", 0),
    ] {
        let sample = named(name);
        let frames = sample.frames(sample.bytes.len());
        let data: Vec<_> = frames
            .iter()
            .filter_map(|it| Some((it, it.data()?)))
            .collect();
        let parsed: Vec<_> = data
            .iter()
            .filter_map(|(frame, data)| Some((*frame, Document::parse(data).ok()?)))
            .collect();
        let event = |at: usize| Event::of(parsed[at].0, &parsed[at].1);
        let mut transcript = Transcript {
            first: event(0),
            last: event(parsed.len() - 1 - last),
            parts: parts(),
            finishes: vec![(0, Finish::Tool)],
            tokens: (Some(26), Some(41)),
        };
        let whole = sample.dialect.whole_answer(&transcript).expect(name);
        writeln!(told, "{name}\n  {whole}").expect("text");
        // Arguments that are not JSON can be in no answer that gives them as JSON.
        transcript.parts[3].text = "{\"city".to_owned();
        let broken = sample.dialect.whole_answer(&transcript);
        assert_eq!(broken.is_some(), name.starts_with("openai"), "{name}");
    }
    insta::assert_snapshot!(told);
}
