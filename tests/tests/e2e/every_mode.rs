//! Every mode of `llm_faults` as a provider's official client takes it: what it raises or hands out,
//! how often it asks and how long it waits between, all as it does by itself.
//!
//! A table per client, a row per mode; rows that a provider's clients for Python and for Node have in
//! common stand once. All calls of a table go out at once, each to a model of its own, which is how a
//! rule knows the call it is for. Beside them go calls to a model that no rule knows: their results are
//! the same as without Squall, and a row that they would pass, too, fails.

mod anthropic;
mod bedrock;
mod compatible;
mod google;
mod ollama;
mod openai;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use squall_tests::upstream::standard;
use squall_tests::{Path, Stage};

/// The script of the clients for Python.
const PYTHON: &str = "many_calls.py";

/// The script of the clients for Node.
const NODE: &str = "many_calls.mjs";

/// A client of one of the scripts.
struct Client {
    script: &'static str,
    name: &'static str,
    /// The path of its base URL.
    base: &'static str,
    /// What it speaks.
    dialect: &'static str,
    /// Modes that have no form in what it speaks.
    without: &'static [&'static str],
}

/// How the model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Whole,
    Stream,
    Tools,
    StreamedTools,
}

/// A mode, and what the client must make of it.
struct Row {
    mode: &'static str,
    parameters: Value,
    ask: Ask,
    /// Members of what it tells.
    told: Value,
    /// Words of the error's message.
    said: &'static str,
    /// Members that must not be as without the fault.
    changed: &'static [&'static str],
    /// Members that must be as without the fault.
    kept: &'static [&'static str],
    attempts: usize,
    /// Seconds from attempt to attempt, at least: what the client was told to wait.
    wait: f64,
    /// Seconds until it hears a word, at least.
    first: f64,
    /// Whether the client hands out the same as without the fault.
    unnoticed: bool,
    /// Seconds after which the caller gives up, which is sooner than the client does.
    patience: Option<f64>,
}

