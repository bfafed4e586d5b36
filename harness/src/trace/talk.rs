//! The contents of model calls: of the agent's request and of the model's answer.

use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use squall_dialects::json::Document;
use squall_dialects::model::{DeltaKind, Message, Reading, Role};
use squall_dialects::stream::Splitter;
use squall_dialects::{AnswerForm, Dialect, Event, Target, by_name};
use squall_journal::record::Kind;

use super::attempt::{Attempt, is_cut};
use crate::reach::SeenExchange;

/// A model call.
#[derive(Debug)]
pub(crate) struct ModelTurn<'a> {
    pub(crate) attempt: &'a Attempt,
    /// Results of tools in the request; `None`: the request was not kept.
    pub(crate) reports: Option<Vec<ToolReport>>,
    /// Earlier texts of the model in the request.
    pub(crate) history: Option<Vec<String>>,
    /// The model's answer, as far as the agent received it.
    pub(crate) said: String,
    /// Ids of the requested tool calls, as far as the agent received them; `None`: a call without an id.
    pub(crate) requests: Vec<Option<String>>,
    /// Whether the answer was truncated.
    pub(crate) is_cut: bool,
}

/// A tool's result in a model request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolReport {
    /// The tool, if known.
    pub(crate) tool: Option<String>,
    /// Id of the call, if there are ids.
    pub(crate) call: Option<String>,
    /// The result's raw JSON in the request.
    pub(crate) text: String,
    /// The raw JSON of its content.
    pub(crate) content: String,
}

/// Longest event that is read, in bytes.
const EVENT: usize = 1 << 20;

impl<'a> ModelTurn<'a> {
    /// `None`: it is not a model call, or its dialect is unknown.
    pub(super) fn of(attempt: &'a Attempt, seen: &'a SeenExchange) -> Option<Self> {
        if seen.record.kind != Kind::Llm {
            return None;
        }
        let dialect = by_name(seen.record.dialect.as_deref()?)?;
        let request = seen.request.as_ref();
        let body = request.and_then(|request| request.body.as_ref());
        let sent = body.and_then(|body| conversation(dialect, &body.bytes));
        let (reports, history) = sent.unzip();
        let (said, requests) = said(dialect, seen).unwrap_or_default();
        Some(Self {
            attempt,
            reports,
            history,
            said,
            requests: requests.into_values().collect(),
            is_cut: is_cut(&seen.record),
        })
    }
}

/// Results of tools and earlier texts of the model in a request.
fn conversation(dialect: &dyn Dialect, body: &[u8]) -> Option<(Vec<ToolReport>, Vec<String>)> {
    let document = Document::parse_prefix(body)?;
    let conversation = dialect.conversation(&document);
    let reports = conversation.tool_results.iter().map(|result| ToolReport {
        tool: result.tool.as_deref().map(str::to_owned),
        call: result.call.as_deref().map(str::to_owned),
        text: document.value(result.place).raw().to_owned(),
        content: document.value(result.content).raw().to_owned(),
    });
    let said = |message: &Message<'_>| {
        let texts = message.texts.iter().map(|said| said.text.as_ref());
        texts.collect::<Vec<_>>().concat()
    };
    let messages = conversation.messages.iter();
    let history = messages.filter(|message| message.role == Role::Assistant);
    Some((reports.collect(), history.map(said).collect()))
}

/// The texts and the tool call ids in an answer, as far as it was received.
fn said(dialect: &dyn Dialect, seen: &SeenExchange) -> Option<(String, CallIds)> {
    let answer = seen.response.as_ref()?;
    let body = &answer.body.as_ref()?.bytes;
    let mut headers = HeaderMap::new();
    let media_type = answer.header(CONTENT_TYPE.as_str())?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(media_type).ok()?);
    let path = seen.record.url.splitn(4, '/').nth(3).unwrap_or_default();
    let path = format!("/{path}");
    let mut wrote = (String::new(), CallIds::new());
    match dialect.form(Target::new(&path), &headers)? {
        AnswerForm::Json => {
            let document = Document::parse_prefix(body)?;
            write_down(&dialect.read(Event::unnamed(&document)), &mut wrote);
        }
        AnswerForm::Stream(framing) => {
            let mut splitter = Splitter::new(framing, EVENT);
            let mut frames = splitter.push(body);
            frames.extend(splitter.finish());
            for frame in &frames {
                if let Some(data) = frame.data()
                    && let Ok(document) = Document::parse(&data)
                {
                    write_down(&dialect.read(Event::of(frame, &document)), &mut wrote);
                }
            }
        }
    }
    Some(wrote)
}

/// Ids of tool calls, by the part of the answer.
type CallIds = BTreeMap<u64, Option<String>>;

fn write_down(reading: &Reading<'_>, (text, ids): &mut (String, CallIds)) {
    for delta in &reading.deltas {
        if delta.choice != 0 || delta.repeats {
            continue;
        }
        if delta.kind == DeltaKind::Text {
            text.push_str(&delta.text);
        } else if delta.kind.is_of_a_call() {
            let id = ids.entry(delta.part).or_default();
            if delta.kind == DeltaKind::ToolId {
                *id = Some(delta.text.clone().into_owned());
            }
        }
    }
}
