//! Incidents that other tools recorded, imported and played back.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use squall_tests::program::{python, script};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Upstream};

use crate::desk::{CommandResult, Desk};

/// A file that `tests/imports/make.py` made with the tool itself.
fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("imports")
        .join(name)
}

fn import(desk: &Desk, from: &str, source: &Path, more: &[&str]) -> CommandResult {
    let mut command = desk.squall(&["replay", "import", "--from", from, "--output", "incidents"]);
    command.arg(source).args(more);
    command.output().unwrap().into()
}

/// The URL of the tool in a session; its port is the one of `make.py`'s server.
fn tool_url(session: &str) -> &str {
    let urls = session
        .lines()
        .filter_map(|line| line.trim().strip_prefix("url: \""));
    let mut urls = urls.filter_map(|url| url.strip_suffix('"'));
    urls.find(|url| url.ends_with("/weather?city=Rome"))
        .unwrap()
}

#[test]
fn an_incident_of_each_tool_plays_back_without_its_upstream() {
    for (from, name) in [
        ("har", "chromium.har"),
        ("har", "firefox.har"),
        ("vcr", "vcrpy.yaml"),
        ("vcr", "vcrpy.json"),
    ] {
        let desk = Desk::new();
        let imported = import(&desk, from, &made(name), &[]);
        imported.ended(0);
        assert_eq!(imported.err, "", "{name}");
        assert!(!format!("{imported:?}").contains("sk-proj"), "{name}");
        let stem = name.split('.').next().unwrap();
        let file = format!("incidents/{stem}.yaml");
        let session = std::fs::read_to_string(desk.directory.path().join(&file)).unwrap();
        assert!(!session.contains("sk-proj"), "{name}");
        let url = tool_url(&session);
        let mut played = desk.squall(&["run", "--replay", &file, "--", "curl", "-s", url]);
        let played = CommandResult::from(played.output().unwrap());
        played.ended(0);
        played.out_has(r#"{"city": "Rome", "degrees": 21}"#);
    }
}

#[test]
fn a_folder_is_imported_and_what_is_missing_is_listed() {
    let desk = Desk::new();
    let directory = desk.directory.path();
    std::fs::create_dir(directory.join("archives")).unwrap();
    let entry = |url: &str| {
        json!({ "request": { "method": "GET", "url": url },
            "response": { "status": 200, "content": { "text": "key sk-proj-abcdefghijklmnopqrstuvwxyz and acct_12" } } })
    };
    let archive = json!({ "log": { "entries": [entry("http://h.test/a"), entry("ws://h.test/b?token=hunter2"),
        entry("ws://h.test/\u{1b}[31m")] } });
    for name in ["one.har", "two.har"] {
        std::fs::write(directory.join("archives").join(name), archive.to_string()).unwrap();
    }
    std::fs::write(directory.join("squall.yaml"), "redact: ['acct_[0-9]+']\n").unwrap();
    let imported = import(&desk, "har", &directory.join("archives"), &["--json"]);
    imported.ended(0);
    let document: Value = serde_json::from_str(&imported.out).unwrap();
    assert_eq!(
        document["items"][1]["file"], "incidents/two.yaml",
        "{document}"
    );
    let unmapped = &document["unmapped"][0];
    assert_eq!(unmapped["what"], "GET ws://h.test/b", "{document}");
    assert!(
        imported
            .err
            .contains("not imported: GET ws://h.test/b: a WebSocket"),
        "{imported:#?}"
    );
    assert!(
        imported.err.contains("ws://h.test/␛[31m: a WebSocket"),
        "{imported:#?}"
    );
    let session = std::fs::read_to_string(directory.join("incidents/one.yaml")).unwrap();
    assert!(session.contains("key REDACTED and REDACTED"), "{session}");
    let wrong = import(&desk, "vcr", &directory.join("archives/one.har"), &[]);
    wrong.ended(2);
    wrong.err_has("one.har: it is not a cassette");
    // The others of a folder are imported. An id is a name of a file, so its case does not matter.
    for (name, text) in [
        ("a.har", "{"),
        ("b.har", ""),
        ("TWO.har", &*archive.to_string()),
    ] {
        std::fs::write(directory.join("archives").join(name), text).unwrap();
    }
    std::fs::remove_dir_all(directory.join("incidents")).unwrap();
    let partly = import(&desk, "har", &directory.join("archives"), &[]);
    partly.ended(2);
    partly.err_has("a.har: it is not JSON");
    partly.err_has("b.har: it is not JSON");
    partly.err_has("the id two: another session has it; the second one is two-2");
    for name in ["TWO", "one", "two-2"] {
        partly.out_has(&format!("incidents/{name}.yaml: 1 exchange"));
    }
    let session = std::fs::read_to_string(directory.join("incidents/two-2.yaml")).unwrap();
    assert!(session.contains("id: \"two-2\""), "{session}");
    let empty = json!({ "log": { "entries": [] } }).to_string();
    std::fs::write(directory.join("empty.har"), empty).unwrap();
    import(&desk, "har", &directory.join("empty.har"), &[]).ended(1);
}

#[test]
fn a_wrong_key_ends_with_3_and_is_nowhere_printed() {
    for (from, variables) in [
        ("langsmith", &["LANGSMITH_API_KEY"][..]),
        ("langfuse", &["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"]),
    ] {
        let desk = Desk::new();
        let service = Upstream::start(None, |mut connection| {
            while connection.request().is_some() {
                let answer = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 7\r\n\r\nhunter2";
                if !connection.send(answer) {
                    break;
                }
            }
        });
        let endpoint = format!("http://{}", service.address);
        let mut command =
            desk.squall(&["replay", "import", "--from", from, "--output", "incidents"]);
        command.args(["--endpoint", &endpoint, "project"]);
        for name in variables {
            command.env(name, "hunter2");
        }
        let wrong = CommandResult::from(command.output().unwrap());
        wrong.ended(3);
        assert!(wrong.err.contains("the key was rejected"), "{wrong:#?}");
        assert!(!format!("{wrong:?}").contains("hunter2"), "{wrong:#?}");
        let config = desk.directory.path().join("squall.yaml");
        std::fs::write(config, "proxy: { deny: ['127.0.0.1'] }\n").unwrap();
        let before = service.requests().len();
        CommandResult::from(command.output().unwrap()).ended(3);
        assert_eq!(
            service.requests().len(),
            before,
            "a denied address was dialled"
        );
    }
}

/// LangSmith with the project `shop`, which has one trace: the one of `make.py`, with a text that looks like a variable.
fn langsmith() -> (Upstream, &'static str) {
    let runs = std::fs::read_to_string(made("langsmith.json")).unwrap();
    let mut runs: Value = serde_json::from_str(&runs).unwrap();
    runs[2]["outputs"] = json!({ "output": "${NOT_SET}" });
    let service = Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            let query = request.json();
            let is_root = query["is_root"] == true || query["id"].is_array();
            let answer = match request.target.split('?').next().unwrap() {
                "/info" => json!({}),
                "/sessions" => json!([{ "id": "p1" }]),
                "/runs/query" if is_root => json!({ "runs": [runs[0]], "cursors": {} }),
                "/runs/query" => json!({ "runs": runs.as_array().unwrap()[1..], "cursors": {} }),
                _ => runs[0].clone(),
            };
            let answer =
                standard::whole("200 OK", "application/json", answer.to_string().as_bytes());
            if !connection.send(answer) {
                break;
            }
        }
    });
    (service, "01a217f5-aa1b-7c5f-a8b3-801cf54f00b2")
}