/// All of `llm_faults`.
const MODES: [&str; 24] = [
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

/// The call fails as the provider's would, after so many attempts.
fn raises(mode: &'static str, error: &str, status: Option<u16>, attempts: usize) -> Row {
    let told = match status {
        Some(status) => json!({ "ok": false, "error": error, "status": status }),
        None => json!({ "ok": false, "error": error }),
    };
    row(mode, told, attempts)
}

/// The call succeeds at once, with these members.
fn hears(mode: &'static str, mut told: Value) -> Row {
    told["ok"] = json!(true);
    row(mode, told, 1)
}

/// After so many attempts the client waits, as it was told, for longer than its caller does.
fn waits_on(mode: &'static str, attempts: usize) -> Row {
    Row {
        patience: Some(SHORT),
        ..raises(mode, "StillWaiting", None, attempts)
    }
}

fn row(mode: &'static str, told: Value, attempts: usize) -> Row {
    let (parameters, ask) = match mode {
        "timeout" => (json!({ "delay_ms": 100 }), Ask::Whole),
        "rate_limit" => (json!({ "retry_after": 1 }), Ask::Whole),
        "truncated_response" => (json!({ "max_tokens": 2 }), Ask::Stream),
        "response_drift" => (json!({ "drift_type": "verbosity_shift" }), Ask::Stream),
        "slow_stream" => (json!({ "ttft_ms": 400 }), Ask::Stream),
        "stream_stall" => (
            json!({ "after_tokens": 2, "delay_ms": 600_000 }),
            Ask::Stream,
        ),
        "stream_cut" | "stream_error" => (json!({ "after_tokens": 2 }), Ask::Stream),
        "duplicate_chunk" | "missing_terminator" | "json_for_stream" => (json!({}), Ask::Stream),
        "malformed_tool_call" | "unknown_tool_call" | "wrong_tool_arguments" => {
            (json!({}), Ask::Tools)
        }
        _ => (json!({}), Ask::Whole),
    };
    Row {
        mode,
        parameters,
        ask,
        told,
        said: "",
        changed: &[],
        kept: &[],
        attempts,
        wait: 0.0,
        first: if mode == "slow_stream" { 0.4 } else { 0.0 },
        unnoticed: false,
        patience: None,
    }
}

impl Row {
    /// With these parameters in place of the usual ones.
    fn under(mut self, parameters: Value) -> Self {
        self.parameters = parameters;
        self
    }

    /// Asked so in place of the usual way.
    fn asked(mut self, ask: Ask) -> Self {
        self.ask = ask;
        self
    }

    /// The error's message has these words.
    fn says(mut self, words: &'static str) -> Self {
        self.said = words;
        self
    }

    fn changes(mut self, members: &'static [&'static str]) -> Self {
        self.changed = members;
        self
    }

    fn keeps(mut self, members: &'static [&'static str]) -> Self {
        self.kept = members;
        self
    }

    /// The client waits as the answer says, by default 1 second.
    fn waits(mut self) -> Self {
        self.wait = 1.0;
        self
    }

    /// The client takes it for a usual answer: only the journal knows.
    fn unnoticed(mut self) -> Self {
        self.unnoticed = true;
        self.keeps(&["text", "finish", "names", "inputs"])
    }

    /// The model it asks.
    fn model(&self) -> String {
        format!("{}-model", self.mode)
    }

    fn rule(&self) -> Value {
        let mut rule = self.parameters.clone();
        rule["mode"] = json!(self.mode);
        rule["model"] = json!(self.model());
        rule
    }

    /// What is wrong with what the client told, if anything.
    fn complaint(&self, told: &Value, clean: &Value) -> Option<&'static str> {
        let expected = self.told.as_object();
        let mut members = expected.into_iter().flatten();
        if members.any(|(name, value)| told[name.as_str()] != *value) {
            return Some("told otherwise");
        }
        let said = told["said"].as_str().unwrap_or_default();
        if !said.contains(self.said) {
            return Some("said otherwise");
        }
        if self.changed.iter().any(|name| told[name] == clean[name]) {
            return Some("the same as without the fault");
        }
        if self.kept.iter().any(|name| told[name] != clean[name]) {
            return Some("not the same as without the fault");
        }
        let seconds = |member: &str| told[member].as_f64().unwrap_or(0.0);
        if seconds("first") < self.first {
            return Some("too early");
        }
        let waits: f64 = (1..self.attempts).map(|_| self.wait).sum();
        (seconds("took") < waits).then_some("too soon again")
    }

    /// What is wrong with its attempts, by the journal's entries.
    fn trouble(&self, entries: &[&Value]) -> Option<&'static str> {
        let applied = |entry: &&Value| {
            let mut rules = entry["rules"].as_array().into_iter().flatten();
            rules.any(|rule| rule["outcome"] == "applied")
        };
        if !entries.iter().all(applied) {
            return Some("an attempt without the fault");
        }
        (entries.len() != self.attempts).then_some("another number of attempts")
    }

    /// Whether an answer without the fault would pass as one with it. How late it comes, the machine
    /// decides, too.
    fn is_blind(&self, clean: &Value) -> bool {
        let is_late = self.first > 0.0;
        !is_late && !self.unnoticed && self.complaint(clean, clean).is_none()
    }
}

impl Ask {
    const ALL: [Self; 4] = [Self::Whole, Self::Stream, Self::Tools, Self::StreamedTools];

    fn call(self, model: &str, timeout: Option<f64>) -> Value {
        let mut call = json!({ "model": model });
        call["stream"] = json!(matches!(self, Self::Stream | Self::StreamedTools));
        call["tools"] = json!(matches!(self, Self::Tools | Self::StreamedTools));
        if let Some(timeout) = timeout {
            call["timeout"] = json!(timeout);
        }
        call
    }

    /// The model that it asks without a fault.
    fn clean_model(self) -> String {
        format!("clean-{self:?}").to_lowercase()
    }
}

