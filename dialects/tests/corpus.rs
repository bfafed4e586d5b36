//! Every sample in `corpus/DIALECT/` through everything that reads: nothing is lost, nothing is
//! changed that nobody changes, and chunks do not show. A new folder is picked up by itself.
//!
//! | file | what it is |
//! |---|---|
//! | `request*.json` | a request's body |
//! | `*.json` | a whole answer |
//! | `*.sse`, `*.ndjson`, `*.array` | a stream, as it is on the wire |
//! | `*.aws` | Amazon's event stream, a message a line: `messageStart {…}`, `!throttlingException {…}` |
//! | `*.aws-chunks` | events inside of Amazon's, a line each |
//! | `*.bin` | Amazon's event stream, as it is on the wire |

#![expect(clippy::disallowed_methods, reason = "the corpus is found, not listed")]

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use squall_dialects::json::{Document, Edits, NodeId};
use squall_dialects::model::{Reading, Said};
use squall_dialects::stream::{DEFAULT_LIMIT, Frame, Framing, Joiner, Made, Splitter, Template};
use squall_dialects::{ALL, AnswerForm, Answered, Dialect, Event, Reader, Target, by_name};

/// One file of the corpus.
struct Sample {
    name: String,
    dialect: &'static dyn Dialect,
    is: Is,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Is {
    Request,
    Answer,
    Stream(Framing),
}

fn samples() -> Vec<Sample> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let entries = |path: &Path| -> Vec<_> {
        let entries =
            fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut paths: Vec<_> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        paths
    };
    let mut samples = Vec::new();
    for folder in entries(&corpus) {
        let dialect = folder
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        // No model is called: `mcp` has tests of its own.
        if dialect == "mcp" {
            continue;
        }
        let dialect =
            by_name(dialect).unwrap_or_else(|| panic!("{}: no such dialect", folder.display()));
        for file in entries(&folder) {
            samples.push(sample(dialect, &file));
        }
    }
    samples
}

fn sample(dialect: &'static dyn Dialect, file: &Path) -> Sample {
    let written = fs::read(file).expect("a file that can be read");
    let stem = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let extension = file.extension().and_then(|extension| extension.to_str());
    let (is, bytes) = match extension.unwrap_or_default() {
        "json" if stem.starts_with("request") => (Is::Request, written),
        "json" => (Is::Answer, written),
        "sse" => (Is::Stream(Framing::Sse), written),
        "ndjson" => (Is::Stream(Framing::Lines), written),
        "array" => (Is::Stream(Framing::Array), written),
        "bin" => (Is::Stream(Framing::AwsEvents), written),
        "aws" => {
            let framing = Framing::AwsEvents;
            (Is::Stream(framing), framed(framing, &written, message))
        }
        "aws-chunks" => {
            let framing = Framing::AwsChunks;
            let event = |line: &str| Made::data(line);
            (Is::Stream(framing), framed(framing, &written, event))
        }
        other => panic!(
            "{}: nobody reads `{other}`; see the table in this test",
            file.display()
        ),
    };
    Sample {
        name: format!(
            "{}/{}",
            dialect.name(),
            file.file_name()
                .and_then(|n| n.to_str())
                .unwrap_or_default()
        ),
        dialect,
        is,
        bytes,
    }
}

/// `name {…}`, or `!name {…}` for an exception.
fn message(line: &str) -> Made {
    let (name, data) = line
        .split_once(' ')
        .unwrap_or_else(|| panic!("no data: {line}"));
    match name.strip_prefix('!') {
        Some(name) => Made::exception(name.to_owned(), data),
        None => Made::event(name.to_owned(), data),
    }
}

/// A stream of the events that the lines describe.
fn framed(framing: Framing, lines: &[u8], event: impl Fn(&str) -> Made) -> Vec<u8> {
    let lines = std::str::from_utf8(lines).expect("text").lines();
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines
        .flat_map(|line| Template::Fresh(framing).frame(&event(line)).to_vec())
        .collect()
}

/// Streams of the corpus with their framing.
fn streams() -> Vec<(Sample, Framing)> {
    let streams = samples().into_iter().filter_map(|sample| match sample.is {
        Is::Stream(framing) => Some((sample, framing)),
        Is::Request | Is::Answer => None,
    });
    streams.collect()
}

