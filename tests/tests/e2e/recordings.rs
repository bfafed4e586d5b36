//! Traffic that is recorded, given out, and played back instead of calling upstreams.

use std::time::Instant;

use serde_json::{Value, json};
use squall_tests::api::Api;
use squall_tests::daemon::squall;
use squall_tests::upstream::mcp::Server;
use squall_tests::upstream::standard::{self, whole};
use squall_tests::wire::Response;
use squall_tests::{Path, Stage};

const TAPE: &str = "/v1/scopes/default/tape";

/// Begins a recording; its id.
fn begin(api: Api) -> String {
    let begun = api.call("POST", "/v1/recordings", Some(&json!({})));
    assert_eq!(begun.status, 201, "{}", begun.text());
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let place = begun.header("location").unwrap();
    assert_eq!(place, format!("/v1/recordings/{id}"));
    id
}

/// Ends a recording once it holds so many exchanges.
fn stop(api: Api, id: &str, exchanges: usize) -> Value {
    api.wait_for_exchanges(exchanges);
    let ended = api.call("POST", &format!("/v1/recordings/{id}/stop"), None);
    assert_eq!(ended.status, 200, "{}", ended.text());
    let ended = ended.json();
    assert_eq!(ended["state"], "stopped", "{ended}");
    assert_eq!(ended["exchanges"], exchanges, "{ended}");
    ended
}

fn play(api: Api, tape: &Value) -> Value {
    let put = api.call("PUT", TAPE, Some(tape));
    assert_eq!(put.status, 200, "{}", put.text());
    put.json()
}

fn export(api: Api, id: &str, format: &str) -> Response {
    let path = format!("/v1/recordings/{id}?format={format}");
    let given = api.call("GET", &path, None);
    assert_eq!(given.status, 200, "{}", given.text());
    given
}

/// What an agent sees of an answer, but for what belongs to the connection.
fn seen(answer: &Response) -> (u16, Vec<u8>, Option<String>) {
    let kind = answer.header("content-type").map(str::to_owned);
    (answer.status, answer.body.clone(), kind)
}

/// Connections and requests that both upstreams have had.
fn reached(stage: &Stage) -> [usize; 4] {
    let of = |upstream: &squall_tests::Upstream| [upstream.opened(), upstream.requests().len()];
    let [[a, b], [c, d]] = [of(&stage.plain), of(&stage.secure)];
    [a, b, c, d]
}

#[test]
fn a_stream_is_recorded_and_played_back_byte_for_byte_without_its_upstream() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let body = json!({ "model": "test-model", "stream": true, "messages": [] }).to_string();
    for path in Path::THROUGH {
        let id = begin(api);
        let before = api.exchanges().len();
        let recorded = seen(&stage.open(path).post("/v1/chat/completions", &body));
        let client = || stage.way(path, "/v1").ask("openai_chat.py", &["--stream"]);
        let told = (path == Path::Intercepted).then(client);
        let count = 1 + usize::from(told.is_some());
        api.wait_for_exchanges(before + count);
        stop_with(api, &id, count);
        play(api, &json!({ "recording": id }));
        let reached_before = reached(&stage);
        let played = seen(&stage.open(path).post("/v1/chat/completions", &body));
        assert_eq!(played, recorded, "{path:?}");
        if let Some(told) = told {
            assert_eq!(told["ok"], true, "{told}");
            assert_eq!(client(), told);
        }
        assert_eq!(reached(&stage), reached_before, "{path:?}");
        let tape = api.get(TAPE);
        assert_eq!(tape["served"], count, "{path:?}: {tape}");
        for name in ["missed", "dialled", "left"] {
            assert_eq!(tape[name], 0, "{path:?} {name}: {tape}");
        }
        let entry = api.exchanges().pop().unwrap();
        assert_eq!(entry["upstream_status"], Value::Null, "{entry}");
        assert_eq!(entry["outcome"], "ok", "{entry}");
        assert_eq!(entry["llm"]["stream"], true, "{entry}");
        assert_eq!(api.call("DELETE", TAPE, None).status, 204);
        assert_eq!(api.call("GET", TAPE, None).status, 404);
    }
}

/// Ends a recording that holds so many exchanges, whatever was before it.
fn stop_with(api: Api, id: &str, exchanges: usize) {
    let ended = api.call("POST", &format!("/v1/recordings/{id}/stop"), None);
    assert_eq!(ended.status, 200, "{}", ended.text());
    assert_eq!(ended.json()["exchanges"], exchanges, "{}", ended.text());
}

