//! The same script of model events over an event stream and over frames, under every mode: the agent
//! gets the same, and the journal records the same.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use squall_tests::upstream::{Connection, standard};
use squall_tests::{End as Ending, Path, Stage};

use super::frames::Message;
use super::{MODES, Socket, TARGET, ends, upstream};

/// What a model sends, in pieces.
#[derive(Debug, Clone)]
enum Item {
    Text(Vec<String>),
    Call(Vec<String>),
    CustomCall(Vec<String>),
}

/// How its response ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Last {
    Completed,
    Incomplete,
    Failed,
    /// An error takes the place of the response.
    Limited,
    /// The connection ends before the response does.
    Nothing,
}

#[derive(Debug, Clone)]
struct Case {
    items: Vec<Item>,
    tokens: [u32; 2],
    last: Last,
    /// The result of a tool, in the request.
    result: String,
    seed: u64,
    /// Parameters of modes: tokens before the fault, and a number of milliseconds or seconds.
    after: u32,
    wait: u32,
    probability: f64,
}

fn pieces(text: &'static str) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(text, 1..6)
}

fn case() -> impl Strategy<Value = Case> {
    let item = prop_oneof![
        3 => pieces("[a-zé\" \\\\\n]{1,12}").prop_map(Item::Text),
        1 => (pieces("[a-z ]{1,8}"), any::<u8>()).prop_map(|(words, number)| {
            let input = json!({ "city": words.concat(), "days": number }).to_string();
            Item::Call(cut(&input, usize::from(number % 7) + 1))
        }),
        1 => pieces("[a-z -]{1,8}").prop_map(Item::CustomCall),
    ];
    let last = prop_oneof![
        5 => Just(Last::Completed),
        1 => Just(Last::Incomplete),
        1 => Just(Last::Failed),
        1 => Just(Last::Limited),
        1 => Just(Last::Nothing),
    ];
    (
        proptest::collection::vec(item, 0..4),
        any::<[u16; 2]>(),
        last,
        "[a-z .]{4,40}",
        0..u64::from(u32::MAX),
        1..8_u32,
        1..20_u32,
        prop_oneof![2 => Just(1.0), 1 => Just(0.5)],
    )
        .prop_map(
            |(items, tokens, last, result, seed, after, wait, probability)| Case {
                items,
                tokens: tokens.map(u32::from),
                last,
                result,
                seed,
                after,
                wait,
                probability,
            },
        )
}

fn cut(text: &str, length: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(length).map(String::from_iter).collect()
}

impl Case {
    /// The events of the response.
    fn events(&self, model: &Value) -> Vec<Value> {
        let response = |status: &str, output: &[Value]| {
            let [input, output_tokens] = self.tokens;
            let usage = json!({
                "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
                "output_tokens": output_tokens, "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": input + output_tokens,
            });
            let reason = json!({ "reason": "max_output_tokens" });
            let error = json!({ "code": "server_error", "message": "The model failed." });
            json!({
                "id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": status,
                "error": if status == "failed" { error } else { Value::Null },
                "incomplete_details": if status == "incomplete" { reason } else { Value::Null },
                "model": model, "output": output, "parallel_tool_calls": true,
                "tool_choice": "auto", "tools": [],
                "usage": if status == "in_progress" { Value::Null } else { usage },
            })
        };
        let begun = response("in_progress", &[]);
        let mut events = vec![json!({ "type": "response.created", "response": begun })];
        let mut output = Vec::new();
        for (place, item) in self.items.iter().enumerate() {
            let of_item = item.events(place);
            output.extend(of_item.last().map(|done| done["item"].clone()));
            events.extend(of_item);
        }
        let status = match self.last {
            Last::Completed => Some("completed"),
            Last::Incomplete => Some("incomplete"),
            Last::Failed => Some("failed"),
            Last::Limited | Last::Nothing => None,
        };
        events.extend(status.map(|status| {
            let response = response(status, &output);
            json!({ "type": format!("response.{status}"), "response": response })
        }));
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = json!(number);
        }
        events
    }

    fn rules(&self) -> Vec<Value> {
        let (after, wait) = (self.after, self.wait);
        let rule = |(mode, ..): &(&str, &str, &str)| {
            let mut rule = match *mode {
                "timeout" => json!({ "delay_ms": wait }),
                "truncated_response" => json!({ "max_tokens": after }),
                "rate_limit" => json!({ "retry_after": wait }),
                "response_drift" if wait % 2 == 0 => json!({ "drift_type": "verbosity_shift" }),
                "slow_stream" => json!({ "ttft_ms": wait, "tokens_per_second": 500 }),
                "stream_stall" => json!({ "after_tokens": after, "delay_ms": wait }),
                "stream_cut" | "stream_error" => json!({ "after_tokens": after }),
                _ => json!({}),
            };
            rule["mode"] = json!(mode);
            rule["model"] = json!(mode);
            rule["probability"] = json!(self.probability);
            rule
        };
        MODES.iter().map(rule).collect()
    }

    /// The members of a request, however it is carried.
    fn request(&self, model: &str) -> Value {
        json!({
            "model": model,
            "input": [
                { "role": "user", "content": "Say something." },
                { "type": "function_call", "call_id": "call_0", "name": "clock", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "call_0", "output": self.result },
            ],
            "tools": [{ "type": "function", "name": "weather", "parameters": { "type": "object" } }],
        })
    }
}

