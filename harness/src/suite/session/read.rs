//! Reads replay sessions strictly: all errors are reported at once, with their positions.

use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use squall_documents::{At, Fields, NodeKind, Tree, ValueReader, did_you_mean};
use squall_journal::tape::{
    Answer, Content, Data, Matching, ModelSource, Otherwise, Piece, RecordedExchange, Session,
    ToolResponse,
};
use squall_profiles::library::Library;
use squall_profiles::tools::ToolNames;

use super::super::chaos::Context;
use super::super::contract::{self, ContractPart};
use super::ReplaySession;

/// Longest wait, in milliseconds: one day. A longer one is probably a unit mistake.
const LONGEST_MS: f64 = 86_400_000.0;

/// A standalone session.
pub fn read_whole(value: &mut ValueReader<'_, '_>) -> Option<Session> {
    value.fields("a replay session", |fields| {
        fields.require("id", "a name for the session");
        let (library, tools) = (Library::builtin(), ToolNames::default());
        let context = Context {
            library: &library,
            tools: &tools,
        };
        Some(read(fields, context).session)
    })
}

/// The fields of a session.
pub(in super::super) fn read(fields: &mut Fields<'_, '_>, context: Context<'_>) -> ReplaySession {
    let about = "The contract that must hold: its name, its file, or itself. Default: what the suite demands.";
    let contract = fields.field("contract", about, |value| {
        contract::of_session(value, context)
    });
    let session = Session {
        id: words(fields, "id", "Unique in the suite.").unwrap_or_default(),
        input: fields
            .field("input", "What the agent is asked, a text or turns.", input)
            .unwrap_or_default(),
        name: text(fields, "name", "What reports call it."),
        source: text(fields, "source", "Where it was captured; default `manual`."),
        captured_at: text(fields, "captured_at", "When it was captured."),
        context: items(
            fields,
            "context",
            "What came before, oldest first.",
            message,
        ),
        tool_responses: items(
            fields,
            "tool_responses",
            "Results of tools, by tool and in order.",
            |value| value.fields("a map", tool_response),
        ),
        llm_responses: items(
            fields,
            "llm_responses",
            "Responses of models, in order.",
            |value| value.fields("a map", recorded),
        ),
        exchanges: items(
            fields,
            "exchanges",
            "Responses to requests, in order per method, URL and body.",
            |value| value.fields("a map", exchange),
        ),
        expected_failure: text(fields, "expected_failure", "What went wrong."),
        contract: contract.as_ref().map(|contract| match contract {
            ContractPart::Named(name) => name.clone(),
            ContractPart::Written(contract) => contract.name.clone(),
        }),
        models: fields.word(
            "models",
            "Where responses to model calls come from; default `recorded` if there are any.",
            "source",
            ModelSource::NAMES,
        ),
        on_miss: fields.word(
            "on_miss",
            "What a request that was not recorded gets; default `error`, in runs `nearest`.",
            "action",
            Otherwise::NAMES,
        ),
        on_exhausted: fields.word(
            "on_exhausted",
            "What a request that was recorded less often gets; default `error`.",
            "action",
            &Otherwise::NAMES[..2],
        ),
    };
    ReplaySession { session, contract }
}

fn input(value: &mut ValueReader<'_, '_>) -> Option<Vec<String>> {
    value
        .either()
        .when(NodeKind::Scalar, |value| {
            Some(vec![value.exact_words()?.value])
        })
        .when(NodeKind::List, |value| {
            let empty = "the list of turns is empty; write what is said";
            let turns = value.some("a list of turns, each a text", empty, |value| {
                value.exact_words()
            })?;
            Some(turns.into_iter().map(|turn| turn.value).collect())
        })
        .or("a text, or a list of turns")
}

fn message(value: &mut ValueReader<'_, '_>) -> Option<Value> {
    let schema = || json!({ "type": "object" });
    value.with_schema(schema, |value| match value.any()? {
        At {
            value: map @ Tree::Map(_),
            ..
        } => Some(map.to_json()),
        other => value.reader.misplaced(other.position, "a map"),
    })
}