#[test]
fn what_is_not_on_the_tape_is_refused_with_what_is_nearest_and_nothing_is_dialled() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let id = begin(api);
    assert_eq!(stage.open(Path::Intercepted).get("/json").status, 200);
    stop(api, &id, 1);
    play(api, &json!({ "recording": id }));
    let before = reached(&stage);
    let mut wire = stage.open(Path::Intercepted);
    assert_eq!(wire.get("/json").body, standard::JSON.as_bytes());
    let exhausted = wire.get("/json");
    assert_eq!(exhausted.status, 404, "{}", exhausted.text());
    assert_eq!(
        exhausted.json()["type"],
        "urn:squall:problem:tape-exhausted"
    );
    let missed = wire.get("/jsno");
    let problem = missed.json();
    assert_eq!(problem["type"], "urn:squall:problem:tape-miss", "{problem}");
    let nearest = format!("GET https://{}/json", stage.secure_authority());
    assert!(
        problem["detail"].as_str().unwrap().contains(&nearest),
        "{problem}"
    );
    assert_eq!(reached(&stage), before);
    let tape = api.get(TAPE);
    for (name, count) in [
        ("served", 1),
        ("missed", 2),
        ("exhausted", 1),
        ("dialled", 0),
    ] {
        assert_eq!(tape[name], count, "{name}: {tape}");
    }
    let entry = api.wait_for_exchanges(4).pop().unwrap();
    assert_eq!(entry["outcome"], "denied", "{entry}");
    // Whoever wants may let the rest through.
    play(api, &json!({ "recording": id, "on_miss": "passthrough" }));
    let mut wire = stage.open(Path::Intercepted);
    assert_eq!(wire.get("/status/204").status, 204);
    assert_eq!(wire.get("/json").status, 200);
    assert_eq!(wire.get("/json").status, 404, "exhausted is another word");
    let tape = api.get(TAPE);
    assert_eq!(
        (&tape["dialled"], &tape["served"]),
        (&json!(1), &json!(1)),
        "{tape}"
    );
    assert_eq!(stage.secure.requests().len(), 2);
}

#[test]
fn tunnels_of_a_scope_that_plays_a_tape_are_not_dialled_either() {
    let config = json!({ "proxy": { "intercept": { "exclude": ["127.0.0.1"] } } });
    let stage = Stage::with(&config, standard::serve);
    let api = stage.daemon.api;
    play(api, &json!({ "session": { "id": "empty" } }));
    let mut wire = stage.daemon.connect();
    let authority = stage.secure.address.to_string();
    let refused = wire.open_tunnel(&authority, "");
    assert_eq!(refused.status, 404, "{}", refused.text());
    // One that is intercepted is accepted, and what comes through it is answered here.
    let mut wire = stage.daemon.connect();
    assert_eq!(wire.open_tunnel(&stage.secure_authority(), "").status, 200);
    wire.send("no HTTP at all\r\n\r\n");
    wire.rest();
    assert_eq!(reached(&stage), [0; 4]);
    assert_eq!(api.get(TAPE)["dialled"], 0);
    assert_eq!(api.get(TAPE)["missed"], 2);
}

#[test]
fn rules_apply_over_a_tape() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let id = begin(api);
    let body = json!({ "model": "m", "stream": true, "messages": [] }).to_string();
    let ask = |stage: &Stage| {
        stage
            .open(Path::Forward)
            .post("/v1/chat/completions", &body)
    };
    let whole = ask(&stage).text();
    assert_eq!(stage.open(Path::Forward).get("/json").status, 200);
    stop(api, &id, 2);
    let before = reached(&stage);
    play(api, &json!({ "recording": id }));
    api.chaos(
        &json!({ "tool_faults": [{ "mode": "error", "error_code": 503 }],
        "llm_faults": [{ "mode": "truncated_response", "max_tokens": 1 }] }),
    );
    assert_eq!(stage.open(Path::Forward).get("/json").status, 503);
    let cut = ask(&stage).text();
    assert!(cut.len() < whole.len(), "{cut}");
    assert!(cut.contains("\"finish_reason\":\"length\""), "{cut}");
    let tape = api.get(TAPE);
    assert_eq!(
        (&tape["served"], &tape["dialled"]),
        (&json!(1), &json!(0)),
        "{tape}"
    );
    assert_eq!(reached(&stage), before);
}