impl Client {
    /// Without a rule, the client gets the same as without Squall; under each mode it does as the row
    /// says: as its sibling in the other language does, or in a way of its own.
    fn takes(&self, shared: Vec<Row>, own: Vec<Row>) {
        let rows: Vec<Row> = shared.into_iter().chain(own).collect();
        let covered = rows.iter().map(|row| row.mode);
        let covered: BTreeSet<&str> = covered.chain(self.without.iter().copied()).collect();
        assert_eq!(covered, MODES.into(), "{}: a row for each mode", self.name);
        assert_eq!(rows.len() + self.without.len(), MODES.len());

        let mistral = json!({ "match_url": "*://*/mistral/*", "dialect": "openai-chat/mistral" });
        let stage = Stage::with(&json!({ "llm": [mistral] }), standard::serve);
        let rules: Vec<Value> = rows.iter().map(Row::rule).collect();
        stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
        let clean = Ask::ALL.map(|ask| ask.call(&ask.clean_model(), None));
        let straight = self.told(&stage, Path::Direct, &clean);
        let calls = rows.iter().map(|row| {
            let timeout = (row.mode == "stream_stall").then_some(SHORT);
            let mut asked = row.ask.call(&row.model(), timeout);
            asked["patience"] = json!(row.patience);
            asked
        });
        let calls: Vec<Value> = clean.into_iter().chain(calls).collect();
        let told = self.told(&stage, Path::Reverse, &calls);

        let entries = self.journal(&stage, &rows);
        for ask in Ask::ALL {
            let model = ask.clean_model();
            let entry = entries.iter().find(|one| one["llm"]["model"] == model);
            self.notices_nothing(
                ask,
                &told[&model],
                &straight[&model],
                entry.expect("a call"),
            );
        }
        let mut complaints = Vec::new();
        for row in &rows {
            let model = json!(row.model());
            let (with, clean) = (&told[row.model()], &told[row.ask.clean_model()]);
            assert_eq!(clean["ok"], true, "{}: {clean}", self.name);
            let of_it = entries.iter().filter(|one| one["llm"]["model"] == model);
            let of_it: Vec<&Value> = of_it.collect();
            let complaint = row.complaint(with, clean).or_else(|| row.trouble(&of_it));
            let blind = row
                .is_blind(clean)
                .then_some("so it is without the fault, too");
            if let Some(complaint) = complaint.or(blind) {
                let (mode, attempts) = (row.mode, of_it.len());
                let rules: Vec<&Value> = of_it.iter().map(|one| &one["rules"]).collect();
                complaints.push(format!(
                    "{mode}: {complaint}: {attempts} attempts, {with}; {rules:?}"
                ));
            }
        }
        let complaints = complaints.join("\n");
        assert!(complaints.is_empty(), "{}:\n{complaints}", self.name);
    }

    /// What its script tells of calls, by model.
    fn told(&self, stage: &Stage, path: Path, calls: &[Value]) -> Value {
        let calls = json!(calls).to_string();
        let mut arguments = vec!["--client", self.name, "--calls", &calls];
        // The upstream speaks no HTTP/2, which Amazon's client for Node prefers.
        if self.script == NODE && path == Path::Direct {
            arguments.push("--http1");
        }
        stage.way(path, self.base).ask(self.script, &arguments)
    }

    /// A call that no rule is about: what the client got with and without Squall, and its exchange.
    fn notices_nothing(&self, ask: Ask, told: &Value, straight: &Value, entry: &Value) {
        let got = |told: &Value| {
            let mut got = told.clone();
            let times = got.as_object_mut().expect("facts");
            times.retain(|name, _| name != "first" && name != "took");
            got
        };
        assert_eq!(got(told), got(straight), "{} {ask:?}", self.name);
        assert_eq!(entry["kind"], "llm", "{entry}");
        assert_eq!(entry["dialect"], self.dialect, "{entry}");
        let streamed = matches!(ask, Ask::Stream | Ask::StreamedTools);
        assert_eq!(entry["llm"]["stream"], streamed, "{entry}");
        // Mistral's clients do not read a streamed call of OpenAI's.
        if told["ok"] != true {
            return;
        }
        let called = told["names"].as_array().is_some_and(|all| !all.is_empty());
        let finish = if called { "tool" } else { "done" };
        assert_eq!(entry["llm"]["finish"], finish, "{entry}");
        let tool = called.then_some("weather");
        assert_eq!(entry["llm"]["tool_calls"][0].as_str(), tool, "{entry}");
    }

    /// The journal, when every attempt of the table and of the clean calls has ended.
    fn journal(&self, stage: &Stage, rows: &[Row]) -> Vec<Value> {
        let api = stage.daemon.api;
        api.wait(&format!("{} end", self.name), || {
            let page = api.get("/v1/exchanges?limit=1000");
            let items = page["items"].as_array()?;
            let ended = items.iter().all(|one| one["outcome"] != "open");
            (ended && items.len() >= rows.len() + Ask::ALL.len()).then(|| items.clone())
        })
    }
}