/// Splits a stream in chunks of `size` bytes.
fn split(framing: Framing, stream: &[u8], size: usize) -> Vec<Frame> {
    let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
    let mut frames = Vec::new();
    for chunk in stream.chunks(size) {
        frames.extend(splitter.push(chunk));
    }
    frames.extend(splitter.finish());
    frames
}

/// Every place that a reading names.
fn places(reading: &Reading<'_>) -> Vec<NodeId> {
    let deltas = reading
        .deltas
        .iter()
        .flat_map(|delta| [Some(delta.place), delta.removed_with]);
    let finishes = reading.finishes.iter().map(|finished| Some(finished.place));
    let mirrors = reading.mirrors.iter().map(|(_, place)| Some(*place));
    let usage = reading
        .usage
        .map(|usage| [usage.output_place, usage.total_place]);
    let all = deltas
        .chain(finishes)
        .chain(mirrors)
        .chain(usage.into_iter().flatten());
    all.flatten().collect()
}

/// The document with what stands at each of the places put there again.
fn rewritten(document: &Document<'_>, places: &[NodeId]) -> Vec<u8> {
    let mut edits = Edits::new(document);
    for place in places {
        edits.replace(*place, document.value(*place).raw());
    }
    edits.apply()
}

/// Panics unless every delta's text is what stands in its place.
fn compare_texts(name: &str, document: &Document<'_>, reading: &Reading<'_>) {
    for delta in &reading.deltas {
        let value = document.value(delta.place);
        let text = value
            .as_str()
            .map_or_else(|| value.raw().to_owned(), Cow::into_owned);
        assert_eq!(delta.text, text, "{name}: {delta:?}");
    }
}

/// Whether anything at all was read.
fn says_something(reading: &Reading<'_>) -> bool {
    !reading.deltas.is_empty() || !reading.finishes.is_empty() || reading.error.is_some()
}

#[test]
fn every_dialect_has_samples() {
    let samples = samples();
    for dialect in ALL {
        let of = |is: fn(Is) -> bool| {
            samples
                .iter()
                .any(|sample| sample.dialect.name() == dialect.name() && is(sample.is))
        };
        let name = dialect.name();
        assert!(of(|is| is == Is::Request), "{name}: no request*.json");
        assert!(of(|is| is == Is::Answer), "{name}: no answer");
        assert!(of(|is| matches!(is, Is::Stream(_))), "{name}: no stream");
    }
}

