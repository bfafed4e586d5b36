//! Stream faults on Amazon's event stream: what the agent gets is one that Bedrock could have sent.

use bytes::Bytes;
use squall_dialects::json::Document;
use squall_dialects::model::ModelError;
use squall_dialects::stream::{DEFAULT_LIMIT, FrameKind, Framing, Made, Splitter};
use squall_dialects::{AnswerForm, by_name};
use squall_profiles::fault::{Instead, StreamFault};
use squall_profiles::faults::llm_stream::{Step, StreamEditor};
use squall_profiles::plan::Ending;

/// Events of a stream as lines: `messageStart {…}`.
const TEXT: &str = include_str!("../../dialects/corpus/bedrock/text.aws");
const TOOL_USE: &str = include_str!("../../dialects/corpus/bedrock/tool_use.aws");
const ANTHROPIC: &str = include_str!("../../dialects/corpus/bedrock/anthropic.aws-chunks");
const NOVA: &str = include_str!("../../dialects/corpus/bedrock/nova.aws-chunks");

fn framed(framing: Framing, lines: &str) -> Vec<u8> {
    let event = |line: &str| match (framing, line.split_once(' ')) {
        (Framing::AwsEvents, Some((name, data))) => Made::event(name.to_owned(), data),
        _ => Made::data(line),
    };
    let frames = lines.lines().map(|line| framing.first_frame(&event(line)));
    frames.flat_map(|frame| frame.to_vec()).collect()
}

/// The events that the agent gets, each a message whose checksums fit, and how it ends.
fn told(fault: &StreamFault, framing: Framing, lines: &str) -> (Vec<String>, Option<Ending>) {
    let dialect = by_name("bedrock").expect("built in");
    let stream = framed(framing, lines);
    let mut told = None;
    for size in [1, 7, stream.len()] {
        let mut editor = StreamEditor::new(fault, dialect, AnswerForm::Stream(framing));
        let mut steps: Vec<Step> = Vec::new();
        for chunk in stream.chunks(size) {
            steps.extend(editor.push(chunk));
        }
        steps.extend(editor.finish());
        let ending = steps.iter().find_map(|step| match step {
            Step::End(ending) => Some(*ending),
            Step::Emit(_) | Step::Wait(_) | Step::Finish => None,
        });
        let emitted: Vec<Bytes> = steps
            .into_iter()
            .filter_map(|step| match step {
                Step::Emit(bytes) => Some(bytes),
                Step::Wait(_) | Step::End(_) | Step::Finish => None,
            })
            .collect();
        let now = (read(framing, &emitted.concat()), ending);
        assert_eq!(
            told.get_or_insert_with(|| now.clone()),
            &now,
            "chunks of {size}"
        );
    }
    told.expect("three ways")
}

fn read(framing: Framing, stream: &[u8]) -> Vec<String> {
    let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
    let mut frames = splitter.push(stream);
    frames.extend(splitter.finish());
    let said = frames.iter().map(|frame| {
        assert_eq!(frame.kind(), FrameKind::Event, "{frame:?}");
        let data = frame.data().expect("data");
        let data = String::from_utf8_lossy(&data).into_owned();
        frame
            .name()
            .map_or_else(|| data.clone(), |name| format!("{name} {data}"))
    });
    said.collect()
}

#[test]
fn a_truncated_stream_ends_with_the_upstreams_counts() {
    let fault = StreamFault::Truncate { max_tokens: 3 };
    let (events, ending) = told(&fault, Framing::AwsEvents, TEXT);
    let lines: Vec<&str> = TEXT.lines().collect();
    let expected = [
        lines[0],
        lines[1],
        r#"contentBlockDelta {"contentBlockIndex":0,"delta":{"text":" on"},"p":"abcdefghijklmnopqrst"}"#,
        r#"contentBlockStop {"contentBlockIndex":0,"p":"abcdefghijklmnopqrst"}"#,
        r#"messageStop {"stopReason":"max_tokens","p":"abcdefghijklmnopqrst"}"#,
        r#"metadata {"metrics":{"latencyMs":553},"p":"abcdefghijklmno","usage":{"inputTokens":21,"outputTokens":3,"totalTokens":24}}"#,
    ];
    assert_eq!(events, expected);
    assert_eq!(ending, None);
}

#[test]
fn thinking_passes_whole_however_long_it_is() {
    let lines: Vec<&str> = TOOL_USE.lines().collect();
    let fault = StreamFault::Truncate { max_tokens: 4 };
    let (events, _) = told(&fault, Framing::AwsEvents, TOOL_USE);
    assert_eq!(events[..5], lines[..5]);
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event.split(' ').next())
        .collect();
    let expected = [
        "messageStart",
        "contentBlockDelta",
        "contentBlockDelta",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_cut_stream_breaks_off_between_messages() {
    let fault = StreamFault::Cut { after_tokens: 3 };
    let (events, ending) = told(&fault, Framing::AwsEvents, TEXT);
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events[2].contains("\" on\""), "{events:?}");
    assert_eq!(ending, Some(Ending::Close));
}

