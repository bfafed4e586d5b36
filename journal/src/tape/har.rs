//! Recordings as HTTP archives, HAR 1.2 (<http://www.softwareishard.com/blog/har-12-spec/>).

use serde_json::{Value, json};

use super::content::{Content, Data};
use super::recorded::Recorded;
use super::session::{Answer, header};
use crate::timestamp;

/// Comment of a request body in base64.
pub const BASE64: &str = "text is base64";

/// Comment of a body that was too long.
pub const CUT: &str = "cut: the body was longer than what is kept of one";

/// Comment of a response that was aborted.
pub const BROKEN_OFF: &str = "the connection broke before the body's end";

/// The archive of a recording, its exchanges in order of their start. `comment` is a remark about the whole
/// archive.
pub fn document(version: &str, comment: Option<&str>, recorded: &[Recorded]) -> Value {
    let mut log = json!({
        "version": "1.2",
        "creator": { "name": "squall", "version": version },
        "pages": [],
        "entries": recorded.iter().map(entry).collect::<Vec<_>>(),
    });
    if let Some(comment) = comment {
        log["comment"] = json!(comment);
    }
    json!({ "log": log })
}

fn entry(recorded: &Recorded) -> Value {
    let latency = recorded.answer.as_ref().map(|answer| answer.latency_ms);
    let wait = latency.map_or(recorded.duration_ms, |it| it.min(recorded.duration_ms));
    let receive = recorded.duration_ms - wait;
    json!({
        "startedDateTime": timestamp::rfc3339(recorded.started_ms),
        "time": recorded.duration_ms,
        "request": request(recorded),
        "response": response(recorded),
        "cache": {},
        "timings": { "send": 0, "wait": wait, "receive": receive },
        "_squall": {
            "exchange": recorded.id,
            "scope": recorded.scope,
            "kind": recorded.kind.as_str(),
            "dialect": recorded.dialect,
            "outcome": recorded.outcome.as_str(),
            "fingerprint": format!("{:016x}", recorded.fingerprint),
            "faults": recorded.faults,
        },
    })
}

fn request(recorded: &Recorded) -> Value {
    let request = &recorded.request;
    let mut document = json!({
        "method": request.method,
        "url": request.url,
        "httpVersion": recorded.version,
        "cookies": [],
        "headers": pairs(&request.headers),
        "queryString": query(&request.url),
        "headersSize": -1,
        "bodySize": request.bytes,
    });
    if !request.body.0.is_empty() {
        let mut data = json!({
            "mimeType": media_type(&request.headers),
            "text": text(&request.body),
        });
        let mut notes = Vec::new();
        if request.body.as_text().is_none() {
            notes.push(BASE64);
        }
        if request.over_limit {
            notes.push(CUT);
        }
        if !notes.is_empty() {
            data["comment"] = json!(notes.join("; "));
        }
        document["postData"] = data;
    }
    document
}

fn response(recorded: &Recorded) -> Value {
    let none = Answer::default();
    let answer = recorded.answer.as_ref().unwrap_or(&none);
    let whole = Data(answer.content.whole());
    let mut content = json!({
        "size": whole.0.len(),
        "mimeType": media_type(&answer.headers),
    });
    if !whole.0.is_empty() {
        content["text"] = json!(text(&whole));
        if whole.as_text().is_none() {
            content["encoding"] = json!("base64");
        }
    }
    if let Content::Stream(pieces) = &answer.content {
        // End of each event in the text, and when it arrived.
        let mut end = 0;
        let ends = pieces.iter().map(|piece| {
            end += piece.data.0.len();
            json!({ "at_ms": piece.at_ms, "end": end })
        });
        content["_stream"] = ends.collect();
    }
    let status = http::StatusCode::from_u16(answer.status).ok();
    let reason = status.and_then(|status| status.canonical_reason());
    let mut document = json!({
        "status": answer.status,
        "statusText": reason.unwrap_or_default(),
        "httpVersion": recorded.version,
        "cookies": [],
        "headers": pairs(&answer.headers),
        "content": content,
        "redirectURL": header(&answer.headers, "location").unwrap_or_default(),
        "headersSize": -1,
        "bodySize": recorded.response_bytes,
    });
    let comment = match (answer.status, answer.over_limit, answer.broken_off) {
        (0, _, _) => Some("there was no answer"),
        (_, true, _) => Some(CUT),
        (_, _, true) => Some(BROKEN_OFF),
        (_, false, false) => None,
    };
    if let Some(comment) = comment {
        document["comment"] = json!(comment);
    }
    document
}

fn text(data: &Data) -> String {
    (data.as_text()).map_or_else(|| data.to_base64(), str::to_owned)
}

fn pair(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

fn pairs(headers: &[(String, String)]) -> Value {
    let headers = headers.iter();
    headers.map(|(name, value)| pair(name, value)).collect()
}

fn media_type(headers: &[(String, String)]) -> &str {
    header(headers, "content-type").unwrap_or("x-unknown")
}

fn query(url: &str) -> Value {
    let (_, query) = url.split_once('?').unwrap_or_default();
    let decoded = |part: &str| {
        let part = part.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&part).decode_utf8_lossy();
        decoded.into_owned()
    };
    let pairs = query.split('&').filter(|it| !it.is_empty());
    let parameters = pairs.map(|it| it.split_once('=').unwrap_or((it, "")));
    parameters
        .map(|(name, value)| pair(&decoded(name), &decoded(value)))
        .collect()
}
