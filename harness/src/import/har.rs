//! HTTP archives: HAR 1.2 of browsers, proxies and Squall.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use squall_journal::tape::har::{BASE64, BROKEN_OFF, CUT};

use super::http::{HttpExchange, HttpImport, HttpMessage, status};
use super::{ImportOptions, Imported, words};

pub(super) fn read(archive: &Value, options: ImportOptions<'_>) -> Result<Imported, String> {
    let log = &archive["log"];
    let entries = log["entries"].as_array();
    let entries = entries.ok_or("it is not an HTTP archive: it has no `log.entries`")?;
    let creator = words(&log["creator"], "name").unwrap_or("an unknown tool");
    let mut import = HttpImport::new(format!("HAR of {creator}"), options);
    for entry in entries {
        let exchange = exchange(entry);
        let content = &entry["response"]["content"];
        let has_body = content["size"].as_i64().is_some_and(|size| size > 0);
        if has_body && content.get("text").is_none() {
            import.leave_out(&exchange, "the archive does not have its response's body");
        } else {
            import.add(&exchange);
        }
    }
    let first = entries
        .first()
        .and_then(|entry| words(entry, "startedDateTime"));
    let title = log
        .pointer("/pages/0")
        .and_then(|page| words(page, "title"));
    Ok(import.finish(first, title))
}

fn exchange(entry: &Value) -> HttpExchange {
    let (request, response) = (&entry["request"], &entry["response"]);
    let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
    let version = text("httpVersion").to_ascii_lowercase();
    let post = &request["postData"];
    let comment = words(response, "comment").unwrap_or_default();
    let content = &response["content"];
    let is_coded = |of: &Value| {
        let comment = words(of, "comment").unwrap_or_default();
        of["encoding"] == "base64" || comment.contains(BASE64)
    };
    let body = post["text"].as_str().map(str::to_owned);
    let events = content["_stream"].as_array().into_iter().flatten();
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    HttpExchange {
        method: text("method"),
        url: text("url"),
        http2: version == "h2" || version.starts_with("http/2"),
        request: message(request, body.or_else(|| form(post)), is_coded(post)),
        response: message(response, words_of(content), is_coded(content)),
        events: events
            .filter_map(|event| Some((event["at_ms"].as_u64()?, number(&event["end"])?)))
            .collect(),
        status: status(&response["status"]),
        latency_ms: millis(&entry["timings"]["wait"]),
        over_limit: comment.contains(CUT),
        broken_off: comment.contains(BROKEN_OFF),
    }
}

fn words_of(content: &Value) -> Option<String> {
    content["text"].as_str().map(str::to_owned)
}

fn message(message: &Value, body: Option<String>, is_coded: bool) -> HttpMessage {
    let headers = message["headers"].as_array().into_iter().flatten();
    let pair = |header: &Value| {
        let text = |name: &str| header[name].as_str().map(str::to_owned);
        Some((text("name")?, text("value")?))
    };
    let body = body.unwrap_or_default();
    let decoded = is_coded
        .then(|| STANDARD.decode(body.trim()).ok())
        .flatten();
    HttpMessage {
        headers: headers.filter_map(pair).collect(),
        is_text: decoded.is_none(),
        body: decoded.unwrap_or_else(|| body.into_bytes()),
    }
}

/// The body of a form that is listed by parameters only.
fn form(post: &Value) -> Option<String> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for parameter in post["params"].as_array()? {
        form.append_pair(
            parameter["name"].as_str()?,
            parameter["value"].as_str().unwrap_or_default(),
        );
    }
    Some(form.finish())
}

/// Whole milliseconds, at most a day; −1 means unknown.
fn millis(value: &Value) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    let whole = |millis: f64| millis.clamp(0.0, 86_400_000.0).round() as u64;
    value.as_f64().map_or(0, whole)
}