#[test]
fn a_vendors_events_are_truncated_inside_of_amazons() {
    let fault = StreamFault::Truncate { max_tokens: 3 };
    let (events, ending) = told(&fault, Framing::AwsChunks, NOVA);
    let expected = [
        r#"{"messageStart":{"role":"assistant"}}"#,
        r#"{"contentBlockDelta":{"delta":{"text":"Rain is"},"contentBlockIndex":0}}"#,
        r#"{"contentBlockDelta":{"delta":{"text":" on"},"contentBlockIndex":0}}"#,
        r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
        r#"{"messageStop":{"stopReason":"max_tokens"}}"#,
    ];
    assert_eq!(events[..5], expected);
    assert!(events[5].contains("\"outputTokens\":3"), "{events:?}");
    assert_eq!((events.len(), ending), (6, None));
}

#[test]
fn a_truncated_message_of_anthropics_ends_as_anthropic_ends_one() {
    let fault = StreamFault::Truncate { max_tokens: 3 };
    let (events, ending) = told(&fault, Framing::AwsChunks, ANTHROPIC);
    let lines: Vec<&str> = ANTHROPIC.lines().collect();
    assert_eq!(events[..3], lines[..3]);
    assert!(events[3].contains("\" on\""), "{events:?}");
    assert_eq!(events[4], r#"{"type":"content_block_stop","index":0}"#);
    assert!(
        events[5].contains("\"stop_reason\":\"max_tokens\""),
        "{events:?}"
    );
    assert_eq!(events[6], r#"{"type":"message_stop"}"#);
    assert_eq!((events.len(), ending), (7, None));
}

/// Names of events, or of what is inside of chunks.
fn names(events: &[String]) -> Vec<&str> {
    let first = |event: &'_ String| event.find([' ', ':']).unwrap_or(event.len());
    events.iter().map(|event| &event[..first(event)]).collect()
}

#[test]
fn other_words_come_in_a_block_of_their_own() {
    let block = [
        "messageStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    ];
    for (lines, thinking) in [(TEXT, 0), (TOOL_USE, 4)] {
        for (instead, finish) in [
            (Instead::Nothing, "end_turn"),
            (Instead::Refusal { choice: 7 }, "end_turn"),
            (Instead::Filtered, "content_filtered"),
        ] {
            let fault = StreamFault::Instead(instead);
            let (events, ending) = told(&fault, Framing::AwsEvents, lines);
            // What the model thought passes as it came.
            let lines: Vec<&str> = lines.lines().collect();
            assert_eq!(events[1..=thinking], lines[1..=thinking]);
            assert_eq!(names(&events)[1 + thinking..], block[1..], "{events:?}");
            assert!(events[3 + thinking].contains(finish), "{events:?}");
            assert_eq!(ending, None);
        }
    }
}

#[test]
fn an_error_in_a_stream_is_an_exception_and_its_end() {
    let fault = StreamFault::Error {
        after_tokens: 3,
        error: ModelError::Overloaded,
    };
    let (events, _) = told(&fault, Framing::AwsEvents, TEXT);
    let last = events.last().expect("an exception");
    let expected =
        r#"serviceUnavailableException {"message":"Bedrock is unable to process your request."}"#;
    assert_eq!(last, expected, "{events:?}");
    assert!(!names(&events).contains(&"messageStop"), "{events:?}");
}

#[test]
fn a_whole_answer_comes_where_a_stream_was_asked_for() {
    let dialect = by_name("bedrock").expect("built in");
    let framing = Framing::AwsEvents;
    let fault = StreamFault::WholeForStream;
    let mut editor = StreamEditor::new(&fault, dialect, AnswerForm::Stream(framing));
    let mut steps = editor.push(&framed(framing, TOOL_USE));
    steps.extend(editor.finish());
    let [Step::Emit(answer)] = &steps[..] else {
        panic!("{steps:?}");
    };
    let document = Document::parse(answer).expect("JSON");
    let reading = dialect.read(squall_dialects::Event::unnamed(&document));
    let parts: Vec<u64> = reading.deltas.iter().map(|delta| delta.part).collect();
    assert_eq!(parts, [0, 0, 1, 2, 2, 2], "{}", document.text());
    assert_eq!(reading.usage.and_then(|usage| usage.output), Some(88));
}
