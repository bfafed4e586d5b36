//! The world of the agents in `tests/agents`: a model that wishes tools and words what they found, a search,
//! a shop, and whoever else is written to. Told apart by the host that is asked for.

use serde_json::{Value, json};

use super::standard::{chunk, whole};
use super::{Connection, Request, chat};

/// Hosts of that world.
pub const HOSTS: [&str; 5] = [
    "model.test",
    "search.test",
    "orders.test",
    "mail.test",
    "telemetry.test",
];

/// What the search finds.
pub const FOUND: &str = "Kiel: rain until noon, then clear.";

/// Serves one connection until it ends.
pub fn serve(mut connection: Connection) {
    while let Some(request) = connection.request() {
        let host = request.header("host").unwrap_or_default();
        let is_there = match host.split(':').next().unwrap_or_default() {
            "model.test" => model(&mut connection, &request),
            _ if request.target == "/api/chat" => judge(&mut connection, &request),
            "search.test" => {
                let found = json!({ "results": [{ "title": "Weather", "text": FOUND }] });
                answer(&mut connection, "200 OK", &found)
            }
            "orders.test" if request.method == "POST" => {
                let placed = json!({ "status": "placed", "order": 7 });
                answer(&mut connection, "201 Created", &placed)
            }
            _ => answer(&mut connection, "200 OK", &json!({ "ok": true })),
        };
        if !is_there {
            return;
        }
    }
}

fn answer(connection: &mut Connection, status: &str, document: &Value) -> bool {
    let body = document.to_string();
    connection.send(whole(status, "application/json", body.as_bytes()))
}

/// Ollama, as a judge that likes no insults.
fn judge(connection: &mut Connection, request: &Request) -> bool {
    let is_rude = String::from_utf8_lossy(&request.body).contains("fool");
    let (score, reason) = if is_rude {
        (0.1, "it insults")
    } else {
        (0.9, "it is polite")
    };
    let said = json!({ "score": score, "reason": reason }).to_string();
    answer(
        connection,
        "200 OK",
        &json!({ "message": { "content": said } }),
    )
}

/// Searches first; orders where that is wished and it rains; then says what came of it.
fn model(connection: &mut Connection, request: &Request) -> bool {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let messages = asked["messages"].as_array().cloned().unwrap_or_default();
    let result = |id: &str| {
        let results = messages.iter().filter(|one| one["tool_call_id"] == id);
        results
            .filter_map(|one| one["content"].as_str())
            .next_back()
    };
    let wishes_order = messages.iter().any(|one| {
        one["role"] == "user"
            && one["content"]
                .as_str()
                .is_some_and(|text| text.contains("Order"))
    });
    let deltas = match (result("call_search"), result("call_order")) {
        (None, _) if asked["tools"].is_null() => words("Some say that it may rain."),
        (None, _) => wish(
            "I will look that up for you now.",
            "search",
            "weather in Kiel",
        ),
        (Some(found), None) if wishes_order && found.contains("rain") => wish(
            "It rains, so I will order one for you.",
            "order",
            "umbrella",
        ),
        (Some(found), ordered) => said(found, ordered),
    };
    let finish = if deltas.iter().any(|delta| delta.get("tool_calls").is_some()) {
        "tool_calls"
    } else {
        "stop"
    };
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let events = chat::framed(deltas, finish);
    connection.send(head)
        && events.iter().all(|event| connection.send(chunk(event)))
        && connection.send("0\r\n\r\n")
}

fn words(text: &str) -> Vec<Value> {
    let words = text.split_inclusive(' ');
    words.map(|word| json!({ "content": word })).collect()
}

fn wish(text: &str, tool: &str, argument: &str) -> Vec<Value> {
    let arguments = json!({ "text": argument }).to_string();
    let function = json!({ "name": tool, "arguments": arguments });
    let call = json!({ "index": 0, "id": format!("call_{tool}"), "type": "function", "function": function });
    let mut deltas = words(text);
    deltas.push(json!({ "tool_calls": [call] }));
    deltas
}

fn said(found: &str, ordered: Option<&str>) -> Vec<Value> {
    let mut text = if found.contains("rain") {
        "The weather in Kiel: rain until noon, then clear.".to_owned()
    } else {
        "The weather in Kiel is unavailable right now.".to_owned()
    };
    match ordered {
        Some(told) if told.contains("placed") => text.push_str(" Your umbrella is ordered."),
        Some(_) => text.push_str(" Your umbrella could not be ordered."),
        None => {}
    }
    words(&text)
}