impl Item {
    fn events(&self, place: usize) -> Vec<Value> {
        let id = format!("item_{place}");
        let (kind, pieces) = match self {
            Self::Text(pieces) => ("output_text", pieces),
            Self::Call(pieces) => ("function_call_arguments", pieces),
            Self::CustomCall(pieces) => ("custom_tool_call_input", pieces),
        };
        let item = |status: &str, whole: &str| match self {
            Self::Text(_) => {
                let part = json!({ "type": "output_text", "text": whole, "annotations": [] });
                let content = if whole.is_empty() {
                    json!([])
                } else {
                    json!([part])
                };
                json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content })
            }
            Self::Call(_) => json!({
                "id": id, "type": "function_call", "status": status,
                "call_id": format!("call_{place}"), "name": "weather", "arguments": whole,
            }),
            Self::CustomCall(_) => json!({
                "id": id, "type": "custom_tool_call", "status": status,
                "call_id": format!("call_{place}"), "name": "shell", "input": whole,
            }),
        };
        let whole = pieces.concat();
        let mut events = vec![
            json!({ "type": "response.output_item.added", "output_index": place, "item": item("in_progress", "") }),
        ];
        let of_text = |event: &str, part: &str| {
            let part = json!({ "type": "output_text", "text": part, "annotations": [] });
            json!({ "type": format!("response.content_part.{event}"), "item_id": id,
                "output_index": place, "content_index": 0, "part": part })
        };
        let is_text = matches!(self, Self::Text(_));
        if is_text {
            events.push(of_text("added", ""));
        }
        for piece in pieces {
            let mut delta = json!({ "type": format!("response.{kind}.delta"), "item_id": id,
                "output_index": place, "delta": piece });
            if is_text {
                delta["content_index"] = json!(0);
            }
            events.push(delta);
        }
        let mut done = json!({ "type": format!("response.{kind}.done"), "item_id": id, "output_index": place });
        let member = match self {
            Self::Text(_) => "text",
            Self::Call(_) => "arguments",
            Self::CustomCall(_) => "input",
        };
        done[member] = json!(whole);
        if is_text {
            done["content_index"] = json!(0);
        }
        events.push(done);
        if is_text {
            events.push(of_text("done", &whole));
        }
        events.push(json!({ "type": "response.output_item.done", "output_index": place, "item": item("completed", &whole) }));
        events
    }
}

const LIMITED: &str =
    r#"{"type":"requests","code":"rate_limit_exceeded","message":"Slow down.","param":null}"#;

