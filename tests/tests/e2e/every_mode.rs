//! Every mode of `llm_faults` as a provider's official clients for Python and for Node report it: what they raise
//! or return, how often they try, and how long they wait, all by themselves.
//!
//! A snapshot per provider has a line per mode; where the clients differ, it has a line for each. All calls of a
//! client go out at once, each to a model of its own, by which a rule knows its call. Beside them go calls to models
//! without a rule: their results are the same as without Squall, and the others are described by what differs from
//! them.

use std::fmt::Write as _;

use serde_json::{Value, json};
use squall_tests::upstream::standard;
use squall_tests::{Path, Stage};

/// All of `llm_faults`.
const MODES: [&str; 26] = [
    "timeout",
    "truncated_response",
    "rate_limit",
    "empty",
    "garbage",
    "response_drift",
    "overloaded",
    "server_error",
    "quota_exhausted",
    "context_length_exceeded",
    "auth_error",
    "model_not_found",
    "previous_response_not_found",
    "connection_limit",
    "content_filter",
    "refusal",
    "malformed_tool_call",
    "unknown_tool_call",
    "wrong_tool_arguments",
    "slow_stream",
    "stream_stall",
    "stream_cut",
    "stream_error",
    "duplicate_chunk",
    "missing_terminator",
    "json_for_stream",
];

/// Seconds that a client waits for what stalls.
const SHORT: f64 = 2.0;

const NODE: &str = "many_calls.mjs";

/// A provider whose clients are run by `many_calls.py` and `many_calls.mjs`.
struct Provider {
    name: &'static str,
    /// The path of the clients' base URL.
    base: &'static str,
    dialect: &'static str,
}

/// Whether a call asks for a stream, and whether it offers a tool.
type Kind = (bool, bool);

const KINDS: [Kind; 4] = [(false, false), (true, false), (false, true), (true, true)];

/// The model of the call that no rule is about.
fn clean_model((stream, tools): Kind) -> String {
    format!("clean-{stream}-{tools}")
}

fn call(model: &str, (stream, tools): Kind) -> Value {
    json!({ "model": model, "stream": stream, "tools": tools })
}

impl Provider {
    /// What the call of a mode asks for.
    fn kind(&self, mode: &str) -> Kind {
        match mode {
            // Anthropic's complete answers hold arguments as JSON, never as text that may be none.
            "malformed_tool_call" => (self.name == "anthropic", true),
            "unknown_tool_call" | "wrong_tool_arguments" => (false, true),
            "truncated_response" | "response_drift" | "duplicate_chunk" | "missing_terminator" => {
                (true, false)
            }
            _ => (mode.contains("stream"), false),
        }
    }

    fn rule(&self, mode: &str) -> Value {
        // Some models think before they speak, in these many tokens.
        let thinking = match self.name {
            "google" => 6,
            "ollama" => 3,
            _ => 0,
        };
        let mut rule = match mode {
            "timeout" => json!({ "delay_ms": 100 }),
            "rate_limit" => json!({ "retry_after": 1 }),
            "truncated_response" => json!({ "max_tokens": thinking + 2 }),
            "response_drift" => json!({ "drift_type": "verbosity_shift" }),
            "slow_stream" => json!({ "ttft_ms": 400 }),
            "stream_stall" => json!({ "after_tokens": 2, "delay_ms": 600_000 }),
            "stream_cut" | "stream_error" => json!({ "after_tokens": 2 }),
            _ => json!({}),
        };
        rule["mode"] = json!(mode);
        rule["model"] = json!(mode);
        rule
    }

    fn ask(&self, stage: &Stage, script: &str, path: Path, calls: &[Value]) -> Value {
        let calls = json!(calls).to_string();
        let mut arguments = vec!["--client", self.name, "--calls", &calls];
        // The upstream speaks no HTTP/2, which Amazon's client for Node prefers.
        if script == NODE && path == Path::Direct {
            arguments.push("--http1");
        }
        stage.way(path, self.base).ask(script, &arguments)
    }

    /// A line for each mode, as the client of a script reports it.
    fn report(&self, script: &str) -> [String; MODES.len()] {
        let mistral = json!({ "match_url": "*://*/mistral/*", "dialect": "openai-chat/mistral" });
        let stage = Stage::with(&json!({ "llm": [mistral] }), standard::serve);
        let rules = MODES.map(|mode| self.rule(mode));
        stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
        let clean = KINDS.map(|kind| call(&clean_model(kind), kind));
        let direct = self.ask(&stage, script, Path::Direct, &clean);
        let faulted = MODES.map(|mode| {
            let mut call = call(mode, self.kind(mode));
            if mode == "previous_response_not_found" {
                call["previous"] = json!("resp_0");
            }
            if mode == "stream_stall" {
                call["timeout"] = json!(SHORT);
            }
            // Groq's client for Node waits the ten minutes that the response asks for.
            if mode == "quota_exhausted" && self.name == "groq" {
                call["patience"] = json!(SHORT);
            }
            call
        });
        let calls = [&clean[..], &faulted].concat();
        let results = self.ask(&stage, script, Path::Reverse, &calls);
        let api = stage.daemon.api;
        let entries = api.wait(&format!("{} end", self.name), || {
            let page = api.get("/v1/exchanges?limit=1000");
            let items = page["items"].as_array()?;
            let ended = items.iter().all(|one| one["outcome"] != "open");
            (ended && items.len() >= calls.len()).then(|| items.clone())
        });
        let of_model = |model: &str| -> Vec<&Value> {
            let of_it = entries.iter().filter(|one| one["llm"]["model"] == model);
            of_it.collect()
        };
        for kind in KINDS {
            let model = clean_model(kind);
            let (result, direct) = (&results[&model], &direct[&model]);
            let changed = ["ok", "error", "status", "text", "finish", "names", "inputs"]
                .iter()
                .find(|name| result[**name] != direct[**name]);
            assert_eq!(changed, None, "{script}: {result}, directly {direct}");
            self.is_recorded(kind, result, of_model(&model)[0]);
        }
        MODES.map(|mode| {
            let clean = &results[clean_model(self.kind(mode))];
            assert_eq!(clean["ok"], true, "{script}: {clean}");
            describe(mode, &results[mode], clean, &of_model(mode))
        })
    }