#[test]
fn breaks_are_played_back_too() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let id = begin(api);
    for target in ["/break/short", "/break/close"] {
        let mut wire = stage.open(Path::Intercepted);
        wire.request("GET", target, &[], b"");
        wire.rest();
    }
    stop(api, &id, 2);
    play(api, &json!({ "recording": id }));
    let mut wire = stage.open(Path::Intercepted);
    wire.request("GET", "/break/short", &[], b"");
    let (bytes, _) = wire.rest();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(!text.ends_with("0\r\n\r\n"), "{text}");
    assert_eq!(api.get(TAPE)["dialled"], 0);
}

#[test]
fn an_official_mcp_client_is_answered_from_a_session() {
    let server = Server::default();
    let stage = Stage::with(&json!({}), move |connection| server.serve(connection));
    let api = stage.daemon.api;
    play(
        api,
        &json!({ "on_miss": "passthrough", "session": { "id": "incident", "tool_responses": [
            { "tool": "book", "response": "as recorded" },
        ] } }),
    );
    let told = stage
        .way(Path::Forward, "/2025/json")
        .ask("mcp_client.py", &["--era", "legacy", "--tool", "book"]);
    assert!(told.to_string().contains("as recorded"), "{told}");
    let calls = stage.plain.requests();
    let called = |request: &&squall_tests::upstream::Request| {
        String::from_utf8_lossy(&request.body).contains("tools/call")
    };
    assert_eq!(calls.iter().filter(called).count(), 0);
    assert_eq!(api.get(TAPE)["served"], 1);
}

#[test]
fn an_mcp_session_is_recorded_and_played_back_whole() {
    let server = Server::default();
    let stage = Stage::with(&json!({}), move |connection| server.serve(connection));
    let api = stage.daemon.api;
    let id = begin(api);
    let way = stage.way(Path::Forward, "/2025/events");
    let arguments = ["--era", "legacy", "--tool", "get_weather"];
    let told = way.ask("mcp_client.py", &arguments);
    assert_eq!(told["ok"], true, "{told}");
    let ended = api
        .call("POST", &format!("/v1/recordings/{id}/stop"), None)
        .json();
    assert!(ended["exchanges"].as_u64().unwrap() >= 3, "{ended}");
    let before = reached(&stage);
    play(api, &json!({ "recording": id }));
    let again = way.ask("mcp_client.py", &arguments);
    assert_eq!(again, told);
    assert_eq!(reached(&stage), before);
}

#[test]
fn a_played_batch_is_answered_under_the_ids_of_the_calls_that_it_makes_now() {
    // Answers come in the order that the server likes.
    let stage = Stage::with(&json!({}), move |mut connection| {
        while let Some(request) = connection.request() {
            let calls: Vec<Value> = serde_json::from_slice(&request.body).unwrap();
            let answers = calls.iter().rev().map(|call| {
                let said = [json!({ "type": "text", "text": call["params"]["name"] })];
                json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "content": said } })
            });
            let body = json!(answers.collect::<Vec<_>>()).to_string();
            connection.send(whole("200 OK", "application/json", body.as_bytes()));
        }
    });
    let api = stage.daemon.api;
    let ask = |ids: [Value; 2]| {
        let call = |id: &Value, tool: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool } });
        let batch = json!([call(&ids[0], "look"), call(&ids[1], "book")]);
        let mut wire = stage.open(Path::Forward);
        let both = ("Accept", "application/json, text/event-stream");
        let kind = ("Content-Type", "application/json");
        wire.request("POST", "/mcp", &[kind, both], batch.to_string().as_bytes());
        wire.response().text()
    };
    let id = begin(api);
    let recorded = ask([json!(1), json!(2)]);
    stop(api, &id, 1);
    let expected = recorded
        .replace("\"id\":2", "\"id\":\"b\"")
        .replace("\"id\":1", "\"id\":2");
    let before = reached(&stage);
    play(api, &json!({ "recording": id }));
    assert_eq!(ask([json!(2), json!("b")]), expected);
    assert_eq!(reached(&stage), before);
}

