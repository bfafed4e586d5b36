//! What every model fault becomes in every dialect: the page `docs/model-faults.md`, written by
//! carrying each of them out.
//!
//! A page that is out of date fails the test; `INSTA_UPDATE=always` writes it anew.

#![expect(
    clippy::disallowed_methods,
    reason = "the page is compared with what is written"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use squall_dialects::json::Document;
use squall_dialects::stream::{DEFAULT_LIMIT, Splitter};
use squall_dialects::{ALL, ErrorContext, Event, Target, WireReply};

use super::dialects::{Sample, bytes, edited, samples};
use super::*;
use crate::family::Family;
use crate::fault::FaultMode;
use crate::faults;
use crate::plan::{Edit, Plan, PlannedAnswer};
use crate::profile;

/// What a cell says where a fault cannot be.
const NONE: &str = "–";

/// What a fault becomes in one dialect.
#[derive(Default)]
struct Cell {
    /// In whole answers, and in streams.
    forms: [BTreeSet<String>; 2],
    /// Why not, likewise.
    why: [BTreeSet<String>; 2],
    /// Framings of streams in which it can be.
    framings: BTreeSet<&'static str>,
    /// Why it cannot be in a framing, whatever the answer holds.
    unframed: BTreeMap<&'static str, String>,
}

impl Cell {
    fn text(&self) -> String {
        let [whole, stream] = [0, 1].map(|at| {
            let all = &self.forms[at];
            // Where one sample tells by a word, another may have had the same word before.
            let telling = all.iter().filter(|form| all.len() == 1 || *form != "yes");
            let forms: Vec<_> = telling.map(String::as_str).collect();
            if forms.is_empty() {
                NONE.to_owned()
            } else {
                forms.join(", ")
            }
        });
        let without = self.without().map(|(framing, _)| framing);
        let without = without.collect::<Vec<_>>().join(", ");
        if !without.is_empty() {
            format!("{whole} / {stream}, not {without}")
        } else if whole == stream {
            whole
        } else {
            format!("{whole} / {stream}")
        }
    }

    /// The framings of streams in which it cannot be, and why, where it can in others.
    fn without(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let unframed = self.unframed.iter().map(|(framing, why)| (*framing, why));
        unframed
            .filter(|(framing, _)| !self.framings.is_empty() && !self.framings.contains(framing))
    }

    /// Why there is none, in the words that say the most.
    fn why(&self, at: usize) -> Option<&String> {
        let reasons = self.why[at].iter().filter(|_| self.forms[at].is_empty());
        reasons.max_by_key(|why| (!why.starts_with("the answer holds no"), why.len()))
    }
}

/// What a rule of that mode writes into a plan, with parameters that fit short answers.
fn plan(mode: &FaultMode) -> Plan {
    let parameters = match mode.name {
        "truncated_response" => "max_tokens: 2",
        "stream_cut" | "stream_stall" | "stream_error" => "after_tokens: 2",
        "slow_stream" => "ttft_ms: 1",
        "response_drift" => "drift_type: tone_shift, severity: significant",
        _ => "",
    };
    let rule = format!(
        "chaos: {{llm_faults: [{{mode: {}, {parameters}}}]}}",
        mode.name
    );
    let profile = profile::parse("modes.yaml", &rule).expect("a rule");
    mode.alone(&profile.rules[0].fault)
}

/// What the answer to an error is told by: its status, and the word for it.
fn told(reply: &WireReply) -> String {
    let status = reply.status.as_u16();
    match word(&reply.body, reply.headers.get("x-amzn-errortype")) {
        Some(word) => format!("{status} `{word}`"),
        None => status.to_string(),
    }
}

fn word(body: &[u8], header: Option<&http::HeaderValue>) -> Option<String> {
    if let Some(name) = header.and_then(|name| name.to_str().ok()) {
        return name.split(':').next().map(str::to_owned);
    }
    let document = Document::parse(body).ok()?;
    // Mistral's errors have no envelope.
    let root = document.root();
    let error = root.get("error");
    let error = error.or_else(|| root.path(&["response", "status_details", "error"]));
    let error = error.unwrap_or(root);
    let string = |key| {
        let value = error.get(key)?;
        let is_word =
            |word: &str| !word.is_empty() && !word.bytes().all(|byte| byte.is_ascii_digit());
        value.as_str().filter(|word| is_word(word))
    };
    let found = string("code").or_else(|| string("status"));
    let found = found
        .or_else(|| string("type"))
        .or_else(|| error.as_str())
        .or_else(|| string("message"))?;
    let mut short: String = found.chars().take(40).collect();
    if short.len() < found.len() {
        short.push('…');
    }
    Some(short)
}

/// How a changed answer tells of it: another word at its end, an error, or nothing but itself.
fn form(sample: &Sample, steps: &[Step]) -> String {
    let (before, after) = (ends(sample, &sample.bytes), ends(sample, &bytes(steps)));
    let broken = steps.iter().any(|step| matches!(step, Step::End(_)));
    match after {
        (_, Some(error)) if before.1.is_none() => error,
        (Some(word), _) if before.0.as_ref() != Some(&word) && !broken => format!("`{word}`"),
        _ => "yes".to_owned(),
    }
}