#[test]
fn sources_of_a_suite_are_fetched_and_replayed() {
    let desk = Desk::new();
    let (service, trace) = langsmith();
    let tool = format!("http://{}/*", desk.tool.address);
    let suite = json!({
        "agent": desk.agent("/json", &[]),
        "tools": { "get_weather": { "match_url": tool } },
        "golden_prompts": ["Weather?"],
        "invariants": [{ "id": "says-so", "type": "contains", "value": " is " }],
        "chaos": { "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 503 }] },
        "output": { "format": "terminal" },
        "replays": { "sources": [
            { "type": "langsmith", "project": "shop", "filter": { "status": "all", "date_range": "last_7_days" } },
            { "type": "langsmith_run", "run_id": trace },
        ] },
    });
    let file = desk.write(&suite);
    let run = |command: &[&str], endpoint: &str| {
        let mut command = desk.squall(command);
        command.arg("-c").arg(&file).arg("--json");
        command.env("LANGSMITH_ENDPOINT", endpoint);
        command.env("LANGSMITH_API_KEY", "hunter2");
        CommandResult::from(command.output().unwrap())
    };
    let endpoint = format!("http://{}", service.address);
    for (command, requests, warning) in [
        (
            &["replay", "run"][..],
            7,
            format!("there is already a session {trace}"),
        ),
        (
            &["ci"],
            3,
            "`replays.sources`: `shop` not fetched".to_owned(),
        ),
    ] {
        let before = service.requests().len();
        let result = run(command, &endpoint);
        result.ended(0);
        let run: Value = serde_json::from_str(&result.out).unwrap();
        let [replayed] = &run["replays"].as_array().unwrap()[..] else {
            panic!("{run:#}");
        };
        assert_eq!(replayed["session"], trace, "{run:#}");
        assert_eq!(
            (&replayed["served"], &replayed["dialled"]),
            (&json!(1), &json!(0)),
            "{run:#}"
        );
        assert!(run["warnings"].to_string().contains(&warning), "{run:#}");
        assert_eq!(service.requests().len() - before, requests, "{command:?}");
    }
    // Nothing listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let failed = run(&["replay", "run"], &format!("http://{gone}"));
    failed.ended(3);
    failed.err_has(&format!("LangSmith at http://{gone}"));
    failed.err_has("suite.yaml:");
    assert!(!format!("{failed:?}").contains("hunter2"), "{failed:#?}");
}

#[test]
fn the_daemon_fetches_no_sources_and_says_what_to_do() {
    let daemon = Daemon::start(&json!({}));
    let agent = json!({ "endpoint": "http://127.0.0.1:9/" });
    let invariants = json!([{ "type": "completes" }]);
    for (replays, pointer, words) in [
        (
            json!({ "sources": [{ "type": "langsmith_run", "run_id": "x" }] }),
            "/suite/replays/sources/0",
            "squall replay import",
        ),
        (json!(null), "/suite/replays", "add `replays.sessions`"),
    ] {
        let mut suite = json!({ "agent": agent, "invariants": invariants });
        if !replays.is_null() {
            suite["replays"] = replays;
        }
        let order = json!({ "kind": "replay", "suite": suite });
        let refused = daemon.api.call("POST", "/v1/runs", Some(&order));
        assert_eq!(refused.status, 422, "{}", refused.text());
        let errors = refused.json()["errors"].clone();
        let found = errors.as_array().unwrap().iter().any(|error| {
            error["pointer"] == pointer && error["detail"].as_str().unwrap().contains(words)
        });
        assert!(
            found && !errors.to_string().contains("golden_prompts"),
            "{errors:#}"
        );
    }
}

/// A trace with two model calls: the first calls a tool, the second says a text.
fn otlp_trace(provider: &str) -> String {
    let usage = json!({ "input_tokens": 1, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 1,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 2 });
    let response = |item: Value| {
        json!({ "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [item], "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "usage": usage })
    };
    let responses = [
        response(
            json!({ "id": "fc_1", "type": "function_call", "call_id": "c", "name": "get_weather",
            "arguments": "{\"city\":\"Rome\"}", "status": "completed" }),
        ),
        response(
            json!({ "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "It is sunny.", "annotations": [] }] }),
        ),
    ];
    let parts = [
        json!({ "type": "tool_call", "id": "c", "name": "get_weather", "arguments": { "city": "Rome" } }),
        json!({ "type": "text", "content": "It is sunny." }),
    ];
    let attributes = |call: usize| match provider {
        "openai-responses" => {
            json!({ "openinference.span.kind": "LLM", "output.value": responses[call].to_string() })
        }
        _ => json!({ "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider,
            "gen_ai.output.messages": json!([{ "role": "assistant", "parts": [parts[call]] }]).to_string() }),
    };
    let spans: Value = (0..2)
        .map(|call| {
            let attributes = attributes(call);
            let attributes = attributes.as_object().unwrap().iter();
            let attributes: Value = attributes
                .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }))
                .collect();
            json!({ "traceId": "0".repeat(31) + "1", "spanId": format!("000000000000000{}", call + 1), "name": "chat",
                "startTimeUnixNano": call.to_string(), "attributes": attributes })
        })
        .collect();
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string()
}

