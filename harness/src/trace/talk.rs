//! The contents of model calls: of the agent's request and of the model's answer.

use std::collections::{BTreeMap, HashMap};
use std::iter;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use squall_dialects::json::Document;
use squall_dialects::model::{Conversation, DeltaKind, Message, Reading, Role};
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
    /// Whether the request only prepares a conversation.
    pub(crate) is_warm_up: bool,
    /// Id of the answer, if a later request can continue it.
    pub(crate) answer_id: Option<String>,
    /// The place among the turns of the one that it continues, if that was seen.
    pub(crate) previous: Option<usize>,
    /// Why the beginning of the conversation is unknown; `None`: it is known.
    pub(crate) gap: Option<String>,
    /// Tools of the calls in the answer, by id.
    tools: Vec<(String, String)>,
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
        let document = body.and_then(|body| Document::parse_prefix(&body.bytes));
        let sent = document
            .as_ref()
            .map(|document| dialect.conversation(document));
        let read = document.as_ref().zip(sent.as_ref());
        let (reports, history) = read
            .map(|(document, sent)| conversation(document, sent))
            .unzip();
        let answer = answer(dialect, seen).unwrap_or_default();
        let tools = answer
            .calls
            .values()
            .filter_map(|(id, tool)| id.clone().zip(tool.clone()));
        Some(Self {
            attempt,
            reports,
            history,
            tools: tools.collect(),
            said: answer.text,
            requests: answer.calls.into_values().map(|(id, _)| id).collect(),
            is_cut: is_cut(&seen.record),
            is_warm_up: sent.as_ref().is_some_and(|sent| sent.is_warm_up),
            answer_id: answer.id,
            previous: None,
            gap: None,
        })
    }

    /// The turn, and those that it continues, latest first.
    pub(crate) fn chain<'t>(&'t self, turns: &'t [Self]) -> impl Iterator<Item = &'t Self> {
        iter::successors(Some(self), |turn| Some(&turns[turn.previous?]))
    }
}

/// Links turns to those that they continue, and names the tools of results by the calls in earlier answers.
pub(super) fn link(turns: &mut [ModelTurn<'_>]) {
    let mut answers: HashMap<String, usize> = HashMap::new();
    let mut tools: HashMap<String, String> = HashMap::new();
    for place in 0..turns.len() {
        if let Some(id) = turns[place].attempt.continues() {
            let previous = answers.get(id).copied();
            let gap = match previous {
                Some(previous) => turns[previous].gap.clone(),
                None => Some(format!(
                    "the conversation began before Squall saw it ({} continues {id})",
                    turns[place].attempt.id
                )),
            };
            (turns[place].previous, turns[place].gap) = (previous, gap);
        }
        let turn = &mut turns[place];
        let reports = turn.reports.iter_mut().flatten();
        for report in reports.filter(|report| report.tool.is_none()) {
            let call = report.call.as_ref();
            report.tool = call.and_then(|call| tools.get(call).cloned());
        }
        tools.extend(turn.tools.iter().cloned());
        answers.extend(turn.answer_id.clone().map(|id| (id, place)));
    }
}

/// Results of tools and earlier texts of the model in a request.
fn conversation(
    document: &Document<'_>,
    conversation: &Conversation<'_>,
) -> (Vec<ToolReport>, Vec<String>) {
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
    (reports.collect(), history.map(said).collect())
}

/// A model's answer, as far as it was received.
#[derive(Default)]
struct ModelAnswer {
    id: Option<String>,
    text: String,
    /// Ids and tools of calls, by the part of the answer.
    calls: BTreeMap<u64, (Option<String>, Option<String>)>,
}

fn answer(dialect: &dyn Dialect, seen: &SeenExchange) -> Option<ModelAnswer> {
    let answer = seen.response.as_ref()?;
    let body = &answer.body.as_ref()?.bytes;
    let mut headers = HeaderMap::new();
    let media_type = answer.header(CONTENT_TYPE.as_str())?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(media_type).ok()?);
    let path = seen.record.url.splitn(4, '/').nth(3).unwrap_or_default();
    let path = format!("/{path}");
    let mut read = ModelAnswer::default();
    match dialect.form(Target::new(&path), &headers)? {
        AnswerForm::Json => {
            let document = Document::parse_prefix(body)?;
            read.add(&dialect.read(Event::unnamed(&document)));
        }
        AnswerForm::Stream(framing) => {
            let mut splitter = Splitter::new(framing, EVENT);
            let mut frames = splitter.push(body);
            frames.extend(splitter.finish());
            for frame in &frames {
                if let Some(data) = frame.data()
                    && let Ok(document) = Document::parse(&data)
                {
                    read.add(&dialect.read(Event::of(frame, &document)));
                }
            }
        }
    }
    Some(read)
}

impl ModelAnswer {
    fn add(&mut self, reading: &Reading<'_>) {
        if let (None, Some(id)) = (&self.id, &reading.id) {
            self.id = Some(id.to_string());
        }
        for delta in &reading.deltas {
            if delta.choice != 0 || delta.repeats {
                continue;
            }
            if delta.kind == DeltaKind::Text {
                self.text.push_str(&delta.text);
            } else if delta.kind.is_of_a_call() {
                let (id, tool) = self.calls.entry(delta.part).or_default();
                match delta.kind {
                    DeltaKind::ToolId => *id = Some(delta.text.to_string()),
                    DeltaKind::ToolName => *tool = Some(delta.text.to_string()),
                    _ => {}
                }
            }
        }
    }
}