#[test]
fn a_tape_can_be_played_in_the_recorded_time() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let id = begin(api);
    let mut wire = stage.open(Path::Forward);
    wire.request("GET", "/events", &[("Accept", "text/event-stream")], b"");
    wire.receive_until("data: 1\n\n");
    let began = Instant::now();
    while began.elapsed().as_millis() < 120 {
        squall_tests::program::pause();
    }
    stage.plain.step();
    stage.plain.step();
    wire.receive_until("data: 3\n\n");
    drop(wire);
    stop(api, &id, 1);
    let yaml = export(api, &id, "replay").text();
    assert_eq!(yaml.matches("- at_ms:").count(), 3, "{yaml}");
    for (speed, least) in [(1.0, 100), (2.0, 50)] {
        play(api, &json!({ "recording": id, "speed": speed }));
        let began = Instant::now();
        let mut wire = stage.open(Path::Forward);
        wire.request("GET", "/events", &[("Accept", "text/event-stream")], b"");
        wire.receive_until("data: 3\n\n");
        assert!(began.elapsed().as_millis() >= least, "{speed}");
    }
}

#[test]
fn no_secret_is_kept_given_out_or_logged() {
    let stage = Stage::with(&json!({}), |mut connection| {
        while connection.request().is_some() {
            let body = br#"{"access_token":"planted-access","say":"sk-planted123456"}"#;
            let mut answer = whole("200 OK", "application/json", body);
            let cookie = b"HTTP/1.1 200 OK\r\nset-cookie: sid=planted-cookie\r\n";
            answer.splice(..b"HTTP/1.1 200 OK\r\n".len(), cookie.iter().copied());
            connection.send(answer);
        }
    });
    let api = stage.daemon.api;
    let id = begin(api);
    let ask = |stage: &Stage| {
        let mut wire = stage.open(Path::Forward);
        let headers = [
            ("Authorization", "Bearer planted-bearer-123"),
            ("Cookie", "sid=planted-sent"),
            ("X-Api-Key", "planted-key"),
            ("X-Note", "sk-planted654321"),
            ("Content-Type", "application/json"),
        ];
        let body = br#"{"password":"planted-password","q":"AKIAPLANTEDPLANTED12"}"#;
        wire.request("POST", "/x?api_key=planted-query&q=1", &headers, body);
        wire.response()
    };
    assert_eq!(ask(&stage).status, 200);
    stop(api, &id, 1);
    for (format, least) in [("replay", 6), ("har", 10)] {
        let text = export(api, &id, format).text().to_ascii_lowercase();
        assert!(!text.contains("planted"), "{text}");
        assert!(text.matches("redacted").count() >= least, "{text}");
    }
    // The same request is found again, whatever its secrets are.
    play(api, &json!({ "recording": id }));
    let played = ask(&stage);
    assert_eq!(played.status, 200, "{}", played.text());
    assert_eq!(played.header("set-cookie"), None);
    assert!(!played.text().contains("planted"), "{}", played.text());
    let mut files = 0;
    for file in std::fs::read_dir(&stage.daemon.home).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        assert!(!text.contains("planted"), "{files}");
        files += usize::from(text.contains("redacted"));
    }
    assert!(files > 0, "the recording is nowhere");
    let log = stage.daemon.log().join("\n");
    assert!(!log.contains("planted"), "{log}");
}

#[test]
fn an_http_archive_is_one_by_the_published_schema() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let id = begin(api);
    let mut wire = stage.open(Path::Forward);
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    wire.request("POST", "/tool?a=1&b=%20c&d", &headers, b"x=1&y=\xff");
    assert_eq!(wire.response().status, 200);
    for target in ["/json", "/gzip", "/bytes/300", "/status/204", "/headers"] {
        assert!(wire.get(target).status < 300, "{target}");
    }
    let stream = json!({ "model": "m", "stream": true, "messages": [] }).to_string();
    assert_eq!(wire.post("/v1/chat/completions", &stream).status, 200);
    let mut broken = stage.open(Path::Forward);
    broken.request("GET", "/break/close", &[], b"");
    broken.rest();
    stop(api, &id, 8);
    let archive = export(api, &id, "har");
    assert_eq!(archive.header("content-type"), Some("application/json"));
    let file = stage.daemon.home.join("archive.har");
    std::fs::write(&file, &archive.body).unwrap();
    let mut check = squall_tests::program::client("har_check.py");
    let told = squall_tests::program::told(check.stdin(std::fs::File::open(&file).unwrap()));
    assert_eq!(told["ok"], true, "{told}");
    assert_eq!(told["entries"], 8, "{told}");
}

