//! How runs are asked for and shown, and what is refused.

use super::*;

#[tokio::test]
async fn runs_are_listed_newest_first_without_their_cells() {
    let bench = Bench::new().await;
    let mut paths = Vec::new();
    for word in [Word::Pass, Word::Fail, Word::Pass] {
        let path = bench.ask().await;
        bench.say(word);
        bench.over(&path).await;
        paths.push(path);
    }
    let list = bench.show("/v1/runs").await;
    assert_eq!(list["items"][0]["cells"], json!([]), "{list}");
    let path = |id: String| format!("/v1/runs/{id}");
    let pages = bench.api.pages("/v1/runs", 2, "id", async || {}).await;
    paths.reverse();
    assert_eq!(pages.into_iter().map(path).collect::<Vec<_>>(), paths);
    let failed = bench.api.get("/v1/runs?state=failed").await.items("id");
    assert_eq!(
        failed.into_iter().map(path).collect::<Vec<_>>(),
        paths[1..2]
    );
    assert!(
        bench
            .api
            .get("/v1/runs?kind=ci")
            .await
            .items("id")
            .is_empty()
    );
    let unknown = bench.api.get("/v1/runs?state=lost").await;
    unknown.problem(400, "malformed");
}

#[tokio::test]
async fn the_versions_that_a_run_is_made_of_are_written_down() {
    let bench = Bench::new().await;
    let mut suite = suite();
    suite["contract"] = json!("bookings");
    suite["version"] = json!("2.1");
    let contract = json!({
        "invariants": [{ "id": "done", "type": "completes" }],
        "chaos_matrix": [{ "name": "clean" }, { "name": "outage", "extends": ["wide"] }],
    });
    let profile = json!({ "chaos": { "tool_faults": [{ "tool": "*", "mode": "error" }] } });
    let wide = json!({ "extends": ["api_outage", "mine"] });
    let wish = json!({ "kind": "chaos", "suite_name": "s", "options": { "profile": "mine" } });
    let refused = bench.api.post("/v1/runs", wish.clone()).await;
    assert_eq!(
        refused.pointers(422, "invalid"),
        ["/suite_name", "/options/profile"]
    );
    for _ in 0..2 {
        bench.api.put("/v1/suites/s", suite.clone()).await;
        suite["description"] = json!("another");
    }
    bench.api.put("/v1/profiles/mine", profile).await;
    bench.api.put("/v1/profiles/wide", wide).await;
    let refused = bench.api.post("/v1/runs", wish.clone()).await;
    assert_eq!(refused.pointers(422, "invalid"), ["/suite/contract"]);
    bench.api.put("/v1/contracts/bookings", contract).await;
    let run = bench.api.post("/v1/runs", wish).await.json();
    let documents = run["documents"].as_array().expect("documents");
    assert_eq!(documents[0]["own_version"], "2.1");
    let versions: Vec<_> = documents
        .iter()
        .map(|one| {
            (
                one["kind"].as_str(),
                one["name"].as_str(),
                one["version"].as_i64(),
            )
        })
        .collect();
    assert_eq!(
        versions,
        [
            (Some("suite"), Some("s"), Some(2)),
            (Some("contract"), Some("bookings"), Some(1)),
            (Some("profile"), Some("mine"), Some(1)),
            (Some("profile"), Some("wide"), Some(1)),
            (Some("profile"), Some("api_outage"), None),
        ]
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_place() {
    let bench = Bench::new().await;
    let with = |pointer: &str, value: Value| {
        let mut wish = wish();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        wish.pointer_mut(parent).expect("a parent")[name] = value;
        wish
    };
    for (posted, pointer) in [(json!([]), ""), (json!({ "kind": "chaos" }), "")] {
        let refused = bench.api.post("/v1/runs", posted).await;
        assert_eq!(refused.pointers(422, "invalid"), [pointer]);
    }
    for (member, value, pointer) in [
        ("/kind", json!("chao"), "/kind"),
        ("/kind", json!("mutation"), "/suite/mutations"),
        ("/kind", json!("contract"), "/suite/contract"),
        ("/suit", json!(1), "/suit"),
        ("/suite_name", json!("s"), "/suite_name"),
        ("/suite/agent", json!(1), "/suite/agent"),
        ("/suite/golden_prompts", json!([]), "/suite/golden_prompts"),
        ("/options/profile", json!("brownot"), "/options/profile"),
        ("/options/profile", Value::Null, "/options/profile"),
        ("/options/min_score", json!(101), "/options/min_score"),
        ("/options/sede", json!(1), "/options/sede"),
        ("/options/contract", json!("none"), "/options/contract"),
        ("/options/chaos", json!(true), "/options/chaos"),
    ] {
        let posted = with(member, value);
        let refused = bench.api.post("/v1/runs", posted.clone()).await;
        let pointers = refused.pointers(422, "invalid");
        assert!(
            pointers.contains(&pointer.to_owned()),
            "{posted}: {pointers:?}"
        );
    }
}

#[tokio::test]
async fn variables_that_are_sent_with_a_suite_are_used_and_never_shown() {
    const VALUE: &str = "hunter2-and-more";
    let bench = Bench::new().await;
    let mut wish = wish();
    wish["suite"]["agent"]["headers"] = json!({ "Authorization": "Bearer ${AGENT_TOKEN}" });
    wish["suite"]["golden_prompts"] = json!(["Say ${AGENT_TOKEN}."]);
    let refused = bench.api.post("/v1/runs", wish.clone()).await;
    assert_eq!(
        refused.pointers(422, "invalid"),
        [
            "/suite/agent/headers/Authorization",
            "/suite/golden_prompts/0"
        ]
    );
    for wrong in [json!([]), json!({ "1x": "v" }), json!({ "AGENT_TOKEN": 1 })] {
        wish["secrets"] = wrong;
        let refused = bench.api.post("/v1/runs", wish.clone()).await;
        let pointers = refused.pointers(422, "invalid");
        assert!(pointers.contains(&"/secrets".to_owned()), "{pointers:?}");
    }
    wish["secrets"] = json!({ "AGENT_TOKEN": VALUE });
    let taken = bench.api.post("/v1/runs", wish).await;
    assert_eq!(taken.status, 201, "{taken:?}");
    let path = taken.header("location").to_owned();
    bench.begun().await;
    bench.say(Word::Leak(VALUE));
    let over = bench.over(&path).await;
    assert_eq!(over["error"], "it said REDACTED");
    let told = [
        over.to_string(),
        format!("{:?}", bench.all_events(&path).await),
        bench.show("/v1/audit").await.to_string(),
    ];
    for told in told {
        assert!(!told.contains(VALUE), "{told}");
    }
}

#[tokio::test]
async fn runs_of_one_workspace_leave_room_and_turns_for_the_others() {
    let bench = Bench::new().await;
    let of =
        |workspace: &str| Token::new("t", TokenRole::Operator, workspace).of_workspace(workspace);
    bench
        .api
        .state
        .access
        .configure(["blue", "red"].map(of).into());
    let body = wish();
    let ask = async |whose: &str| ask(&bench.api, whose, "POST", "/v1/runs", &body).await;
    let answers = futures_util::future::join_all((0..117).map(|_| ask("blue"))).await;
    let (taken, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!((taken.len(), refused.len()), (100, 17));
    for refused in refused {
        let problem = refused.problem(429, "rate-limited");
        let limit = "the workspace `blue` may have 100 runs that are not over at a time; wait until \
                     one of them is, or cancel one";
        assert_eq!(problem["detail"], limit);
        assert!(!refused.header("retry-after").is_empty());
    }
    // Four of them are under way and end when they are told to; none of the others comes to its turn.
    for _ in 0..4 {
        bench.begun().await;
    }
    assert_eq!(ask("red").await.status, 201);
    bench.begun().await;
    bench.api.state.runs.stop_all().await;
    assert_eq!(ask("blue").await.status, 201);
}

#[tokio::test]
async fn four_runs_are_under_way_at_once() {
    let bench = Bench::new().await;
    let mut paths = Vec::new();
    for _ in 0..6 {
        paths.push(bench.ask().await);
    }
    for _ in 0..4 {
        bench.begun().await;
    }
    let running = bench.show("/v1/runs?state=running").await;
    let queued = bench.show("/v1/runs?state=queued").await;
    let count = |page: &Value| page["items"].as_array().map(Vec::len);
    assert_eq!((count(&running), count(&queued)), (Some(4), Some(2)));
    for _ in 0..6 {
        bench.say(Word::Pass);
    }
    for path in paths {
        assert_eq!(bench.over(&path).await["state"], "passed");
    }
}