/// The provider's word for why the first choice ends, and what tells of an error.
fn ends(sample: &Sample, bytes: &[u8]) -> (Option<String>, Option<String>) {
    let mut ends = (None, None);
    let mut note = |document: &Document<'_>, reading: &Reading<'_>, name: Option<&str>| {
        if let Some(finished) = reading.finishes.first() {
            let word = document.value(finished.place).as_str();
            ends.0 = word.map(std::borrow::Cow::into_owned).or(ends.0.take());
        }
        if reading.error.is_some() {
            let name = name.filter(|name| name.ends_with("xception"));
            let data = document.text().as_bytes();
            let word = name.map(str::to_owned).or_else(|| word(data, None));
            ends.1 = Some(word.map_or_else(|| "an error".to_owned(), |word| format!("`{word}`")));
        }
    };
    match sample.form {
        AnswerForm::Json => {
            if let Ok(document) = Document::parse(bytes) {
                note(
                    &document,
                    &sample.dialect.read(Event::unnamed(&document)),
                    None,
                );
            }
        }
        AnswerForm::Stream(framing) => {
            let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
            let mut frames = splitter.push(bytes);
            frames.extend(splitter.finish());
            for frame in &frames {
                let data = frame.data().unwrap_or_default();
                if let Ok(document) = Document::parse(&data) {
                    let event = Event::of(frame, &document);
                    note(&document, &sample.dialect.read(event), event.name);
                }
            }
        }
    }
    ends
}

/// Whether the dialect is of sessions on a WebSocket.
pub(super) fn is_session(dialect: &dyn Dialect) -> bool {
    matches!(dialect.name(), "openai-realtime" | "gemini-live")
}

/// What an error becomes.
fn error_cell(error: &ModelError, dialect: &dyn Dialect) -> Cell {
    let mut cell = Cell::default();
    for (at, stream) in [false, true].into_iter().enumerate() {
        let context = ErrorContext {
            draw: 7,
            account: 7,
            credential: None,
            target: Target::default(),
            model: Some("MODEL"),
            stream,
            // A session has its conversation, and requests name no response.
            previous_response: (!is_session(dialect)).then_some("resp_1"),
            on_websocket: true,
            input_tokens: Some(1000),
            now: None,
        };
        match context.rules_out(error, dialect) {
            None => cell.forms[at].insert(told(&dialect.error(error, &context))),
            Some(why) => cell.why[at].insert(why.to_owned()),
        };
    }
    cell
}

/// What the page calls the framing of a stream.
fn framing(sample: &Sample) -> Option<&'static str> {
    let AnswerForm::Stream(framing) = sample.form else {
        return None;
    };
    Some(match framing {
        Framing::Sse => "as server-sent events",
        Framing::Array => "as a JSON list",
        Framing::Lines => "as lines",
        Framing::AwsEvents | Framing::AwsChunks => "as Amazon's event stream",
    })
}

/// What a fault of the answer becomes.
fn stream_cell(fault: &StreamFault, dialect: &dyn Dialect, samples: &[Sample]) -> Cell {
    let mut cell = Cell::default();
    let of_it = samples
        .iter()
        .filter(|sample| sample.dialect.name() == dialect.name());
    for sample in of_it {
        let at = usize::from(sample.form != AnswerForm::Json);
        let (steps, why) = edited(sample, fault, usize::MAX >> 1);
        match (why, framing(sample)) {
            (None, framing) => {
                cell.framings.extend(framing);
                cell.forms[at].insert(form(sample, &steps));
            }
            (Some(why), framing) => {
                // An answer without a tool call, say, tells nothing of its framing.
                if let Some(framing) = framing.filter(|_| !why.starts_with("the answer holds no")) {
                    cell.unframed.insert(framing, why.clone());
                }
                cell.why[at].insert(why);
            }
        }
    }
    cell
}

fn cell(plan: &Plan, dialect: &'static dyn Dialect, samples: &[Sample]) -> Cell {
    match (&plan.instead, plan.edits.first()) {
        (Some((_, PlannedAnswer::ModelError(error))), _) => error_cell(error, dialect),
        (_, Some((_, Edit::Stream(fault)))) => stream_cell(fault, dialect, samples),
        _ => Cell {
            forms: [0, 1].map(|_| BTreeSet::from(["yes".to_owned()])),
            ..Cell::default()
        },
    }
}