/// Sends a script over what the agent opens; requests that arrived, with their carrier.
fn serve(mut connection: Connection, script: &Mutex<Option<Case>>, arrived: &Mutex<Vec<Value>>) {
    let arrive = |mut request: Value| {
        let script = script.lock().unwrap().clone().unwrap();
        let events = script.events(&request["model"]);
        for of_carrier in ["type", "stream"] {
            request.as_object_mut().unwrap().remove(of_carrier);
        }
        arrived.lock().unwrap().push(request);
        (script.last, events)
    };
    while let Some(request) = connection.request() {
        if request.header("upgrade").is_some() {
            let mut end = upstream::accept(&mut connection, &request);
            loop {
                let message = loop {
                    if let Some(message) = end.next() {
                        break message;
                    }
                    let bytes = connection.receive();
                    if bytes.is_empty() {
                        return;
                    }
                    end.push(&bytes);
                };
                let Message::Text(text) = message else {
                    connection.send(end.close(1000));
                    return;
                };
                let (last, mut events) = arrive(serde_json::from_str(&text).unwrap());
                if last == Last::Limited {
                    let error: Value = serde_json::from_str(LIMITED).unwrap();
                    events = vec![json!({ "type": "error", "status": 429, "error": error,
                        "headers": { "retry-after": "3" } })];
                }
                for event in events {
                    connection.send(end.text(&event.to_string()));
                }
                if last == Last::Nothing {
                    return;
                }
            }
        }
        let (last, events) = arrive(request.json());
        if last == Last::Limited {
            let body = format!(r#"{{"error":{LIMITED}}}"#);
            let length = body.len();
            connection.send(format!(
                "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 3\r\n\
                 content-length: {length}\r\n\r\n{body}"
            ));
            continue;
        }
        connection.send(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        for event in events {
            let kind = event["type"].as_str().unwrap_or_default();
            let event = format!("event: {kind}\ndata: {event}\n\n");
            connection.send(standard::chunk(&event));
        }
        if last == Last::Nothing {
            return;
        }
        connection.send("0\r\n\r\n");
    }
}

/// What the agent gets.
#[derive(Debug, PartialEq)]
struct View {
    /// Of an error; else 0.
    status: u64,
    retry_after: Option<String>,
    events: Vec<Value>,
    /// How the connection ended inside the response.
    broke: Option<Ending>,
}

fn over_http(stage: &Stage, call: &Value) -> View {
    let mut call = call.clone();
    call["stream"] = json!(true);
    let mut wire = stage.open(Path::Reverse);
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer sk-test"),
    ];
    wire.request("POST", TARGET, &headers, call.to_string().as_bytes());
    let response = wire.response();
    let retry_after = response.header("retry-after").map(str::to_owned);
    let text = response.text();
    let is_stream = response.header("content-type") == Some("text/event-stream");
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text));
    let mut view = View {
        status: 0,
        retry_after,
        events: Vec::new(),
        broke: response.broke,
    };
    if is_stream {
        let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        view.events = lines.map(json).collect();
    } else if response.status >= 400 {
        view.status = response.status.into();
        view.events = vec![response.json()["error"].clone()];
    } else if !text.is_empty() {
        view.events = vec![json(&text)];
    }
    view
}

/// `ended`: waits until the journal has the call.
fn over_socket(stage: &Stage, call: &Value, waits: bool, ended: &dyn Fn()) -> View {
    let mut call = call.clone();
    call["type"] = json!("response.create");
    let mut socket = Socket::open(stage, Path::Reverse, true);
    socket.send(&call);
    let mut view = View {
        status: 0,
        retry_after: None,
        events: Vec::new(),
        broke: None,
    };
    if waits {
        // No event says that the response is over; those of another call come behind it.
        ended();
        call["model"] = json!("behind");
        socket.send(&call);
    }
    loop {
        let Some(message) = socket.next() else {
            view.broke = Some(socket.wire.rest().1);
            return view;
        };
        let Message::Text(text) = message else {
            panic!("{message:?} in place of an event");
        };
        let event: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
        if event["response"]["model"] == "behind" {
            break;
        }
        if let Some(status) = event["status"]
            .as_u64()
            .filter(|_| event["type"] == "error")
        {
            view.status = status;
            view.retry_after = event["headers"]["retry-after"].as_str().map(str::to_owned);
            view.events.push(event["error"].clone());
            break;
        }
        let is_over =
            ends(&event) || event["type"] == "response.failed" || event["object"] == "response";
        view.events.push(event);
        if is_over && !waits {
            break;
        }
    }
    view
}

/// What a call did: what the agent got, what the journal has, and the request as the upstream got it.
#[derive(Debug, PartialEq)]
struct Seen {
    view: View,
    record: Value,
    arrived: Option<Value>,
}

/// Members of a record that the carrier decides.
const OF_CARRIER: [&str; 9] = [
    "id",
    "activation",
    "started_at",
    "duration_ms",
    "injected_ms",
    "overhead_us",
    "request_bytes",
    "response_bytes",
    "websocket",
];

