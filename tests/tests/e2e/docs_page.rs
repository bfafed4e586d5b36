//! The page that describes the control API, in Chromium.

use serde_json::{Value, json};
use squall_tests::Daemon;
use squall_tests::daemon::OPERATOR_TOKEN;
use squall_tests::program::{client, told};

#[test]
fn the_page_shows_every_operation_asks_nobody_else_and_keeps_no_token() {
    let daemon = Daemon::start(&json!({ "api": { "tokens": [
        { "name": "ci", "role": "operator", "token": "${OPERATOR_TOKEN}" },
    ] } }));
    let body = json!({ "profile": "api_outage", "seed": 7 }).to_string();
    let fields = json!({ "scope": "from-a-page", "body": body }).to_string();
    let url = format!("http://{}/docs", daemon.api.address);
    let mut command = client("docs_page.mjs");
    command.args(["--url", &url, "--operation", "put_scope_chaos"]);
    command.args(["--token", OPERATOR_TOKEN, "--data", &fields]);
    let told = told(&mut command);
    assert_eq!(told["ok"], true, "{told}");
    assert_eq!(told["complaints"], json!([]));

    let page = daemon.api.call("GET", "/docs", None);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let origin = format!("http://{}/", daemon.api.address);
    let asked = told["asked"].as_array().unwrap();
    let foreign = asked.iter().filter(|url| {
        let url = url.as_str().unwrap();
        !url.starts_with(&origin) && url != "data:,"
    });
    assert_eq!(foreign.count(), 0, "{asked:?}");

    let document = daemon.api.get("/openapi.json");
    let mut described = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            described.push(json!({
                "id": operation["operationId"],
                "method": method.to_uppercase(),
                "path": path,
                "role": operation["x-squall-role"],
            }));
            let id = operation["operationId"].as_str().unwrap();
            let drawn = &told["opened"][id];
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names: Vec<_> = parameters.map(|one| one["name"].clone()).collect();
            assert_eq!(drawn["parameters"], json!(names), "{id}");
            let mut statuses: Vec<_> = operation["responses"].as_object().unwrap().keys().collect();
            statuses.sort();
            assert_eq!(drawn["statuses"], json!(statuses), "{id}");
        }
    }
    let mut shown = told["shown"].as_array().unwrap().clone();
    shown.sort_by_key(Value::to_string);
    described.sort_by_key(Value::to_string);
    assert_eq!(shown, described);
    let opened = told["text"].as_str().unwrap();
    for member in ["seed", "network_faults", "Retry-After"] {
        assert!(opened.contains(member), "no {member} in {opened}");
    }

    assert_eq!(told["found"], json!(["end_chaos", "end_scope_chaos"]));
    assert_eq!(told["none"], json!([]));

    // A call that is tried there.
    let answer = told["answer"].as_str().unwrap();
    assert!(answer.starts_with("200 "), "{answer}");
    assert!(answer.contains("api_outage"), "{answer}");
    assert_eq!(told["kept"], json!([0, 0, ""]));
    assert!(!told["asked"].to_string().contains(OPERATOR_TOKEN));
}