#[test]
fn a_body_that_is_too_long_is_said_to_be_cut_and_is_never_played() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let id = begin(api);
    let length = 5 << 20;
    let answer = stage.open(Path::Forward).get(&format!("/bytes/{length}"));
    assert_eq!(answer.body.len(), length);
    stop(api, &id, 1);
    let yaml = export(api, &id, "replay").text();
    assert!(yaml.contains("over_limit: true"), "{}", yaml.len());
    play(api, &json!({ "recording": id }));
    let refused = stage.open(Path::Forward).get(&format!("/bytes/{length}"));
    assert_eq!(refused.status, 404);
    assert!(refused.text().contains("was cut"), "{}", refused.text());
}

#[test]
fn a_tape_answers_its_scope_alone() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let session = json!({ "id": "s", "exchanges": [
        { "match": { "url": format!("http://{}/*", stage.plain.address) }, "body": { "from": "tape" } },
    ] });
    let path = "/v1/scopes/job/tape";
    let put = api.call("PUT", path, Some(&json!({ "session": session })));
    assert_eq!(put.status, 200, "{}", put.text());
    let get = |scope: Option<&str>| {
        let mut wire = stage.open(Path::Forward);
        let headers: Vec<_> = scope
            .map(|scope| ("X-Squall-Scope", scope))
            .into_iter()
            .collect();
        wire.request("GET", "/json", &headers, b"");
        wire.response()
    };
    assert_eq!(get(None).json()["of"], "the upstream");
    assert_eq!(get(Some("other")).json()["of"], "the upstream");
    assert_eq!(get(Some("job")).json(), json!({ "from": "tape" }));
    assert_eq!(api.call("GET", TAPE, None).status, 404);
}

#[test]
fn a_program_is_recorded_into_a_file_in_the_form_that_its_name_says() {
    let upstream = squall_tests::Upstream::plain();
    let dir = tempfile::TempDir::new().unwrap();
    let url = format!("http://{}/json", upstream.address);
    for (name, mark) in [("out.har", "\"log\""), ("out.yaml", "exchanges:")] {
        let file = dir.path().join(name);
        let output = squall(dir.path())
            .args(["run", "--quiet", "--record"])
            .arg(&file)
            .args(["--", "curl", "--silent", &url])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("1 exchange"), "{said}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(mark), "{text}");
        assert!(text.contains("of\\\":\\\"the upstream"), "{text}");
    }
    let file = dir.path().join("replay.yaml");
    let output = squall(dir.path())
        .args(["replay", "record", "--scope", "job", "--output"])
        .arg(&file)
        .args(["--", "curl", "--silent", &url])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("exchanges:")
    );
    let output = squall(dir.path())
        .args(["run", "--record", "/nowhere/at/all.har", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn recordings_are_begun_listed_ended_and_given_out_by_commands() {
    let stage = Stage::new();
    let dir = tempfile::TempDir::new().unwrap();
    let server = format!("http://{}", stage.daemon.api.address);
    let run = |arguments: &[&str]| {
        let output = squall(dir.path())
            .args(arguments)
            .args(["--server", &server])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        said
    };
    assert!(run(&["recordings", "list"]).contains("no recordings"));
    let id = run(&["recordings", "start", "--name", "an incident"]);
    assert_eq!(stage.open(Path::Forward).get("/json").status, 200);
    stage.daemon.api.wait_for_exchanges(1);
    assert!(run(&["recordings", "stop", &id]).contains("stopped, 1 exchange"));
    let listed = run(&["recordings", "list"]);
    assert!(
        listed.contains("an incident") && listed.contains(&id),
        "{listed}"
    );
    let yaml = run(&["recordings", "export", &id]);
    assert!(yaml.contains("name: \"an incident\""), "{yaml}");
    let har = run(&["recordings", "export", &id, "--format", "har"]);
    let har: Value = serde_json::from_str(&har).unwrap();
    assert_eq!(har["log"]["entries"].as_array().unwrap().len(), 1);
    for name in ["out.har", "out.yml"] {
        let file = dir.path().join(name);
        let file = file.to_str().unwrap();
        run(&["recordings", "export", &id, "--output", file]);
        let text = std::fs::read_to_string(file).unwrap();
        let is_har = serde_json::from_str::<Value>(&text).is_ok();
        assert_eq!(is_har, name == "out.har", "{text}");
    }
}
