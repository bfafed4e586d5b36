use serde_json::{Value, json};
use squall_control_api::TrustConfig;

use crate::bench::Api;

const SUITE: &str = "\
# Kept as it is.
agent: { endpoint: http://127.0.0.1:8000/invoke }
golden_prompts: [What is the weather?]
invariants: [{ type: completes }]
contract: bookings
";

fn suite() -> Value {
    json!({
        "agent": { "endpoint": "http://127.0.0.1:8000/invoke" },
        "golden_prompts": ["What is the weather?"],
        "invariants": [{ "type": "completes" }],
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut suite = suite();
    let (parent, name) = member.rsplit_once('/').expect("a pointer");
    suite.pointer_mut(parent).expect("a parent")[name] = value;
    suite
}

#[tokio::test]
async fn a_suite_is_put_shown_in_both_forms_and_deleted() {
    let api = Api::new();
    let put = api.put_yaml("/v1/suites/weather", SUITE).await;
    assert_eq!(put.status, 201, "{put:?}");
    assert_eq!(put.json(), json!({ "name": "weather", "version": 1 }));
    let shown = api.get("/v1/suites/weather").await;
    assert_eq!(shown.header("etag"), put.header("etag"));
    assert_eq!(shown.header("squall-document-version"), "1");
    assert_eq!(shown.json()["contract"], "bookings");
    let text = api.get_yaml("/v1/suites/weather").await;
    assert_eq!(text.body, SUITE);
    let known = [("if-none-match", shown.header("etag"))];
    let again = api.ask("GET", "/v1/suites/weather", &known, "").await;
    assert_eq!(again.status, 304);
    assert_eq!(api.delete("/v1/suites/weather").await.status, 204);
    api.get("/v1/suites/weather")
        .await
        .problem(404, "not-found");
    api.delete("/v1/suites/weather")
        .await
        .problem(404, "not-found");
}

#[tokio::test]
async fn a_put_document_is_answered_with_warnings() {
    let api = Api::new();
    let mut suite = suite();
    suite["advanced"] = json!({ "skip_rules": ["x"] });
    let contract = json!({ "invariants": [{ "id": "a", "type": "completes" }], "chaos_matrix": [{ "name": "clean" }] });
    let no_chaos = "no scenario of contract `c` has any chaos in it";
    for (path, document, pointer, part) in [
        (
            "/v1/suites/s",
            suite,
            "/advanced/skip_rules",
            "changes nothing",
        ),
        ("/v1/contracts/c", contract, "/chaos_matrix/0", no_chaos),
    ] {
        let put = api.put(path, document).await;
        assert_eq!(put.status, 201, "{put:?}");
        let warning = &put.json()["warnings"][0];
        assert_eq!(warning["pointer"], pointer);
        let detail = warning["detail"].as_str().expect("a sentence");
        assert!(detail.contains(part), "{detail}");
    }
}

#[tokio::test]
async fn every_put_is_a_version_and_edits_are_guarded() {
    let api = Api::new();
    let path = "/v1/contracts/bookings";
    let contract = |max: u32| json!({ "invariants": [{ "id": "bounded", "type": "max_calls", "tool": "x", "max": max }] });
    let first = api.put(path, contract(1)).await;
    let second = api.put(path, contract(2)).await;
    assert_eq!((first.status, second.status), (201, 200));
    assert_eq!(second.json()["version"], 2);
    let json = ("content-type", "application/json");
    let stale = [json, ("if-match", first.header("etag"))];
    let refused = api.ask("PUT", path, &stale, contract(3).to_string()).await;
    refused.problem(412, "precondition-failed");
    let fresh = [json, ("if-match", second.header("etag"))];
    let third = api.ask("PUT", path, &fresh, contract(3).to_string()).await;
    assert_eq!(third.json()["version"], 3);
    let exists = [json, ("if-none-match", "*")];
    let refused = api.ask("PUT", path, &exists, contract(4).to_string()).await;
    refused.problem(412, "precondition-failed");
    let old = api.get("/v1/contracts/bookings?version=1").await;
    assert_eq!(old.body, contract(1).to_string());
    api.get("/v1/contracts/bookings?version=9")
        .await
        .problem(404, "not-found");
    api.delete(path).await;
    let back = api.put(path, contract(3)).await;
    assert_eq!((back.status, &back.json()["version"]), (201, &json!(5)));
}

#[tokio::test]
#[rustfmt::skip]
async fn an_invalid_suite_is_rejected_with_the_place() {
    let api = Api::new();
    let python = json!({ "type": "python", "endpoint": "a:b" });
    let start = json!({ "command": ["x"], "ready_url": "http://127.0.0.1:8000/" });
    let with_file = json!({ "sessions": [{ "file": "x" }] });
    let headers = json!({ "X-Api-Key": "k", "x": "${HOME}" });
    for (member, value, pointer, word) in [
        ("/goldn_prompts", json!([]), "", "did you mean `golden_prompts`?"),
        ("/golden_prompts", json!([]), "", "is empty"),
        ("/agent/endpoint", json!("ftp://x"), "", "no absolute URL"),
        ("/agent/type", json!("telepathy"), "", "expected one of `http`"),
        ("/agent", python, "/type", "safety.commands"),
        ("/agent/start", start, "", "safety.commands"),
        ("/agent/reset_function", json!("a:b"), "", "safety.commands"),
        ("/contract", json!("./contract.yaml"), "", "names a file"),
        ("/contract", json!({ "invariant": [] }), "/invariant", "did you mean"),
        ("/replays", with_file, "/sessions/0/file", "names a file"),
        ("/agent/headers", headers.clone(), "/X-Api-Key", "holds a secret"),
        ("/agent/headers", headers, "/x", "api.env"),
        ("/model", json!({ "api_key": "k" }), "/api_key", "key"),
    ] {
        let document = with(member, value);
        let refused = api.put("/v1/suites/s", document.clone()).await;
        let problem = refused.problem(422, "invalid");
        let pointer = format!("{member}{pointer}");
        let mut errors = problem["errors"].as_array().expect("errors").iter();
        let is_reported = errors.any(|error| {
            error["pointer"] == pointer && error["detail"].as_str().expect("a text").contains(word)
        });
        assert!(is_reported, "{document} at {pointer}: {problem}");
    }
    let list = api.put("/v1/suites/s", json!([])).await;
    assert_eq!(list.pointers(422, "invalid"), [""]);
    let name = "x".repeat(65);
    for name in [&*name, "a%20b", "a%2Fb", "-a", ".a"] {
        api.put(&format!("/v1/suites/{name}"), suite())
            .await
            .problem(422, "invalid");
    }
    assert_eq!(api.get("/v1/suites").await.json()["items"], json!([]));
}

#[tokio::test]
async fn variables_of_a_suite_may_be_sent_with_it_and_are_not_kept() {
    let api = Api::new();
    let text = SUITE.replace("http://127.0.0.1:8000/invoke", "'http://h/${WHERE}'");
    let sent = async |variables: Value| {
        let form = [("content-type", "application/vnd.squall.suite+json")];
        let document = json!({ "document": text, "variables": variables });
        let body = document.to_string();
        api.ask("PUT", "/v1/suites/s", &form, body).await
    };
    let refused = sent(json!({ "OTHER": "hush-hush" })).await;
    let problem = refused.problem(422, "invalid");
    assert!(problem.to_string().contains("WHERE"), "{problem}");
    let put = sent(json!({ "WHERE": "hush-hush" })).await;
    assert_eq!(put.status, 201, "{put:?}");
    let shown = api.get_yaml("/v1/suites/s").await;
    assert_eq!(shown.body, text.as_bytes());
    let log = api.get("/v1/audit").await.json().to_string();
    assert!(!log.contains("hush-hush"), "{log}");
    let form = [("content-type", "application/vnd.squall.suite+json")];
    let contract = json!({ "document": "{}", "variables": {} }).to_string();
    let refused = api.ask("PUT", "/v1/contracts/c", &form, contract).await;
    refused.problem(415, "unsupported-type");
}

#[tokio::test]
async fn programs_may_be_started_where_the_config_says_so() {
    let api = Api::new();
    api.state.trust.configure(TrustConfig {
        commands: true,
        ..TrustConfig::default()
    });
    let start = json!({ "command": ["x"], "ready_url": "http://127.0.0.1:8000/" });
    let starts = with("/agent/start", start);
    assert_eq!(api.put("/v1/suites/s", starts).await.status, 201);
}

#[test]
fn a_document_is_bounded_in_size_depth_and_aliases() {
    // A thread like those of the daemon: the parser recurses.
    let thread = std::thread::Builder::new().stack_size(8 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let checked = thread.spawn(move || runtime.block_on(bounded_in_size_depth_and_aliases()));
    checked.expect("a thread").join().expect("it is bounded");
}

async fn bounded_in_size_depth_and_aliases() {
    let api = Api::new();
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (last, this) in ["ab", "bc", "cd", "de", "ef", "fg"].map(|pair| pair.split_at(1)) {
        let ten = vec![format!("*{last}"); 10].join(", ");
        bomb.push_str(&[this, ": &", this, " [", &ten, "]\n"].concat());
    }
    for text in [
        deep.as_str(),
        &bomb,
        "a: 1\n---\nb: 2\n",
        "a: [",
        "a: 1\na: 2\n",
    ] {
        let refused = api.put_yaml("/v1/suites/s", text).await;
        refused.problem(400, "malformed");
    }
    for path in ["/v1/chaos", "/v1/scopes/s/tape"] {
        let refused = api.put_yaml(path, &bomb).await.problem(400, "malformed");
        assert!(refused.to_string().contains("alias"), "{refused}");
    }
    let json = [("content-type", "application/json")];
    for path in [
        "/v1/suites/s",
        "/v1/contracts/s",
        "/v1/replays/s",
        "/v1/profiles/s",
        "/v1/chaos",
        "/v1/scopes/s/tape",
    ] {
        // Each parser has a bound of its own further down.
        for levels in [70, 200, 3_000] {
            let deep = ["[".repeat(levels), "]".repeat(levels)].concat();
            let deep = format!("{{\"chaos\": {deep}}}");
            for answer in [
                api.ask("PUT", path, &json, deep.clone()).await,
                api.put_yaml(path, &deep).await,
            ] {
                let refused = answer.problem(400, "malformed");
                let said = "the document is nested deeper than 64 levels";
                let detail = refused["detail"].as_str().expect("a text");
                assert!(detail.ends_with(said), "{path}: {detail}");
            }
        }
        api.put_yaml(path, &bomb).await.problem(400, "malformed");
    }
    let long = format!("# {}\n", "x".repeat(1 << 20));
    api.put_yaml("/v1/suites/s", &long)
        .await
        .problem(413, "too-large");
}

#[tokio::test]
async fn a_replay_names_a_contract_that_exists() {
    let api = Api::new();
    let session = json!({ "id": "r", "input": "Weather?", "contract": "honest" });
    let put = async |path: &str, body: &Value| api.put(path, body.clone()).await;
    let refused = put("/v1/replays/r", &session).await;
    let refused = refused.problem(422, "invalid");
    assert_eq!(refused["errors"][0]["pointer"], "/contract", "{refused}");
    let contract =
        json!({ "invariants": [{ "id": "bounded", "type": "max_calls", "tool": "x", "max": 3 }] });
    assert_eq!(put("/v1/contracts/honest", &contract).await.status, 201);
    assert_eq!(put("/v1/replays/r", &session).await.status, 201);
}

#[tokio::test]
async fn a_profile_and_a_replay_are_put_under_their_own_name() {
    let api = Api::new();
    let profile = |name: &str| json!({ "name": name, "chaos": {} });
    let session = |id: &str| json!({ "id": id, "input": "Weather?" });
    for (path, document, told) in [
        ("/v1/profiles/a", profile("a"), None),
        ("/v1/profiles/a", profile("b"), Some("/name")),
        ("/v1/replays/a", session("a"), None),
        ("/v1/replays/a", session("b"), Some("/id")),
    ] {
        let put = api.put(path, document.clone()).await;
        let Some(pointer) = told else {
            assert_eq!(put.status, 201, "{document}: {put:?}");
            continue;
        };
        let refused = put.problem(422, "invalid");
        let error = &refused["errors"][0];
        assert_eq!(error["pointer"], pointer, "{refused}");
        let detail = error["detail"].as_str().expect("why");
        assert!(detail.contains("`b`") && detail.contains("`a`"), "{detail}");
    }
    // Theirs are titles.
    let mut titled = suite();
    titled["name"] = json!("Weather, by night");
    let contract = json!({ "name": "Weather, by night", "invariants": [{ "id": "done", "type": "completes" }] });
    for (path, document) in [("/v1/suites/a", titled), ("/v1/contracts/a", contract)] {
        let put = api.put(path, document).await;
        assert_eq!(
            (put.status, &put.json()["name"]),
            (201, &json!("a")),
            "{put:?}"
        );
    }
}

#[tokio::test]
async fn patterns_that_compile_to_too_much_are_rejected_with_the_place() {
    let api = Api::new();
    let rule = |rule: &str| format!("tool_faults:\n  - {{mode: slow, delay_ms: 1, {rule}}}\n");
    let suite = |invariant: &str| {
        format!(
            "agent: {{endpoint: 'http://a.test/'}}\ngolden_prompts: [hello]\n\
             invariants:\n  - {invariant}\n"
        )
    };
    let long = format!(
        "match_url: 'http://{}{}/'",
        "x".repeat(9_000),
        "{a,b,c,d,e,f,g}".repeat(3)
    );
    let braces = format!("tool: '{}'", "{a,b}".repeat(20));
    let deep = format!("tool: '{}'", "{".repeat(5_000));
    let patterns = format!(
        "{{type: excludes_pattern, patterns: [{}]}}",
        "a, ".repeat(400)
    );
    let around = format!("{{type: regex, pattern: '{}'}}", "(?=a)".repeat(2_000));
    let schema = (0..20).map(|n| {
        let (here, next) = (n, n + 1);
        format!("d{here}: {{allOf: [{{$ref: '#/$defs/d{next}'}}, {{$ref: '#/$defs/d{next}'}}]}}, ")
    });
    let schema: String = schema.collect();
    let schema = format!(
        "{{type: json_schema, schema: {{$defs: {{{schema} d20: {{}}}}, $ref: '#/$defs/d0'}}}}"
    );
    let globs = "more than 25000 globs";
    let body = r"match_body: '\w{999}'";
    let path = "json: {$..*..*: 1}";
    for (text, pointer, word) in [
        (rule(&long), "match_url", "bytes of globs"),
        (rule(&braces), "tool", globs),
        (rule(&deep), "tool", "more than 100 pairs of braces"),
        (rule(body), "match_body", "compiles to more"),
        (rule(path), "json/$..*..*", "`..` may stand in it once"),
        (suite(&patterns), "patterns/300", "300 regular"),
        (suite(&around), "pattern", "more than 100 look-arounds"),
        (suite(&schema), "schema", "parts of JSON Schemas"),
    ] {
        let (path, parent) = if text.starts_with("tool_faults") {
            ("profiles", "/tool_faults/0")
        } else {
            ("suites", "/invariants/0")
        };
        let pointer = format!("{parent}/{pointer}");
        let answer = api.put_yaml(&format!("/v1/{path}/a"), &text).await;
        let problem = answer.problem(422, "invalid");
        let error = &problem["errors"][0];
        let detail = error["detail"].as_str().unwrap_or_default();
        assert_eq!(error["pointer"], pointer, "{detail:.300}");
        assert!(
            detail.starts_with("line ") && detail.contains(word),
            "{detail:.300}"
        );
        assert!(detail.len() < 5_000);
    }
}

#[tokio::test]
async fn at_most_a_hundred_errors_are_reported() {
    let api = Api::new();
    for text in [
        format!("tool_faults:\n{}", "  - {mode: sloww}\n".repeat(9_000)),
        format!("tool_faults:\n{}", "  - 1\n".repeat(9_000)),
        format!("tool_faults:\n{}", "  - {mode: '${A}'}\n".repeat(9_000)),
    ] {
        let problem = api.put_yaml("/v1/profiles/a", &text).await;
        let problem = problem.problem(422, "invalid");
        let errors = problem["errors"].as_array().expect("errors");
        assert_eq!(errors.len(), 100, "{}", errors[0]);
    }
}
