//! The samples of `corpus/DIALECT/`; a new file or folder is picked up by itself.
//!
//! | file | what it is |
//! |---|---|
//! | `request*.json` | a request's body |
//! | `*.json` | a whole answer |
//! | `*.sse`, `*.ndjson`, `*.array` | a stream, as it is on the wire |
//! | `*.aws` | Amazon's event stream, a message a line: `messageStart {…}`, `!throttlingException {…}` |
//! | `*.aws-chunks` | events inside of Amazon's, a line each |

use std::fs;
use std::path::Path;

use squall_dialects::stream::{DEFAULT_LIMIT, Frame, Framing, Splitter, SyntheticEvent};
use squall_dialects::{AnswerForm, Dialect, by_name};

/// One file of the corpus.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) is: Is,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Is {
    Request,
    Answer(AnswerForm),
}

impl Sample {
    /// Its documents, as frames; a whole answer is a frame of its own.
    pub(crate) fn frames(&self, size: usize) -> Vec<Frame> {
        let framing = match self.is {
            Is::Answer(AnswerForm::Stream(framing)) => framing,
            // A whole document without its line breaks is a line.
            Is::Request | Is::Answer(AnswerForm::Json) => return Vec::new(),
        };
        let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
        let mut frames = Vec::new();
        for chunk in self.bytes.chunks(size) {
            frames.extend(splitter.push(chunk));
        }
        frames.extend(splitter.finish());
        frames
    }
}

/// The folders of the corpus, but for `mcp`, which calls no model, in order.
pub(crate) fn samples() -> Vec<Sample> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let entries = |path: &Path| -> Vec<_> {
        let entries = fs::read_dir(path).expect("a folder");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("one").path()).collect();
        paths.sort();
        paths
    };
    let mut samples = Vec::new();
    for folder in entries(&corpus) {
        let dialect = folder.file_name().and_then(|name| name.to_str());
        let dialect = dialect.expect("a name");
        if dialect == "mcp" {
            continue;
        }
        let dialect = by_name(dialect).expect(dialect);
        samples.extend(entries(&folder).iter().map(|file| sample(dialect, file)));
    }
    samples
}

/// One sample, by dialect and file.
pub(crate) fn named(name: &str) -> Sample {
    let mut samples = samples().into_iter();
    samples.find(|sample| sample.name == name).expect(name)
}

fn sample(dialect: &'static dyn Dialect, file: &Path) -> Sample {
    let bytes = fs::read(file).expect("a file");
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.expect("a name");
    let extension = file.extension().and_then(|extension| extension.to_str());
    let stream = |framing| Is::Answer(AnswerForm::Stream(framing));
    let (is, bytes) = match extension.unwrap_or_default() {
        "json" if name.starts_with("request") => (Is::Request, bytes),
        "json" => (Is::Answer(AnswerForm::Json), bytes),
        "sse" => (stream(Framing::Sse), bytes),
        "ndjson" => (stream(Framing::Lines), bytes),
        "array" => (stream(Framing::Array), bytes),
        "aws" => (
            stream(Framing::AwsEvents),
            framed(Framing::AwsEvents, &bytes),
        ),
        "aws-chunks" => (
            stream(Framing::AwsChunks),
            framed(Framing::AwsChunks, &bytes),
        ),
        other => panic!("{name}: `{other}` is not in the table of this module"),
    };
    Sample {
        name: format!("{}/{name}", dialect.name()),
        dialect,
        is,
        bytes,
    }
}

/// A stream of the events that the lines describe: `name {…}`, `!name {…}` for an exception, or the
/// data alone.
pub(crate) fn framed(framing: Framing, lines: &[u8]) -> Vec<u8> {
    let lines = std::str::from_utf8(lines).expect("text").lines();
    let event = |line: &str| match line.split_once(' ').filter(|_| !line.starts_with('{')) {
        None => SyntheticEvent::data(line),
        Some((name, data)) => match name.strip_prefix('!') {
            Some(name) => SyntheticEvent::exception(name.to_owned(), data),
            None => SyntheticEvent::event(name.to_owned(), data),
        },
    };
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines
        .flat_map(|line| framing.first_frame(&event(line)).to_vec())
        .collect()
}