fn items<'d, T>(
    fields: &mut Fields<'_, 'd>,
    name: &'static str,
    about: &str,
    read: impl FnMut(&mut ValueReader<'_, 'd>) -> Option<T>,
) -> Vec<T> {
    let items = fields.field(name, about, |value| value.list("a list", read));
    items.unwrap_or_default()
}

/// A text; numbers and flags must be quoted.
fn text(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> Option<String> {
    parsed(fields, name, about, |text| Ok(text.to_owned()))
}

/// A text that is not blank.
fn words(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> Option<String> {
    let text = fields.field(name, about, |value| value.exact_words());
    text.map(|text| text.value)
}

fn parsed<T>(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    fields.field(name, about, |value| {
        let text = value.exact_text()?;
        parse(&text.value)
            .map_err(|message| value.error(message))
            .ok()
    })
}

fn tool_response(fields: &mut Fields<'_, '_>) -> Option<ToolResponse> {
    let tool = words(fields, "tool", "The tool's name.");
    if !fields.has("tool") {
        fields.error("tool", "`tool` is missing; write its name");
    }
    let response = fields.any("response", "A text, a document, or nothing.");
    let response = response.map_or(Value::Null, |node| node.value.to_json());
    let status = status(fields);
    let latency_ms = millis(fields, "latency_ms", "How long it took, milliseconds.");
    Some(ToolResponse {
        tool: tool?,
        response,
        status,
        latency_ms,
    })
}

fn exchange(fields: &mut Fields<'_, '_>) -> Option<RecordedExchange> {
    let exchange = recorded(fields)?;
    if exchange.matching.url.is_none() {
        let message = "`match` has no `url`; say which requests this answers";
        fields.error("match", message);
    }
    Some(exchange)
}

fn recorded(fields: &mut Fields<'_, '_>) -> Option<RecordedExchange> {
    let about = "The requests that it belongs to.";
    let matching = fields.block("match", about, "a map", |fields| Some(matching(fields)));
    let dialect = text(fields, "dialect", "The provider's wire format.");
    if let Some(dialect) = &dialect
        && squall_dialects::of_endpoint(dialect).is_none()
    {
        let known = squall_dialects::ALL.iter().map(|dialect| dialect.name());
        let near = did_you_mean(dialect, known);
        fields.error("dialect", format!("unknown dialect `{dialect}`{near}"));
    }
    let http = fields.whole("http", "Version of HTTP: 1 or 2.", 1..=2, "");
    let answer = answer(fields);
    if fields.is_empty() {
        let message = "this is empty; write an answer, or remove it";
        fields.reader.error(fields.position, message);
        return None;
    }
    Some(RecordedExchange {
        matching: matching.unwrap_or_default(),
        dialect,
        http2: http == Some(2),
        answer,
    })
}

fn matching(fields: &mut Fields<'_, '_>) -> Matching {
    let method = parsed(fields, "method", "Method of the request.", |text| {
        Method::from_bytes(text.as_bytes())
            .map_err(|_| format!("`{text}` is no method of HTTP; write GET, POST …"))
    });
    let url = text(fields, "url", "Its URL; `*` stands for anything.");
    let about = "Model that it asks for: a glob.";
    let model = text(fields, "model", about);
    let fingerprint = parsed(fields, "fingerprint", "Its fingerprint.", |text| {
        let number = u64::from_str_radix(text, 16).ok();
        let number = number.filter(|_| text.len() == 16);
        number.ok_or_else(|| format!("found `{text}`, expected 16 hexadecimal digits"))
    });
    let body = body(fields, ["body", "body_base64"], "Its body.");
    Matching {
        method: method.or(body.is_some().then_some(Method::POST)),
        url,
        body: body.map(|(data, _)| data),
        fingerprint,
        model,
    }
}

fn answer(fields: &mut Fields<'_, '_>) -> Answer {
    let status = status(fields);
    let headers = fields.field("headers", "Headers of the response.", |value| {
        value.pairs("a map of names and values", header)
    });
    let headers = headers.unwrap_or_default().into_iter();
    let mut headers: Vec<_> = headers.flat_map(|(_, headers)| headers).collect();
    let body = body(fields, ["body", "body_base64"], "Body of the response.");
    let stream = fields.field(
        "stream",
        "The body in pieces, each with its time.",
        |value| value.list("a list", |value| value.fields("a map", piece)),
    );
    if body.is_some() && fields.has("stream") {
        let message = "an answer has `body` or `stream`, not both; keep one of them";
        fields.error("stream", message);
    }
    let content = match (body, stream) {
        (Some((data, json)), _) => {
            let typed = headers.iter().any(|(name, _)| name == "content-type");
            if json && !typed {
                headers.push(("content-type".to_owned(), "application/json".to_owned()));
            }
            Content::Body(data)
        }
        (None, Some(pieces)) => Content::Stream(pieces),
        (None, None) => Content::default(),
    };
    let latency_ms = millis(fields, "latency_ms", "How long it took, milliseconds.");
    let about = "Whether the body was longer than what was kept of it.";
    let over_limit = fields.flag("over_limit", about).unwrap_or(false);
    let about = "Whether the response broke off.";
    let broken_off = fields.flag("broken_off", about).unwrap_or(false);
    Answer {
        status,
        headers,
        latency_ms,
        content,
        over_limit,
        broken_off,
    }
}

fn piece(fields: &mut Fields<'_, '_>) -> Option<Piece> {
    let data = body(fields, ["data", "data_base64"], "The bytes.");
    if !fields.has("data") && !fields.has("data_base64") {
        fields.error("data", "`data` is missing");
    }
    let at_ms = millis(fields, "at_ms", "When, milliseconds.");
    Some(Piece {
        at_ms,
        data: data?.0,
    })
}

fn status(fields: &mut Fields<'_, '_>) -> u16 {
    let about = "Status, 200 to 999, default 200; 0: there was no response.";
    let status = fields.whole("status", about, 0..=999, "");
    let status = status.and_then(|status| u16::try_from(status).ok());
    if matches!(status, Some(1..200)) {
        fields.misplaced(
            "status",
            "a status from 200 to 999, or 0 for no answer at all",
        );
    }
    status.unwrap_or(200)
}

/// Milliseconds, rounded to a whole number.
fn millis(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> u64 {
    let millis = fields.real(name, about, 0.0..=LONGEST_MS, " milliseconds");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    millis.map_or(0, |millis| millis.round() as u64)
}

/// A body, written as it is or in base64, and whether it was written as a document.
fn body(
    fields: &mut Fields<'_, '_>,
    [name, coded]: [&'static str; 2],
    about: &str,
) -> Option<(Data, bool)> {
    let plain = fields.any(name, about);
    let bytes = parsed(fields, coded, "The same in base64.", |text| {
        Data::of_base64(text).ok_or_else(|| format!("`{coded}` is no base64"))
    });
    if fields.has(name) && fields.has(coded) {
        let message = format!("`{name}` and `{coded}` are both there; keep one of them");
        fields.error(coded, message);
    }
    let Some(document) = plain else {
        return bytes.map(|data| (data, false));
    };
    Some(match document.value.to_json() {
        Value::String(text) => (text.into(), false),
        other => (other.to_string().into(), true),
    })
}

fn header(name: &At<String>, value: &mut ValueReader<'_, '_>) -> Option<Vec<(String, String)>> {
    if HeaderName::from_bytes(name.value.as_bytes()).is_err() && !value.reader.is_describing() {
        let message = format!("`{}` is no header's name", name.value.escape_debug());
        value.reader.error(name.position, message);
    }
    let texts = value.texts("a text or a list of texts")?;
    let headers = texts.into_iter().filter_map(|text| {
        if HeaderValue::from_bytes(text.value.as_bytes()).is_err() {
            let message = format!("`{}` cannot be a header's value", text.value.escape_debug());
            value.reader.error(text.position, message);
            return None;
        }
        Some((name.value.to_ascii_lowercase(), text.value))
    });
    Some(headers.collect())
}
