//! What was said in model calls: by the agent in a request, by the model in an answer.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use squall_dialects::json::Document;
use squall_dialects::model::{DeltaKind, Reading, Role};
use squall_dialects::stream::Splitter;
use squall_dialects::{AnswerForm, Dialect, Event, Target, by_name};
use squall_journal::reach::SeenExchange;
use squall_journal::record::Kind;

use super::attempt::{Attempt, is_cut};

/// A model call.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) attempt: &'a Attempt,
    /// What the agent told the model of tools' results; `None`: the request was not kept.
    pub(crate) reports: Option<Vec<ToolReport>>,
    /// What the agent told the model that the model itself had said.
    pub(crate) history: Option<Vec<String>>,
    /// What the model said, as far as the agent got it.
    pub(crate) said: String,
    /// Whether the answer broke off.
    pub(crate) is_cut: bool,
}

/// What an agent tells its model of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolReport {
    /// The tool, where it is known.
    pub(crate) tool: Option<String>,
    /// What is told of it, as it stands in the request.
    pub(crate) text: String,
}

/// Greatest size of one event, bytes.
const EVENT: usize = 1 << 20;

impl<'a> Turn<'a> {
    /// `None`: it is no model call, or of a dialect that nobody knows.
    pub(super) fn of(attempt: &'a Attempt, seen: &'a SeenExchange) -> Option<Self> {
        if seen.record.kind != Kind::Llm {
            return None;
        }
        let dialect = by_name(seen.record.dialect.as_deref()?)?;
        let asked = seen
            .request
            .as_ref()
            .and_then(|request| request.body.as_ref());
        let asked = asked.and_then(|body| conversation(dialect, &body.bytes));
        let (reports, history) = asked.unzip();
        Some(Self {
            attempt,
            reports,
            history,
            said: said(dialect, seen).unwrap_or_default(),
            is_cut: is_cut(&seen.record),
        })
    }
}

fn conversation(dialect: &dyn Dialect, body: &[u8]) -> Option<(Vec<ToolReport>, Vec<String>)> {
    let document = Document::parse_prefix(body)?;
    let conversation = dialect.conversation(&document);
    let reports = conversation.tool_results.iter().map(|result| ToolReport {
        tool: result.tool.as_deref().map(str::to_owned),
        text: document.value(result.place).raw().to_owned(),
    });
    let messages = conversation.messages.iter();
    let of_the_model = messages.filter(|message| message.role == Role::Assistant);
    let history = of_the_model.map(|message| {
        let texts = message.texts.iter().map(|said| said.text.as_ref());
        texts.collect::<Vec<_>>().concat()
    });
    Some((reports.collect(), history.collect()))
}

/// The texts that the model wrote in an answer, as far as it came.
fn said(dialect: &dyn Dialect, seen: &SeenExchange) -> Option<String> {
    let answer = seen.response.as_ref()?;
    let body = &answer.body.as_ref()?.bytes;
    let mut headers = HeaderMap::new();
    let media_type = answer.header(CONTENT_TYPE.as_str())?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(media_type).ok()?);
    let path = seen.record.url.splitn(4, '/').nth(3).unwrap_or_default();
    let path = format!("/{path}");
    let mut text = String::new();
    match dialect.form(Target::new(&path), None, &headers)? {
        AnswerForm::Json => {
            let document = Document::parse_prefix(body)?;
            write_down(&dialect.read_answer(&document), &mut text);
        }
        AnswerForm::Stream(framing) => {
            let mut splitter = Splitter::new(framing, EVENT);
            let mut frames = splitter.push(body);
            frames.extend(splitter.finish());
            for frame in &frames {
                if let Some(data) = frame.data()
                    && let Ok(document) = Document::parse(&data)
                {
                    write_down(&dialect.read_event(Event::of(frame, &document)), &mut text);
                }
            }
        }
    }
    Some(text)
}

fn write_down(reading: &Reading<'_>, text: &mut String) {
    for delta in &reading.deltas {
        if delta.kind == DeltaKind::Text && delta.choice == 0 && !delta.repeats {
            text.push_str(&delta.text);
        }
    }
}