#[test]
fn an_imported_answer_is_streamed_to_agents_that_ask_for_a_stream() {
    for (provider, client) in [
        ("openai", "openai-chat"),
        ("openai-responses", "openai-responses"),
        ("anthropic", "anthropic"),
        ("gcp.gemini", "gemini"),
        ("gcp.gemini", "gemini-list"),
        ("ollama", "ollama"),
    ] {
        let desk = Desk::new();
        let trace = desk.directory.path().join("trace.json");
        std::fs::write(&trace, otlp_trace(provider)).unwrap();
        import(&desk, "otlp", &trace, &[]).ended(0);
        let file = format!("incidents/{}1.yaml", "0".repeat(31));
        let mut command = desk.squall(&["run", "--quiet", "--replay", &file, "--"]);
        command
            .arg(python())
            .arg(script("streamed_calls.py"))
            .arg(client);
        let played = CommandResult::from(command.output().unwrap());
        assert_eq!(
            played.out.trim(),
            r#"[["get_weather", {"city": "Rome"}], "It is sunny."]"#,
            "{client}: {played:#?}"
        );
    }
}

/// The page has one block of commands; the program calls the tool.
#[test]
fn the_example_of_the_page_runs() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/import.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("```").nth(1).unwrap();
    let desk = Desk::new();
    let directory = desk.directory.path();
    std::fs::copy(made("chromium.har"), directory.join("incident.har")).unwrap();
    std::fs::create_dir(directory.join("cassettes")).unwrap();
    std::fs::copy(made("vcrpy.yaml"), directory.join("cassettes/vcrpy.yaml")).unwrap();
    let archive: Value =
        serde_json::from_slice(&std::fs::read(made("chromium.har")).unwrap()).unwrap();
    let entries = archive["log"]["entries"].as_array().unwrap().iter();
    let mut urls = entries.map(|entry| entry["request"]["url"].as_str().unwrap());
    let url = urls
        .find(|url| url.ends_with("/weather?city=Rome"))
        .unwrap();
    let agent =
        format!("import urllib.request\nprint(urllib.request.urlopen('{url}').read().decode())\n");
    std::fs::write(directory.join("agent.py"), agent).unwrap();
    let (service, trace) = langsmith();
    let commands = block
        .lines()
        .filter_map(|line| line.strip_prefix("squall "));
    let commands: Vec<_> = commands.collect();
    assert_eq!(commands.len(), 4, "{block}");
    for line in commands {
        let line = line.split('#').next().unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        let python = python().display().to_string();
        let words = words
            .iter()
            .map(|word| if *word == "python" { &*python } else { *word });
        let mut command = desk.squall(&[]);
        command.args(words).env("LANGSMITH_API_KEY", "hunter2");
        command.env("LANGSMITH_ENDPOINT", format!("http://{}", service.address));
        let result = CommandResult::from(command.output().unwrap());
        result.ended(0);
        if line.starts_with("run") {
            result.out_has(r#"{"city": "Rome", "degrees": 21}"#);
        }
    }
    assert!(directory.join(format!("incidents/{trace}.yaml")).exists());
}