#[test]
fn a_request_is_confirmed_and_its_conversation_read() {
    let requests = samples()
        .into_iter()
        .filter(|sample| sample.is == Is::Request);
    for Sample {
        name,
        dialect,
        bytes,
        ..
    } in requests
    {
        let document = Document::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(dialect.confirms(document.root()), "{name}");
        let request = dialect.request(Target::default(), document.root());
        let conversation = dialect.conversation(&document);
        assert_eq!(conversation.messages.len(), request.messages, "{name}");
        let results = conversation.tool_results.iter();
        let texts = results.clone().flat_map(|result| &result.texts);
        let texts = texts.chain(
            conversation
                .messages
                .iter()
                .flat_map(|message| &message.texts),
        );
        let texts: Vec<&Said<'_>> = texts.chain(&conversation.system).collect();
        assert!(!texts.is_empty(), "{name}: nobody says anything");
        for said in &texts {
            let there = document.value(said.place).as_str();
            assert_eq!(there.as_ref(), Some(&said.text), "{name}");
        }
        for result in results {
            assert!(result.message < conversation.messages.len(), "{name}");
        }
        let mut places: Vec<NodeId> = texts.iter().map(|said| said.place).collect();
        places.extend(
            conversation
                .tool_results
                .iter()
                .map(|result| result.content),
        );
        assert_eq!(rewritten(&document, &places), bytes, "{name}");
        // What the dialect writes is what it reads.
        let message = dialect.user_message("hello");
        Document::parse(message.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn an_answer_that_nobody_changes_stays_as_it_is() {
    let answers = samples()
        .into_iter()
        .filter(|sample| sample.is == Is::Answer);
    for Sample {
        name,
        dialect,
        bytes,
        ..
    } in answers
    {
        let document = Document::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let reading = dialect.read_answer(&document);
        assert!(says_something(&reading), "{name}: nothing is read");
        compare_texts(&name, &document, &reading);
        assert_eq!(rewritten(&document, &places(&reading)), bytes, "{name}");
    }
}

#[test]
fn a_stream_is_split_into_the_same_events_however_it_arrives() {
    for (Sample { name, bytes, .. }, framing) in streams() {
        let whole = split(framing, &bytes, bytes.len());
        let said = |frames: &[Frame]| -> Vec<(Option<String>, Vec<u8>)> {
            let events = frames
                .iter()
                .filter_map(|frame| Some((frame, frame.data()?)));
            events
                .map(|(frame, data)| (frame.name().map(str::to_owned), data.into_owned()))
                .collect()
        };
        assert!(!said(&whole).is_empty(), "{name}");
        for size in (1..=64).chain([100, 1000, 4096]) {
            let frames = split(framing, &bytes, size);
            let joined: Vec<u8> = frames.iter().flat_map(|f| f.bytes().to_vec()).collect();
            assert_eq!(joined, bytes, "{name} in chunks of {size}");
            assert_eq!(said(&frames), said(&whole), "{name} in chunks of {size}");
            let mut seams = Joiner::new(framing);
            let joined: Vec<u8> = frames
                .into_iter()
                .flat_map(|frame| seams.join(frame.into_bytes()))
                .collect();
            assert_eq!(joined, bytes, "{name} in chunks of {size}, joined");
        }
    }
}

#[test]
fn a_stream_that_nobody_changes_stays_as_it_is() {
    for (
        Sample {
            name,
            dialect,
            bytes,
            ..
        },
        framing,
    ) in streams()
    {
        let mut written = Vec::new();
        let mut something = false;
        for frame in split(framing, &bytes, 1) {
            let Some(data) = frame.data() else {
                written.extend_from_slice(frame.bytes());
                continue;
            };
            let Ok(document) = Document::parse(&data) else {
                assert!(
                    dialect.is_end_mark(&data),
                    "{name}: {data:?} is neither JSON nor an end"
                );
                written.extend_from_slice(frame.bytes());
                continue;
            };
            let reading = dialect.read_event(Event::of(&frame, &document));
            something |= says_something(&reading);
            compare_texts(&name, &document, &reading);
            let edited = rewritten(&document, &places(&reading));
            assert_eq!(edited, &data[..], "{name}");
            let edited = frame.with(None, &edited);
            assert_eq!(edited, frame.bytes(), "{name}");
            written.extend_from_slice(&edited);
        }
        assert!(something, "{name}: nothing is read");
        assert_eq!(written, bytes, "{name}");
    }
}

#[test]
fn what_the_journal_says_does_not_hang_on_chunks() {
    for Sample {
        name,
        dialect,
        is,
        bytes,
    } in samples()
    {
        let form = match is {
            Is::Request => continue,
            Is::Answer => AnswerForm::Json,
            Is::Stream(framing) => AnswerForm::Stream(framing),
        };
        let read = |size: usize| {
            let mut reader = Reader::new(dialect, Target::default(), None);
            reader.head(Some(form));
            bytes.chunks(size).for_each(|chunk| reader.push(chunk));
            reader.finish()
        };
        let whole = read(bytes.len());
        assert!(
            whole.finish.is_some() || whole.error.is_some(),
            "{name}: {whole:?}"
        );
        for size in [1, 3, 50] {
            assert_eq!(read(size), whole, "{name}");
        }
    }
}

#[test]
fn a_model_has_answered_what_ends_well_and_nothing_else() {
    // Answers that are errors, or come to one.
    let failures = [
        "error",
        "overloaded",
        "failed",
        "broken",
        "throttled",
        "mistral_error",
    ];
    for sample in samples() {
        let form = match sample.is {
            Is::Request => continue,
            Is::Answer => AnswerForm::Json,
            Is::Stream(framing) => AnswerForm::Stream(framing),
        };
        let file = sample.name.rsplit('/').next().unwrap_or_default();
        let fails = failures.iter().any(|failure| file.starts_with(failure));
        let answered = |bytes: &[u8], size: usize| {
            let mut answered = Answered::new(sample.dialect, Some(form));
            for piece in bytes.chunks(size) {
                answered.push(piece);
            }
            answered.end()
        };
        for size in [1, sample.bytes.len()] {
            assert_eq!(answered(&sample.bytes, size), !fails, "{}", sample.name);
        }
        let begun = &sample.bytes[..sample.bytes.len() / 2];
        assert!(!answered(begun, begun.len()), "half of {}", sample.name);
        assert!(Answered::new(sample.dialect, None).end());
    }
}
