//! The world of the agents in `tests/agents`: a model that wishes tools and words what they found, a search,
//! a shop, and whoever else is written to. Told apart by the host that is asked for. The model speaks as OpenAI's
//! chats and as Anthropic's messages.

use serde_json::{Value, json};

use super::standard::{streamed, whole};
use super::{Connection, Request, chat, messages};

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

/// What the model says in its turn.
enum Turn {
    /// Words, and no more.
    Words(String),
    /// Words, and a tool that it wishes called with one argument, `text`.
    Wish {
        words: &'static str,
        tool: &'static str,
        argument: &'static str,
    },
}

/// What the model was told, whatever the dialect.
struct Talk {
    offers_tools: bool,
    wishes_order: bool,
    /// Results of tools, with the id of their call.
    results: Vec<(String, String)>,
}

impl Talk {
    fn of(asked: &Value) -> Self {
        let mut talk = Self {
            offers_tools: asked["tools"].is_array(),
            wishes_order: false,
            results: Vec::new(),
        };
        for message in asked["messages"].as_array().into_iter().flatten() {
            talk.hear(message);
            for block in message["content"].as_array().into_iter().flatten() {
                talk.hear(block);
            }
        }
        talk
    }

    fn hear(&mut self, said: &Value) {
        let text = |name: &str| said[name].as_str().map(str::to_owned);
        let text_of_user = match said["role"].as_str() {
            Some("user") => text("content"),
            _ => text("text"),
        };
        self.wishes_order |= text_of_user.is_some_and(|text| text.contains("Order an umbrella"));
        let call = text("tool_call_id").or_else(|| text("tool_use_id"));
        self.results.extend(call.zip(text("content")));
    }

    fn result(&self, id: &str) -> Option<&str> {
        let of_it = self.results.iter().rev().find(|(call, _)| call == id);
        of_it.map(|(_, content)| content.as_str())
    }

    /// Searches first, and again where it asked for nonsense; orders where that is wished and it rains; then
    /// says what came of it.
    fn turn(&self) -> Turn {
        match (self.result("call_search"), self.result("call_order")) {
            (None, _) if !self.offers_tools => Turn::Words("Some say that it may rain.".to_owned()),
            (None, _) => SEARCHES,
            (Some(found), _) if found.contains("argument") => SEARCHES,
            (Some(found), None) if self.wishes_order && found.contains("rain") => Turn::Wish {
                words: "It rains, so I will order one for you.",
                tool: "order",
                argument: "umbrella",
            },
            (Some(found), ordered) => Turn::Words(said(found, ordered)),
        }
    }
}

const SEARCHES: Turn = Turn::Wish {
    words: "I will look that up for you now.",
    tool: "search",
    argument: "weather in Kiel",
};

fn model(connection: &mut Connection, request: &Request) -> bool {
    let asked = request.json();
    let turn = Talk::of(&asked).turn();
    let events = match request.target.as_str() {
        "/v1/messages" => messages::named(&as_message(&asked, &turn)),
        _ => as_chat(&turn),
    };
    streamed(connection, chat::SSE, events)
}

/// Events of a chat.
fn as_chat(turn: &Turn) -> Vec<String> {
    match turn {
        Turn::Words(text) => chat::framed(words(text), "stop"),
        Turn::Wish {
            words: text,
            tool,
            argument,
        } => {
            let arguments = json!({ "text": argument }).to_string();
            let function = json!({ "name": tool, "arguments": arguments });
            let call = json!({ "index": 0, "id": format!("call_{tool}"), "type": "function", "function": function });
            let mut deltas = words(text);
            deltas.push(json!({ "tool_calls": [call] }));
            chat::framed(deltas, "tool_calls")
        }
    }
}

fn words(text: &str) -> Vec<Value> {
    let words = text.split_inclusive(' ');
    words.map(|word| json!({ "content": word })).collect()
}

/// Events of a message.
fn as_message(asked: &Value, turn: &Turn) -> Vec<Value> {
    let (text, call, reason) = match turn {
        Turn::Words(text) => (text.as_str(), None, "end_turn"),
        Turn::Wish {
            words,
            tool,
            argument,
        } => (*words, Some((tool, argument)), "tool_use"),
    };
    let delta = |index: u64, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let start = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let mut head = messages::head(asked);
    head["usage"]["input_tokens"] = json!(asked.to_string().split(' ').count());
    let mut events = vec![
        json!({ "type": "message_start", "message": head }),
        start(0, json!({ "type": "text", "text": "" })),
    ];
    let words = text.split_inclusive(' ');
    events.extend(words.map(|word| delta(0, json!({ "type": "text_delta", "text": word }))));
    events.push(stop(0));
    if let Some((tool, argument)) = call {
        let block =
            json!({ "type": "tool_use", "id": format!("call_{tool}"), "name": tool, "input": {} });
        let arguments = json!({ "text": argument }).to_string();
        let arguments = json!({ "type": "input_json_delta", "partial_json": arguments });
        events.extend([start(1, block), delta(1, arguments), stop(1)]);
    }
    let end = json!({ "stop_reason": reason, "stop_sequence": null });
    let tokens = text.split(' ').count();
    events.push(
        json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": tokens } }),
    );
    events.push(json!({ "type": "message_stop" }));
    events
}

fn said(found: &str, ordered: Option<&str>) -> String {
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
    text
}
