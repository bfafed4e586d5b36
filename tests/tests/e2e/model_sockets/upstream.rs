//! A simulated model that is called over a WebSocket, or over HTTP.
//!
//! It sends the events of [`responses`], each in a text message, compressed if the agent offers
//! that. Words in the name of the model change what it does:
//!
//! | in the name | |
//! |---|---|
//! | `tools` | calls tools |
//! | `limited` | an `error` event with status 429 |
//! | `bye` | Close 1012 after the response |
//! | `reset` | an RST after the first event |
//! | `hang` | nothing after the first event |
//! | `pair` | waits for another call, and sends both responses in turn |

use serde_json::{Value, json};
use squall_tests::upstream::standard::websocket_accept;
use squall_tests::upstream::{Connection, Request, responses, standard};

use super::frames::{End, Message};

/// What its tool answers to a GET.
const TOOL: &[u8] = br#"{"forecast":"sunny"}"#;

/// Serves a connection until it ends.
pub(super) fn serve(mut connection: Connection) {
    while let Some(request) = connection.request() {
        if request.header("upgrade").is_some() {
            let end = accept(&mut connection, &request);
            return talk(connection, end);
        }
        let sent = match request.method.as_str() {
            "GET" => connection.send(standard::whole("200 OK", "application/json", TOOL)),
            _ => responses::answer(&mut connection, &request),
        };
        if !sent {
            return;
        }
    }
}

/// Accepts an upgrade.
pub(super) fn accept(connection: &mut Connection, request: &Request) -> End {
    let key = request.header("sec-websocket-key").unwrap_or_default();
    let accept = websocket_accept(key);
    let offered = request.header("sec-websocket-extensions");
    let compresses = offered.is_some_and(|value| value.contains("permessage-deflate"));
    let extension = if compresses {
        "Sec-WebSocket-Extensions: permessage-deflate\r\n"
    } else {
        ""
    };
    connection.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{extension}\r\n"
    ));
    End::new(None, compresses)
}

fn talk(mut connection: Connection, mut end: End) {
    let mut waiting: Option<Vec<Value>> = None;
    loop {
        let bytes = connection.receive();
        if bytes.is_empty() {
            return;
        }
        end.push(&bytes);
        while let Some(message) = end.next() {
            match message {
                Message::Text(text) => {
                    let call: Value = serde_json::from_str(&text).unwrap_or_default();
                    let model = call["model"].as_str().unwrap_or_default();
                    let events = events(&call, model);
                    let events = match (model.contains("pair"), waiting.take()) {
                        (true, None) => {
                            waiting = Some(events);
                            continue;
                        }
                        (true, Some(other)) => in_turn(other, events),
                        (false, _) => events,
                    };
                    let breaks = model.contains("reset") || model.contains("hang");
                    for event in events.iter().take(if breaks { 1 } else { events.len() }) {
                        connection.send(end.text(&event.to_string()));
                    }
                    if model.contains("reset") {
                        return connection.reset();
                    }
                    if model.contains("bye") {
                        connection.send(end.close(1012));
                        return;
                    }
                }
                Message::Close(code) => {
                    connection.send(end.close(code));
                    return;
                }
                // The tests of frames have an upstream of their own.
                Message::Other(..) => {}
            }
        }
    }
}

/// The events of a response to a `response.create`, in its lane.
fn events(call: &Value, model: &str) -> Vec<Value> {
    if call["type"] != "response.create" {
        return vec![json!({ "type": "echo", "of": call })];
    }
    let mut call = call.clone();
    if model.contains("tools") {
        call["tools"] = json!([{}]);
    }
    let mut events = responses::events(&call);
    if model.contains("limited") {
        let error =
            json!({ "type": "requests", "code": "rate_limit_exceeded", "message": "Slow down." });
        let headers = json!({ "retry-after": "3" });
        events =
            vec![json!({ "type": "error", "status": 429, "error": error, "headers": headers })];
    }
    for event in &mut events {
        if call["stream_id"].is_string() {
            event["stream_id"] = call["stream_id"].clone();
        }
    }
    events
}

fn in_turn(one: Vec<Value>, other: Vec<Value>) -> Vec<Value> {
    one.into_iter()
        .zip(other)
        .flat_map(|(one, other)| [one, other])
        .collect()
}
