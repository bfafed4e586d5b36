//! What the API reports of a profile before it is in force, and after it was replaced.

use serde_json::{Value, json};
use squall_tests::wire::Response;
use squall_tests::{Path, Stage};

/// Sends a profile's text, as an editor does.
fn send(stage: &Stage, method: &str, path: &str, text: &str) -> Response {
    let mut wire = squall_tests::Wire::connect(stage.daemon.api.address);
    let yaml = [("Content-Type", "application/yaml")];
    wire.request(method, path, &yaml, text.as_bytes());
    wire.response()
}

/// The rules that a dry run reports.
fn dry_run(stage: &Stage, query: &str, text: &str) -> Vec<Value> {
    let path = format!("/v1/profiles/draft/dry-run{query}");
    let report = send(stage, "POST", &path, text);
    assert_eq!(report.status, 200, "{}", report.text());
    report.json()["rules"].as_array().unwrap().clone()
}

#[test]
fn a_dry_run_counts_what_the_same_profile_does_in_force() {
    const HALF: &str =
        "tool_faults: [{ id: half, mode: error, match_url: '*/item/*', probability: 0.5 }]";
    let stage = Stage::new();
    let api = stage.daemon.api;
    let rules =
        json!([{ "id": "half", "mode": "error", "match_url": "*/item/*", "probability": 0.5 }]);
    api.activate(
        "/v1/chaos",
        &json!({ "chaos": { "tool_faults": rules }, "seed": 7 }),
    );
    let mut wire = stage.open(Path::Forward);
    let statuses: Vec<_> = (0..64)
        .map(|number| wire.get(&format!("/item/{number}")).status)
        .collect();
    let failed = statuses.iter().filter(|status| **status == 503).count();
    wire.get("/json");
    api.wait_for_exchanges(65);
    let of_seed = |query| {
        let rules = dry_run(&stage, query, HALF);
        assert_eq!(rules[0]["rule"], "half", "{rules:?}");
        assert_eq!(
            (&rules[0]["matched"], &rules[0]["estimated"]),
            (&json!(64), &json!(0)),
            "{rules:?}"
        );
        rules[0]["fires"].as_f64().unwrap()
    };
    #[expect(clippy::cast_precision_loss, reason = "at most 64")]
    let failed = failed as f64;
    assert!((of_seed("?seed=7") - failed).abs() < 0.01, "{failed}");
    assert!(
        (of_seed("?seed=8") - failed).abs() > 0.01,
        "another seed draws the same"
    );
    // Nothing was put in force, and nothing was written down.
    assert_eq!(api.get("/v1/chaos")["profile"], "inline");
}

#[test]
fn a_dry_run_says_what_it_cannot_know() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let mut wire = stage.open(Path::Forward);
    for _ in 0..8 {
        wire.post("/tool", "{\"a\":1}");
    }
    api.wait_for_exchanges(8);
    #[rustfmt::skip]
    let cases = [
        // rule, matched, unknown, its conditions, fires, estimated
        ("match_url: '*/tool'", 8, 0, json!([]), json!(8.0), 0),
        ("match_url: '*/other'", 0, 0, json!([]), json!(0.0), 0),
        ("methods: [GET]", 0, 0, json!([]), json!(0.0), 0),
        ("match_url: '*/tool', probability: 0.25", 8, 0, json!([]), json!(2.0), 8),
        ("match_url: '*/tool', after_calls: 5", 8, 0, json!([]), json!(3.0), 0),
        ("match_url: '*/tool', limit: 2", 8, 0, json!([]), json!(2.0), 0),
        ("mode: schema_drift, match_url: '*/tool', status: 2xx", 8, 0, json!([]), json!(8.0), 0),
        ("mode: schema_drift, match_url: '*/tool', status: 5xx", 0, 0, json!([]), json!(0.0), 0),
        ("match_url: '*/tool', match_body: a", 0, 8, json!(["match_body"]), json!(0.0), 0),
        ("match_url: '*/tool', headers: { x-a: '*' }", 0, 8, json!(["headers"]), json!(0.0), 0),
        ("match_url: '*/other', match_body: a", 0, 0, json!([]), json!(0.0), 0),
        ("match_url: '*/tool', armed_by: { match_url: '*/other' }", 8, 0, json!([]), json!(null), 0),
    ];
    for (rule, matched, unknown, conditions, fires, estimated) in cases {
        let mode = if rule.contains("mode:") {
            ""
        } else {
            "mode: error, "
        };
        let text = format!("tool_faults: [{{ {mode}{rule} }}]");
        let found = dry_run(&stage, "", &text).remove(0);
        let expected = json!({
            "matched": matched, "unknown": unknown, "unknown_conditions": conditions, "fires": fires,
            "estimated": estimated,
        });
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&found[member], value, "{member} of {rule}: {found}");
        }
    }
    // The errors of a PUT, in the same lines.
    let broken = "tool_faults:\n  - mode: eror\n";
    let dry = send(&stage, "POST", "/v1/profiles/draft/dry-run", broken);
    let put = send(&stage, "PUT", "/v1/profiles/draft", broken);
    assert_eq!((dry.status, dry.json()), (422, put.json()));
    assert!(dry.text().contains("line 2, column 11"), "{}", dry.text());
}

#[test]
fn the_history_of_a_profile_names_its_authors() {
    const PATH: &str = "/v1/profiles/draft";
    let tokens = json!({ "api": { "tokens": [{ "name": "ada", "role": "admin", "token": "${OPERATOR_TOKEN}" }] } });
    let stage = Stage::with(&tokens, squall_tests::upstream::standard::serve);
    let bearer = format!("Bearer {}", squall_tests::daemon::OPERATOR_TOKEN);
    let call = |method: &str, path: &str, text: &str| {
        let mut wire = squall_tests::Wire::connect(stage.daemon.api.address);
        let headers = [
            ("Content-Type", "application/yaml"),
            ("Authorization", &*bearer),
        ];
        wire.request(method, path, &headers, text.as_bytes());
        wire.response()
    };
    for text in ["# one\n", "# two\n", "# two\n"] {
        let put = call("PUT", PATH, text);
        assert!([200, 201].contains(&put.status), "{}", put.text());
    }
    assert_eq!(call("DELETE", PATH, "").status, 204);
    let listed = call("GET", "/v1/profiles/draft/versions", "").json();
    let items = listed["items"].as_array().unwrap().iter();
    let lines: Vec<_> = items
        .map(|one| {
            (
                one["version"].clone(),
                one["created_by"].clone(),
                one["deleted"].clone(),
            )
        })
        .collect();
    let line = |version: u64, deleted: bool| (json!(version), json!("ada"), json!(deleted));
    assert_eq!(
        lines,
        [line(3, true), line(2, false), line(1, false)],
        "{listed}"
    );
    assert_eq!(
        call("GET", "/v1/profiles/draft?version=1", "").text(),
        "# one\n"
    );
    // A built-in profile has no versions, an unknown one no list.
    let builtin = call("GET", "/v1/profiles/api_outage/versions", "").json();
    assert_eq!(builtin["items"], json!([]));
    assert_eq!(call("GET", "/v1/profiles/nothing/versions", "").status, 404);
}
