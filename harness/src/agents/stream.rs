//! Answers that come as events: what they say, put together.

use serde_json::Value;

/// The text of an event stream (`text/event-stream`), or of JSON lines. Events that are JSON give
/// their piece of the answer, others themselves; marks of the end give nothing.
pub(super) fn text(media_type: &str, body: &str) -> Option<String> {
    let pieces = match media_type {
        "text/event-stream" => events(body),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
            body.lines().map(str::to_owned).collect()
        }
        _ => return None,
    };
    let pieces = pieces
        .iter()
        .filter(|piece| !piece.is_empty() && *piece != "[DONE]");
    Some(pieces.map(|piece| said(piece)).collect::<Vec<_>>().concat())
}

/// The data of each event.
fn events(body: &str) -> Vec<String> {
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    body.split("\n\n")
        .map(|event| {
            let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
            let lines: Vec<_> = data
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect();
            lines.join("\n")
        })
        .collect()
}

/// Where pieces of an answer stand in the events of providers and of frameworks.
const PLACES: [&str; 9] = [
    "/choices/0/delta/content",
    "/choices/0/text",
    "/delta/text",
    "/delta",
    "/message/content",
    "/content",
    "/text",
    "/token",
    "/output",
];

fn said(piece: &str) -> String {
    match serde_json::from_str(piece) {
        Ok(document @ Value::Object(_)) => {
            let texts = PLACES
                .iter()
                .filter_map(|place| document.pointer(place)?.as_str());
            texts.map(str::to_owned).next().unwrap_or_default()
        }
        Ok(Value::String(text)) => text,
        Ok(_) | Err(_) => piece.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        for (media_type, body, expected) in [
            (
                "text/event-stream",
                "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\ndata: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]\n\n",
                Some("Hello"),
            ),
            (
                "text/event-stream",
                ": hi\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\ndata:c\r\n\r\n",
                Some("a\nbc"),
            ),
            (
                "text/event-stream",
                "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"x\"}}\n\n",
                Some("x"),
            ),
            (
                "application/x-ndjson",
                "{\"message\":{\"content\":\"a\"}}\n{\"message\":{\"content\":\"b\"}}\n",
                Some("ab"),
            ),
            ("application/json", "{}", None),
        ] {
            assert_eq!(text(media_type, body).as_deref(), expected, "{body}");
        }
    }
}