#[test]
fn a_collector_joins_the_posts_of_a_trace() {
    let daemon = Daemon::start(&json!({}));
    let file = std::fs::read_to_string(made("otlp-genai.json")).unwrap();
    let whole: Value = serde_json::from_str(&file).unwrap();
    let scopes = whole["resourceSpans"][0]["scopeSpans"].as_array().unwrap();
    let spans: Vec<_> = scopes
        .iter()
        .flat_map(|scope| scope["spans"].as_array().unwrap())
        .collect();
    assert!(spans.len() > 2, "{whole:#}");
    let directory = tempfile::tempdir().unwrap();
    let mut lengths = Vec::new();
    for (number, spans) in spans.chunks(2).enumerate() {
        let posted = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
        let file = directory.path().join(number.to_string());
        std::fs::write(&file, posted.to_string()).unwrap();
        let zipped = std::process::Command::new("gzip")
            .arg("-n")
            .arg(&file)
            .status()
            .unwrap();
        assert!(zipped.success());
        let sent = std::process::Command::new("curl")
            .args([
                "-s",
                "--noproxy",
                "*",
                "-w",
                "%{http_code}",
                "-H",
                "content-type: application/json",
            ])
            .args(["-H", "content-encoding: gzip", "--data-binary"])
            .arg(format!("@{}.gz", file.display()))
            .arg(format!("http://{}/v1/traces", daemon.api.address))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&sent.stdout), "{}200");
        let replays = daemon.api.get("/v1/replays");
        let [item] = &replays["items"].as_array().unwrap()[..] else {
            panic!("{replays:#}");
        };
        let id = item["id"].as_str().or(item["name"].as_str()).unwrap();
        let session = daemon.api.get(&format!("/v1/replays/{id}"));
        let count = |list: &str| session[list].as_array().map_or(0, Vec::len);
        lengths.push(count("tool_responses") + count("llm_responses"));
    }
    assert_eq!(lengths.last(), Some(&3), "{lengths:?}");
    assert!(lengths.is_sorted() && lengths[0] < 3, "{lengths:?}");
}

