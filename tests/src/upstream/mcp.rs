//! An MCP server over HTTP, in each era of the protocol.
//!
//! | path | speaks |
//! |---|---|
//! | `/2024/sse`, `/2024/messages?session_id=N` | 2024-11-05: a stream that the session begins with, and an endpoint that says 202 |
//! | `/2024/near/sse`, `/2024/near/messages?session_id=N` | the same, the endpoint named relative to the stream, as behind a prefix |
//! | `/2025/json`, `/2025/events` | 2025-03-26 to 2025-11-25: sessions; answers as JSON, or as events after two notifications of progress |
//! | `/2025/resumed` | the same; the answer to a tool call ends after an event with an id, and what it lacks comes to a GET with that id |
//! | `/2025/stateless` | the same without sessions, as JSON |
//! | `/2026/events` | 2026-07-28: no handshake, `Mcp-Method` and `Mcp-Name` checked against the body |
//!
//! Tools: `get_weather` says its `city` in text and in structure, `book` has done it, `fail` fails.
//! A session that no server has ever given out, or that was ended, is answered with 404.
//! A request with the header `x-step` gets each event only after a step of the test's.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use super::standard::{chunk, whole};
use super::{Connection, Request};

/// The sessions of one server.
#[derive(Debug, Default)]
struct Sessions {
    given: usize,
    open: HashSet<String>,
    /// Streams of 2024-11-05.
    streams: HashMap<String, Sender<String>>,
    /// What is still to be fetched, by the id of the event before it.
    unfetched: HashMap<String, String>,
}

/// A server with sessions of its own; its clones are the same server.
#[derive(Debug, Clone, Default)]
pub struct Server(Arc<Mutex<Sessions>>);

/// How a `POST` is answered.
struct Said {
    /// `None`: nothing was asked.
    messages: Option<Value>,
    session: Option<String>,
}