/// Makes the calls of a case over a carrier.
fn make(
    stage: &Stage,
    case: &Case,
    names: &[String],
    on_socket: bool,
    arrived: &Mutex<Vec<Value>>,
) -> Vec<Seen> {
    let api = stage.daemon.api;
    let chaos = json!({
        "llm_faults": case.rules(),
        "context_attacks": [
            { "type": "indirect_injection", "model": CONTEXT },
            { "type": "memory_poisoning", "model": CONTEXT, "probability": case.probability },
        ],
    });
    api.activate("/v1/chaos", &json!({ "chaos": chaos, "seed": case.seed }));
    // More than a case has; newest first.
    let page = || api.get("/v1/exchanges?limit=120")["items"].clone();
    let since = page()[0]["id"].clone();
    let records = |names: &[String]| -> Option<Vec<Value>> {
        let page = page();
        let of = |name: &String| {
            let mut entries = page.as_array().unwrap().iter();
            let entries = entries.by_ref().take_while(|entry| entry["id"] != since);
            let mut ended = entries.filter(|entry| entry["outcome"] != "open");
            ended.find(|entry| entry["llm"]["model"] == **name).cloned()
        };
        names.iter().map(of).collect()
    };
    arrived.lock().unwrap().clear();
    let views: Vec<View> = names
        .iter()
        .map(|name| {
            let call = case.request(name);
            if !on_socket {
                return over_http(stage, &call);
            }
            over_socket(stage, &call, name == "missing_terminator", &|| {
                api.wait("the call's end", || records(std::slice::from_ref(name)));
            })
        })
        .collect();
    let arrived = arrived.lock().unwrap().clone();
    let recorded = api.wait("all calls in the journal", || records(names));
    names
        .iter()
        .zip(views)
        .zip(recorded)
        .map(|((name, view), mut record)| {
            let members = record.as_object_mut().unwrap();
            members.retain(|name, _| !OF_CARRIER.contains(&name.as_str()));
            if record["llm"]["estimated"] == true {
                // An estimate counts the whole JSON, `type` and `stream` too.
                record["llm"]["input_tokens"] = Value::Null;
            }
            // The carrier's words.
            record["error"] = json!(record["error"].is_string());
            for canary in record["canaries"].as_array_mut().unwrap() {
                // The id of this record.
                canary["planted_by"] = Value::Null;
            }
            let arrived = arrived
                .iter()
                .find(|request| request["model"] == **name)
                .cloned();
            Seen {
                view,
                record,
                arrived,
            }
        })
        .collect()
}

/// Where what a mode did over HTTP differs from what it did on a socket.
fn difference(name: &str, http: &Seen, socket: &Seen) -> Option<String> {
    let mut texts = Vec::new();
    if http.view != socket.view {
        texts.push(format!("{:?} and {:?}", http.view, socket.view));
    }
    if http.arrived != socket.arrived {
        texts.push(format!(
            "upstream {:?} and {:?}",
            http.arrived, socket.arrived
        ));
    }
    for (member, value) in http.record.as_object().unwrap() {
        if *value != socket.record[member] {
            texts.push(format!("{member} {value} and {}", socket.record[member]));
        }
    }
    (http != socket).then(|| format!("{name}: {}", texts.join("; ")))
}

/// The model whose requests are attacked.
const CONTEXT: &str = "context";

#[test]
fn both_carriers_give_the_agent_and_the_journal_the_same() {
    let script: Arc<Mutex<Option<Case>>> = Arc::default();
    let arrived: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (script_of_upstream, arrived_upstream) = (Arc::clone(&script), Arc::clone(&arrived));
    let stage = Stage::with(&json!({}), move |connection| {
        serve(connection, &script_of_upstream, &arrived_upstream);
    });
    let names: Vec<String> = MODES
        .iter()
        .map(|(mode, ..)| *mode)
        // HTTP has no such error.
        .filter(|mode| *mode != "connection_limit")
        .chain([CONTEXT, "clean"])
        .map(str::to_owned)
        .collect();
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(32)
    };
    let outcome = TestRunner::new(config).run(&case(), |case| {
        script.lock().unwrap().replace(case.clone());
        let [http, socket] =
            [false, true].map(|on_socket| make(&stage, &case, &names, on_socket, &arrived));
        let differences: Vec<String> = names
            .iter()
            .zip(http.iter().zip(&socket))
            .filter_map(|(name, (http, socket))| difference(name, http, socket))
            .collect();
        prop_assert!(differences.is_empty(), "{}", differences.join("\n"));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
