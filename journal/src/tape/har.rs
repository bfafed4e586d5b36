//! Recordings as HTTP archives, HAR 1.2 (<http://www.softwareishard.com/blog/har-12-spec/>).

use serde_json::{Value, json};

use super::content::{Content, Data};
use super::recorded::Recorded;
use super::session::Answer;
use crate::timestamp;

/// The archive of a recording, its exchanges in the order in which they began. `comment` says what
/// the reader must know of the whole.
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
    let wait = recorded
        .answer
        .as_ref()
        .map_or(recorded.duration_ms, |answer| {
            answer.latency_ms.min(recorded.duration_ms)
        });
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
            notes.push("text is base64");
        }
        if request.over_limit {
            notes.push("cut: the body was longer than what is kept of one");
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
        // Where each event ends in the text, and when it came.
        let mut end = 0;
        let ends = pieces.iter().map(|piece| {
            end += piece.data.0.len();
            json!({ "at_ms": piece.at_ms, "end": end })
        });
        content["_stream"] = ends.collect();
    }
    let reason = http::StatusCode::from_u16(answer.status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or_default();
    let location = answer.headers.iter().find(|(name, _)| name == "location");
    let mut document = json!({
        "status": answer.status,
        "statusText": reason,
        "httpVersion": recorded.version,
        "cookies": [],
        "headers": pairs(&answer.headers),
        "content": content,
        "redirectURL": location.map_or("", |(_, value)| value.as_str()),
        "headersSize": -1,
        "bodySize": recorded.response_bytes,
    });
    let comment = match (answer.status, answer.over_limit, answer.broken_off) {
        (0, _, _) => Some("there was no answer"),
        (_, true, _) => Some("cut: the body was longer than what is kept of one"),
        (_, _, true) => Some("the connection broke before the body's end"),
        (_, false, false) => None,
    };
    if let Some(comment) = comment {
        document["comment"] = json!(comment);
    }
    document
}

fn text(data: &Data) -> String {
    data.as_text()
        .map_or_else(|| data.to_base64(), str::to_owned)
}

fn pairs(headers: &[(String, String)]) -> Value {
    headers
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}

fn media_type(headers: &[(String, String)]) -> &str {
    let found = headers.iter().find(|(name, _)| name == "content-type");
    found.map_or("x-unknown", |(_, value)| value.as_str())
}

fn query(url: &str) -> Value {
    let Some((_, query)) = url.split_once('?') else {
        return json!([]);
    };
    let decoded = |part: &str| {
        percent_encoding::percent_decode_str(&part.replace('+', " "))
            .decode_utf8_lossy()
            .into_owned()
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            json!({ "name": decoded(name), "value": decoded(value) })
        })
        .collect()
}