impl Server {
    /// Serves one connection until it ends.
    pub fn serve(&self, mut connection: Connection) {
        while let Some(request) = connection.request() {
            let path = request.target.split('?').next().unwrap_or_default();
            let goes_on = match (request.method.as_str(), path) {
                ("GET", "/2024/sse") => self.stream_of_2024(&mut connection, "/2024/messages"),
                ("GET", "/2024/near/sse") => self.stream_of_2024(&mut connection, "messages"),
                ("GET", "/2025/resumed") => self.resume(&mut connection, &request),
                ("POST", "/2024/messages" | "/2024/near/messages") => {
                    let answer = self.message_of_2024(&request);
                    connection.send(answer)
                }
                (method, "/2025/json" | "/2025/events" | "/2025/stateless" | "/2025/resumed") => {
                    self.of_2025(&mut connection, &request, method, path)
                }
                (method, "/2026/events") => of_2026(&mut connection, &request, method),
                _ => connection.send(whole("404 Not Found", "text/plain", b"Not Found")),
            };
            if !goes_on {
                return;
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().expect("no handler panicked")
    }

    fn new_session(&self) -> String {
        let mut sessions = self.sessions();
        sessions.given += 1;
        let name = format!("session-{}", sessions.given);
        sessions.open.insert(name.clone());
        name
    }

    fn stream_of_2024(&self, connection: &mut Connection, messages: &str) -> bool {
        let session = self.new_session();
        let (sender, receiver) = channel();
        self.sessions().streams.insert(session.clone(), sender);
        let endpoint = format!("event: endpoint\r\ndata: {messages}?session_id={session}\r\n\r\n");
        let mut goes_on = connection.send(STREAM_HEAD) && connection.send(chunk(&endpoint));
        while goes_on && let Ok(message) = receiver.recv() {
            goes_on = connection.send(chunk(&message));
        }
        false
    }

    fn message_of_2024(&self, request: &Request) -> Vec<u8> {
        let session = request.target.split_once("session_id=").map(|(_, it)| it);
        let stream = session.and_then(|session| self.sessions().streams.get(session).cloned());
        let Some(stream) = stream else {
            let text = b"Could not find session";
            return whole("404 Not Found", "text/plain; charset=utf-8", text);
        };
        if let Some(answer) = answers(&request.json(), false) {
            let event = format!("event: message\r\ndata: {answer}\r\n\r\n");
            // A client that has gone is answered no more.
            let _ = stream.send(event);
        }
        whole("202 Accepted", "text/plain; charset=utf-8", b"Accepted")
    }

    /// Answers a call with the beginning of a stream; the rest is to be fetched.
    fn begin_only(&self, connection: &mut Connection, asked: &Value) -> bool {
        let mut sessions = self.sessions();
        sessions.given += 1;
        let id = format!("event-{}", sessions.given);
        let answer = answers(asked, false).unwrap_or_default();
        sessions.unfetched.insert(id.clone(), answer.to_string());
        drop(sessions);
        let first = format!("id: {id}\nretry: 1\ndata: \n\n");
        connection.send(STREAM_HEAD)
            && connection.send(chunk(&first))
            && connection.send("0\r\n\r\n")
    }

    /// Answers a GET with what comes after an event.
    fn resume(&self, connection: &mut Connection, request: &Request) -> bool {
        let last = request.header("last-event-id");
        let answer = last.and_then(|id| self.sessions().unfetched.get(id).cloned());
        let Some(answer) = answer else {
            let text = "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
            return connection.send(text);
        };
        let event = format!(
            "id: {}-again\nevent: message\ndata: {answer}\n\n",
            last.unwrap_or_default()
        );
        connection.send(STREAM_HEAD)
            && connection.send(chunk(&event))
            && connection.send("0\r\n\r\n")
    }

    fn of_2025(
        &self,
        connection: &mut Connection,
        request: &Request,
        method: &str,
        path: &str,
    ) -> bool {
        let asked = request.json();
        let begins = asked["method"] == "initialize";
        let with_sessions = path != "/2025/stateless";
        let session = request.header("mcp-session-id").map(str::to_owned);
        if with_sessions && !begins && asked["method"] != "server/discover" {
            let known = session.as_ref().map(|it| self.sessions().open.contains(it));
            let refused = match known {
                Some(true) => None,
                Some(false) => Some(("404 Not Found", "Session not found")),
                None => Some(("400 Bad Request", "Bad Request: Missing session ID")),
            };
            if let Some((status, message)) = refused {
                return connection.send(refusal(status, -32600, message));
            }
        }
        match method {
            "POST" => {}
            "DELETE" => {
                let session = session.unwrap_or_default();
                self.sessions().open.remove(&session);
                return connection.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
            }
            _ => {
                let text = "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
                return connection.send(text);
            }
        }
        if path == "/2025/resumed" && asked["method"] == "tools/call" {
            return self.begin_only(connection, &asked);
        }
        let said = Said {
            messages: answers(&asked, false),
            session: (begins && with_sessions).then(|| self.new_session()),
        };
        say(connection, request, &asked, said, path.ends_with("events"))
    }
}

fn of_2026(connection: &mut Connection, request: &Request, method: &str) -> bool {
    if method != "POST" {
        let text = "HTTP/1.1 405 Method Not Allowed\r\nallow: POST\r\ncontent-length: 0\r\n\r\n";
        return connection.send(text);
    }
    let asked = request.json();
    let name = asked["params"]["name"].as_str();
    let method = asked["method"].as_str();
    if request.header("mcp-method") != method || request.header("mcp-name") != name {
        let message = "Mcp-Method or Mcp-Name does not match the body";
        return connection.send(refusal("400 Bad Request", -32020, message));
    }
    let said = Said {
        messages: answers(&asked, true),
        session: None,
    };
    say(connection, request, &asked, said, true)
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache, no-transform\r\ntransfer-encoding: chunked\r\n\r\n";

fn refusal(status: &str, code: i64, message: &str) -> Vec<u8> {
    let error = json!({ "code": code, "message": message });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    whole(status, "application/json", body.to_string().as_bytes())
}

/// Sends what was said, as JSON or as events.
fn say(
    connection: &mut Connection,
    request: &Request,
    asked: &Value,
    said: Said,
    as_events: bool,
) -> bool {
    let Some(messages) = said.messages else {
        return connection.send("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
    };
    let session = said
        .session
        .map(|session| format!("mcp-session-id: {session}\r\n"))
        .unwrap_or_default();
    if !as_events {
        let body = messages.to_string();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}\
             content-length: {length}\r\n\r\n"
        );
        return connection.send(head + &body);
    }
    let head = STREAM_HEAD.replace("\r\n\r\n", &format!("\r\n{session}\r\n"));
    let stepped = request.header("x-step").is_some();
    let mut goes_on = connection.send(head);
    for event in events(asked, &messages) {
        goes_on =
            goes_on && (!stepped || connection.wait_for_step()) && connection.send(chunk(&event));
    }
    goes_on && connection.send("0\r\n\r\n")
}

/// The events of an answer: an empty one that only has an id, a comment, two notifications of
/// progress where some were asked for, then each message.
pub fn events(asked: &Value, messages: &Value) -> Vec<String> {
    let mut events = vec![": ping\n\n".to_owned()];
    let token = &asked["params"]["_meta"]["progressToken"];
    if !token.is_null() {
        for progress in 1..=2 {
            let params = json!({ "progressToken": token, "progress": progress, "total": 2 });
            let message =
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
            events.push(format!("event: message\ndata: {message}\n\n"));
        }
    }
    let messages = match messages {
        Value::Array(messages) => messages.clone(),
        message => vec![message.clone()],
    };
    events.extend(
        messages
            .iter()
            .map(|message| format!("event: message\ndata: {message}\n\n")),
    );
    events
}

/// The answers to a message or a list of them; `None`: none is waited for.
pub fn answers(asked: &Value, typed: bool) -> Option<Value> {
    match asked {
        Value::Array(all) => {
            let answers: Vec<_> = all.iter().filter_map(|one| answer(one, typed)).collect();
            (!answers.is_empty()).then_some(Value::Array(answers))
        }
        one => answer(one, typed),
    }
}

fn answer(asked: &Value, typed: bool) -> Option<Value> {
    let id = asked.get("id").filter(|_| asked.get("method").is_some())?;
    let mut answer = match said(asked, typed) {
        Ok(mut result) => {
            if typed {
                result["resultType"] = json!("complete");
            }
            json!({ "result": result })
        }
        Err((code, message)) => json!({ "error": { "code": code, "message": message } }),
    };
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = id.clone();
    Some(answer)
}

fn said(asked: &Value, typed: bool) -> Result<Value, (i64, String)> {
    let params = &asked["params"];
    let cached = |mut result: Value| {
        if typed {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        result
    };
    match asked["method"].as_str().unwrap_or_default() {
        "server/discover" if typed => Ok(cached(json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "tests", "version": "1.0" },
        }))),
        "initialize" => Ok(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": { "listChanged": false } },
            "serverInfo": { "name": "tests", "version": "1.0" },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(cached(json!({ "tools": tools() }))),
        "tools/call" => called(params),
        method => Err((-32601, format!("Method not found: {method}"))),
    }
}

fn tools() -> Value {
    let city = json!({ "type": "string" });
    json!([
        {
            "name": "get_weather",
            "description": "The weather of a city.",
            "inputSchema": { "type": "object", "properties": { "city": city }, "required": ["city"] },
            "outputSchema": {
                "type": "object",
                "properties": { "city": { "type": "string" }, "celsius": { "type": "number" } },
                "required": ["city", "celsius"],
            },
        },
        {
            "name": "book",
            "description": "Books a journey.",
            "inputSchema": { "type": "object", "properties": { "to": { "type": "string" } } },
        },
        { "name": "fail", "inputSchema": { "type": "object", "properties": {} } },
    ])
}

fn called(params: &Value) -> Result<Value, (i64, String)> {
    let text = |text: String, is_error: bool| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "content": content, "isError": is_error })
    };
    match params["name"].as_str().unwrap_or_default() {
        "get_weather" => {
            let weather = json!({ "city": params["arguments"]["city"], "celsius": 21.5 });
            let mut result = text(weather.to_string(), false);
            result["structuredContent"] = weather;
            Ok(result)
        }
        "book" => Ok(text("Booked, as you asked.".to_owned(), false)),
        "fail" => Ok(text(
            "Error executing tool fail: it always does".to_owned(),
            true,
        )),
        other => Err((-32602, format!("Unknown tool: {other}"))),
    }
}