fn page() -> String {
    let samples = samples();
    let modes: Vec<_> = faults::modes(Family::Llm).iter().collect();
    let mut page = "# Model faults by provider\n\n\
        What each mode of `llm_faults` becomes in each dialect. This page is generated: every fault is \
        applied to sample\nanswers of every provider.\n\n\
        | cell | meaning |\n|---|---|\n\
        | a word in `code` | the status and word of the error, the finish reason, or the error event |\n\
        | yes | the fault is applied, without such a word |\n\
        | A / B | A in whole answers, B in streams |\n\
        | – | the rule is bypassed: [not supported](#not-supported) |\n\n\
        Answers of `openai-realtime` and `gemini-live` are always streams.\n\n| mode |"
        .to_owned();
    for dialect in ALL {
        write!(page, " `{}` |", dialect.name()).expect("text");
    }
    page.push_str("\n|---|");
    page.push_str(&"---|".repeat(ALL.len()));
    page.push('\n');
    let mut missing: BTreeMap<(usize, &str, &str), Vec<&str>> = BTreeMap::new();
    let mut whys = Vec::new();
    for mode in &modes {
        let plan = plan(mode);
        write!(page, "| `{}` |", mode.name).expect("text");
        for dialect in ALL {
            let cell = cell(&plan, *dialect, &samples);
            write!(page, " {} |", cell.text().replace('|', "\\|")).expect("text");
            for (at, form) in ["whole answers", "streams"].into_iter().enumerate() {
                if let Some(why) = cell.why(at) {
                    let form = form.to_owned();
                    whys.push((mode.name, form, dialect.name(), why.clone()));
                }
            }
            for (framing, why) in cell.without() {
                let form = format!("streams {framing}");
                whys.push((mode.name, form, dialect.name(), why.clone()));
            }
        }
        page.push('\n');
    }
    page.push_str(&variations(&modes));
    page.push_str("\n## Not supported\n\n| mode | in | dialects | why |\n|---|---|---|---|\n");
    for (at, (mode, form, dialect, why)) in whys.iter().enumerate() {
        let first = whys
            .iter()
            .position(|other| (other.0, &other.1, &other.3) == (*mode, form, why));
        let key = (first.unwrap_or(at), *mode, form.as_str());
        missing.entry(key).or_default().push(dialect);
    }
    for ((first, mode, form), dialects) in &missing {
        let dialects = if dialects.len() == ALL.len() {
            "all".to_owned()
        } else {
            format!("`{}`", dialects.join("`, `"))
        };
        let why = &whys[*first].3;
        writeln!(page, "| `{mode}` | {form} | {dialects} | {why} |").expect("text");
    }
    page
}

/// The errors of providers that speak a dialect in their own way: all else is as in that dialect.
fn variations(modes: &[&FaultMode]) -> String {
    let names: Vec<_> = squall_dialects::endpoint_names()
        .into_iter()
        .filter(|name| name.contains('/'))
        .collect();
    let mut table = "\n## Providers with errors of their own\n\n\
        These speak `openai-chat`; all other modes are as in that column.\n\n| mode |"
        .to_owned();
    for name in &names {
        write!(table, " `{name}` |").expect("text");
    }
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(names.len()));
    table.push('\n');
    for mode in modes {
        let plan = plan(mode);
        let Some((_, PlannedAnswer::ModelError(error))) = &plan.instead else {
            continue;
        };
        let cells = names.iter().map(|name| {
            let provider = squall_dialects::of_endpoint(name).expect("an endpoint");
            error_cell(error, provider).text()
        });
        let cells: Vec<_> = cells.collect();
        if cells.iter().all(|cell| cell == NONE) {
            continue;
        }
        write!(table, "| `{}` |", mode.name).expect("text");
        for cell in cells {
            write!(table, " {} |", cell.replace('|', "\\|")).expect("text");
        }
        table.push('\n');
    }
    table
}

#[test]
fn the_page_of_model_faults_says_what_is_done() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/model-faults.md");
    let text = page();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, &text).expect("the page can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/model-faults.md is out of date; write it anew with INSTA_UPDATE=always"
    );
}

/// A cell that says nothing of a fault that is carried out, or the reverse, is noticed.
#[test]
fn the_table_tells_what_is_there_from_what_is_not() {
    let samples = samples();
    let text = |mode: &str, dialect: &str| {
        let mode = faults::mode(Family::Llm, mode).expect("a mode");
        let dialect = squall_dialects::by_name(dialect).expect("a dialect");
        cell(&plan(mode), dialect, &samples).text()
    };
    for (mode, dialect, expected) in [
        ("overloaded", "anthropic", "529 `overloaded_error`"),
        ("truncated_response", "gemini", "`MAX_TOKENS`"),
        ("malformed_tool_call", "gemini", "`MALFORMED_FUNCTION_CALL`"),
        ("malformed_tool_call", "anthropic", "– / yes"),
        ("malformed_tool_call", "ollama", "–"),
        ("json_for_stream", "openai-chat", "– / yes"),
        (
            "missing_terminator",
            "gemini",
            "– / yes, not as server-sent events",
        ),
        ("missing_terminator", "openai-chat", "– / yes"),
    ] {
        assert_eq!(text(mode, dialect), expected, "{mode} {dialect}");
    }
}