    /// The journal's entry of a call without a rule.
    fn is_recorded(&self, (stream, _): Kind, result: &Value, entry: &Value) {
        let found = (&entry["kind"], &entry["dialect"], &entry["llm"]["stream"]);
        let expected = (&json!("llm"), &json!(self.dialect), &json!(stream));
        assert_eq!(found, expected, "{entry}");
        // Mistral's clients do not read a streamed call of OpenAI's.
        if result["ok"] == true {
            let called = result["names"]
                .as_array()
                .is_some_and(|all| !all.is_empty());
            let finish = if called { "tool" } else { "done" };
            assert_eq!(entry["llm"]["finish"], finish, "{entry}");
            let tool = called.then_some("weather");
            assert_eq!(entry["llm"]["tool_calls"][0].as_str(), tool, "{entry}");
        }
    }

    fn check(&self) {
        let [python, node] = std::thread::scope(|scope| {
            ["many_calls.py", NODE]
                .map(|script| scope.spawn(|| self.report(script)))
                .map(|report| report.join().expect("a report"))
        });
        let mut lines = String::new();
        for ((mode, python), node) in MODES.iter().zip(python).zip(node) {
            if python == node {
                writeln!(lines, "{mode}: {python}").unwrap();
            } else {
                writeln!(lines, "{mode}:\n    Python: {python}\n    Node: {node}").unwrap();
            }
        }
        insta::assert_snapshot!(self.name, lines);
    }
}

/// A result of a call under a mode: what differs from the clean one, and how often the client tried.
fn describe(mode: &str, result: &Value, clean: &Value, entries: &[&Value]) -> String {
    let mut parts = Vec::new();
    if result["ok"] == true {
        let text = result["text"].as_str().unwrap_or_default();
        let whole = clean["text"].as_str().unwrap_or_default();
        if text == whole {
            parts.push("the text".to_owned());
        } else if whole.starts_with(text) {
            parts.push(format!("text {text:?}"));
        } else {
            parts.push("another text".to_owned());
        }
        if result["pieces"] != clean["pieces"] && text == whole {
            parts.push("in other pieces".to_owned());
        }
        parts.push(format!("finish {}", result["finish"]));
        if result["refusal"] == true {
            parts.push("marked as refusal".to_owned());
        }
        for (member, what) in [("names", "tool"), ("inputs", "arguments")] {
            let found = result[member].as_array().map_or(0, Vec::len);
            match clean[member].as_array().map_or(0, Vec::len) {
                0 => {}
                _ if result[member] == clean[member] => parts.push(format!("the {what}")),
                _ if found == 0 => parts.push(format!("no {what}")),
                _ => parts.push(format!("another {what}")),
            }
        }
    } else {
        let name = result["error"].as_str().unwrap_or_default();
        let status = result["status"].as_u64();
        let status = status.map_or_else(String::new, |status| format!(" {status}"));
        let message = result["said"].as_str().unwrap_or_default();
        parts.push(format!("raises {name}{status} {:?}", readable(message)));
    }
    if mode == "slow_stream" && result["first"].as_f64() >= Some(0.4) {
        parts.push("400 ms late".to_owned());
    }
    match entries.len() {
        1 => {}
        attempts => parts.push(format!("{attempts} attempts")),
    }
    let waits = f64::from(u32::try_from(entries.len()).expect("a few") - 1);
    if mode == "rate_limit" && waits > 0.0 && result["took"].as_f64() >= Some(waits) {
        parts.push("waits as the response asks".to_owned());
    }
    let outcome = |entry: &&Value| entry["rules"][0]["outcome"].clone();
    if let Some(other) = entries.iter().map(outcome).find(|one| *one != "applied") {
        let reason = &entries[0]["rules"][0]["reason"];
        parts.push(format!("the rule is {other}: {reason}"));
    }
    parts.join(", ")
}

/// A message without what differs from run to run: addresses, ids and times.
fn readable(message: &str) -> String {
    let words = message.split_whitespace().map(|word| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        if digits > 3 || word.len() > 30 || (digits > 1 && word.len() > 20) {
            "…"
        } else {
            word
        }
    });
    let text = words.collect::<Vec<_>>().join(" ");
    text.chars().take(160).collect()
}

macro_rules! providers {
    ($($test:ident: $name:literal $base:literal $dialect:literal)*) => {$(
        #[test]
        fn $test() {
            Provider { name: $name, base: $base, dialect: $dialect }.check();
        }
    )*};
}

providers! {
    clients_of_openai_for_chat_report_each_mode: "openai" "/v1" "openai-chat"
    clients_of_openai_for_responses_report_each_mode: "responses" "/v1" "openai-responses"
    clients_of_anthropic_report_each_mode: "anthropic" "" "anthropic"
    clients_of_google_report_each_mode: "google" "" "gemini"
    clients_of_ollama_report_each_mode: "ollama" "" "ollama"
    clients_of_amazon_report_each_mode: "bedrock" "" "bedrock"
    clients_of_mistral_report_each_mode: "mistralai" "/mistral" "openai-chat"
    clients_of_groq_report_each_mode: "groq" "" "openai-chat"
}