#[test]
fn a_collector_gets_traces_in_json_and_protobuf_and_documents_are_imported() {
    let daemon = Daemon::start(&json!({}));
    let api = daemon.api;
    let post = |path: &str, media_type: &str, file: &Path| {
        let url = format!("http://{}{path}", api.address);
        let sent = std::process::Command::new("curl")
            .args(["-s", "--noproxy", "*", "-w", "%{http_code}", "-H"])
            .arg(format!("content-type: {media_type}"))
            .arg("--data-binary")
            .arg(format!("@{}", file.display()))
            .arg(url)
            .output()
            .unwrap();
        String::from_utf8_lossy(&sent.stdout).into_owned()
    };
    for (name, media_type, answer) in [
        ("otlp-genai.json", "application/json", "{}200"),
        ("otlp-openinference.pb", "application/x-protobuf", "200"),
    ] {
        let before = api.get("/v1/replays")["items"].as_array().unwrap().len();
        assert_eq!(
            post("/v1/traces", media_type, &made(name)),
            answer,
            "{name}"
        );
        let replays = api.get("/v1/replays");
        let items = replays["items"].as_array().unwrap();
        assert_eq!(items.len(), before + 1, "{name}: {replays}");
        assert_eq!(
            post("/v1/traces", media_type, &made(name)),
            answer,
            "{name}"
        );
        assert_eq!(
            api.get("/v1/replays"),
            replays,
            "a repeated trace is no new version"
        );
    }
    let refused = post("/v1/traces", "application/x-protobuf", &made("vcrpy.yaml"));
    assert!(refused.ends_with("400"), "{refused}");
    let cassette = std::fs::read_to_string(made("vcrpy.yaml")).unwrap();
    let body = json!({ "from": "vcr", "name": "cassette", "document": cassette });
    let imported = api.call("POST", "/v1/replays/import", Some(&body));
    assert_eq!(imported.status, 201, "{}", imported.text());
    assert_eq!(
        imported.json(),
        json!({ "items": ["cassette"], "unmapped": [] })
    );
    let session = api.get("/v1/replays/cassette");
    assert!(!session.to_string().contains("sk-proj"), "{session}");
    let wrong = json!({ "from": "har", "document": { "log": {} } });
    assert_eq!(
        api.call("POST", "/v1/replays/import", Some(&wrong)).status,
        422
    );
}
