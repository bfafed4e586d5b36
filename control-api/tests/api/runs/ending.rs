//! How runs are approved, cancelled and cut short.

use super::*;

#[tokio::test]
async fn cancelling_ends_chaos_first_and_illegal_moves_are_409() {
    let bench = Bench::new().await;
    let path = bench.ask().await;
    bench.begun().await;
    let approve = format!("{path}/approve");
    bench
        .api
        .post(&approve, json!({}))
        .await
        .problem(409, "conflict");
    let cancel = format!("{path}/cancel");
    let cancelled = bench.api.post(&cancel, json!({})).await;
    assert_eq!(
        (cancelled.status, &cancelled.json()["state"]),
        (200, &json!("cancelled"))
    );
    assert_eq!(cancelled.json()["reason"], "it was cancelled");
    assert_eq!(
        bench.api.state.chaos.list().len(),
        2,
        "the default scope, and the run's, ended"
    );
    assert!(
        bench
            .api
            .state
            .chaos
            .list()
            .iter()
            .all(|scope| scope.profile == "none")
    );
    bench
        .api
        .post(&cancel, json!({}))
        .await
        .problem(409, "conflict");
    bench
        .api
        .post(&approve, json!({}))
        .await
        .problem(409, "conflict");
    for path in ["/v1/runs/nothing/cancel", "/v1/runs/nothing/approve"] {
        bench
            .api
            .post(path, json!({}))
            .await
            .problem(404, "not-found");
    }
    let metrics = bench.api.state.metrics.render().expect("renders");
    assert!(metrics.contains("squall_runs_cut_short_total{kind=\"chaos\",reason=\"cancel\"} 1"));
    let audit = bench.api.get("/v1/audit").await.json();
    let entries = audit["items"].as_array().expect("entries").iter();
    let mut cancelled = entries.filter(|one| one["target"] == cancel && one["outcome"] == "done");
    let cancelled = cancelled.next().expect("an entry");
    assert!(cancelled["before"].is_string() && cancelled["after"].is_string());
    assert_ne!(cancelled["before"], cancelled["after"]);
}

#[tokio::test]
async fn cancelling_is_answered_while_the_store_is_away_and_written_when_it_is_back() {
    let mut server = Postgres::start();
    let nowhere = std::path::Path::new("/nowhere");
    let place = StorePlace::parse(&server.database("squall"), nowhere, nowhere).expect("a place");
    let store = Store::open(place).await.expect("a store");
    let bench = Bench::with(store, Defaults::default(), &[]).await;
    let path = bench.ask().await;
    bench.begun().await;
    server.stop();
    let cancelled = bench.api.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let scopes = bench.api.state.chaos.list();
    assert!(scopes.iter().all(|scope| scope.profile == "none"));
    // Its end cannot be written yet, so it is not told as one.
    for told in [cancelled.json(), bench.show(&path).await] {
        assert_eq!(told["state"], "running", "{told:#}");
        assert_eq!(told["reason"], "it was cancelled", "{told:#}");
        assert_eq!(told["cells"].as_array().map(Vec::len), Some(1), "{told:#}");
    }
    server.start_again();
    let over = bench.over(&path).await;
    assert_eq!(over["state"], "cancelled", "{over:#}");
    let told = bench.all_events(&path).await;
    assert_eq!(told.last().expect("events").1, "done", "{told:?}");
}

#[tokio::test]
async fn what_the_config_lists_waits_for_a_yes() {
    for (glob, waits) in [
        ("weather", true),
        ("*.prod.example", true),
        ("*.staging.example", false),
    ] {
        let bench = Bench::with(Store::in_memory(), Defaults::default(), &[glob]).await;
        let path = bench.ask().await;
        if waits {
            assert_eq!(
                bench.show(&path).await["state"],
                "awaiting_approval",
                "{glob}"
            );
            assert_eq!(bench.begun.available_permits(), 0);
            let approved = bench.api.post(&format!("{path}/approve"), json!({})).await;
            assert_eq!(approved.status, 200, "{approved:?}");
            let approved = approved.json();
            assert_eq!(approved["state"], "running");
            assert!(approved["approved_at"].is_string(), "{approved:#}");
            assert_eq!(
                approved["approved_by"],
                Value::Null,
                "no token was asked for"
            );
        }
        bench.begun().await;
        bench.say(Word::Pass);
        assert_eq!(bench.over(&path).await["state"], "passed", "{glob}");
        let metrics = bench.api.state.metrics.render().expect("renders");
        assert!(
            !metrics.contains("squall_runs_cut_short_total{"),
            "{metrics}"
        );
    }
    let bench = Bench::with(Store::in_memory(), Defaults::default(), &["*"]).await;
    let path = bench.ask().await;
    let cancelled = bench.api.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(cancelled.json()["state"], "cancelled");
    assert_eq!(cancelled.json()["started_at"], Value::Null);
}

#[tokio::test]
async fn a_suite_that_names_a_listed_host_in_any_form_awaits_approval() {
    let listed = ["127.0.0.1:8000", "*.prod.example"];
    let bench = Bench::with(Store::in_memory(), Defaults::default(), &listed).await;
    for (field, url, waits) in [
        ("endpoint", "http://127.0.0.1:8000/", true),
        ("endpoint", "http://localhost:8000/", true),
        ("endpoint", "http://LOCALHOST.:8000/", true),
        ("endpoint", "http://127.1:8000/", true),
        ("endpoint", "http://0x7f000001:8000/", true),
        ("endpoint", "http://2130706433:8000/", true),
        ("endpoint", "http://[::ffff:127.0.0.1]:8000/", true),
        ("endpoint", "http://127.0.0.1:8001/", false),
        ("endpoint", "http://192.0.2.1:8000/", false),
        ("reset_endpoint", "http://api.PROD.example./", true),
        ("model", "http://api.prod.example/v1", true),
        ("embeddings", "http://127.1:8000/v1", true),
        ("tools", "http://0x7f.1:8000/book*", true),
        ("tools", "https://*.prod.example/book*", true),
        ("tools", "https://*.staging.example/book*", false),
    ] {
        let mut wish = wish();
        let suite = &mut wish["suite"];
        suite["agent"]["endpoint"] = json!("http://192.0.2.1/");
        match field {
            "tools" => suite["tools"] = json!({ "shop": { "match_url": [url] } }),
            "model" | "embeddings" => suite[field] = json!({ "name": "m", "base_url": url }),
            _ => suite["agent"][field] = json!(url),
        }
        let taken = bench.api.post("/v1/runs", wish).await;
        assert_eq!(taken.status, 201, "{field} {url}: {taken:?}");
        let run = taken.json();
        let state = if waits { "awaiting_approval" } else { "queued" };
        assert_eq!(run["state"], state, "{field} {url}");
        let cancel = format!("/v1/runs/{}/cancel", run["id"].as_str().expect("an id"));
        assert_eq!(bench.api.post(&cancel, json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn a_run_that_is_approved_says_so_while_it_waits_for_its_turn_and_who_did() {
    let bench = Bench::with(Store::in_memory(), Defaults::default(), &["weather"]).await;
    let boss = Token::new("boss", TokenRole::Admin, "hunter2");
    let mut paths = Vec::new();
    for _ in 0..5 {
        paths.push(bench.ask().await);
    }
    bench.api.state.access.configure(vec![boss]);
    let mut approved = Value::Null;
    for path in &paths {
        let path = format!("{path}/approve");
        let answer = ask(&bench.api, "hunter2", "POST", &path, &json!({})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        approved = answer.json();
    }
    assert_eq!(approved["state"], "awaiting_approval", "four run at once");
    let waits = "/v1/runs?state=awaiting_approval";
    let listed = ask(&bench.api, "hunter2", "GET", waits, &json!({})).await;
    let listed = &listed.json()["items"][0];
    assert_eq!(listed["id"], approved["id"], "{listed:#}");
    for run in [listed, &approved] {
        assert!(run["approved_at"].is_string(), "{run:#}");
        assert_eq!(run["approved_by"], "boss", "{run:#}");
    }
}

#[tokio::test]
async fn the_log_of_a_workspace_tells_how_its_runs_were_ended() {
    let bench = Bench::new().await;
    let tokens = [("boss", "default"), ("blue", "blue")];
    let tokens = tokens
        .map(|(name, workspace)| Token::new(name, TokenRole::Admin, name).of_workspace(workspace));
    bench.api.state.access.configure(tokens.into());
    let asked = ask(&bench.api, "blue", "POST", "/v1/runs", &wish()).await;
    bench.begun().await;
    let (all, null) = ("/v1/chaos?all=true", Value::Null);
    ask(&bench.api, "blue", "DELETE", all, &null).await;
    let path = asked.header("location").to_owned();
    let entry = eventually("the run's end in its workspace's log", async || {
        // Nobody else writes here.
        bench.api.state.audit.stop().await;
        let log = "/v1/audit?action=run%20ended";
        let log = ask(&bench.api, "blue", "GET", log, &null).await;
        let entry = log.json()["items"][0].clone();
        (entry["target"] == path).then_some(entry)
    })
    .await;
    assert!(entry["before"].is_string() && entry["after"].is_string());
    assert_ne!(entry["before"], entry["after"]);
}

#[tokio::test]
async fn whoever_ends_a_run_s_chaos_ends_the_run_and_it_says_why() {
    let bench = Bench::new().await;
    let path = bench.ask().await;
    bench.begun().await;
    bench.api.delete("/v1/chaos?all=true").await;
    let over = bench.over(&path).await;
    assert_eq!(
        (&over["state"], &over["reason"]),
        (&json!("cancelled"), &json!("all chaos was ended"))
    );
    let path = bench.ask().await;
    bench.begun().await;
    bench
        .api
        .state
        .chaos
        .end_all(Some("safety.halt: 9 faults within 60 s"));
    let over = bench.over(&path).await;
    assert_eq!(over["reason"], "safety.halt: 9 faults within 60 s");
    let metrics = bench.api.state.metrics.render().expect("renders");
    assert!(metrics.contains("squall_runs_cut_short_total{kind=\"chaos\",reason=\"halt\"} 1"));
}

#[tokio::test]
async fn a_run_may_take_no_longer_than_chaos_may_be_in_force() {
    let defaults = Defaults {
        ttl: Some(Duration::from_millis(50)),
        ..Defaults::default()
    };
    let bench = Bench::with(Store::in_memory(), defaults, &[]).await;
    let over = bench.over(&bench.ask().await).await;
    assert_eq!(over["state"], "cancelled");
    assert!(
        over["reason"]
            .as_str()
            .expect("why")
            .starts_with("safety.ttl"),
        "{over}"
    );
}

#[tokio::test]
async fn a_run_waits_a_day_for_approval_and_then_a_day_for_its_turn() {
    let pass = async |time: Duration| {
        // The store's threads go by the real clock: while this one is paused, none of them is asked.
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    };
    let bench = Bench::with(Store::in_memory(), Defaults::default(), &["weather"]).await;
    let waits = bench.ask().await;
    let mut approved = Vec::new();
    for _ in 0..5 {
        approved.push(bench.ask().await);
    }
    let (day, minute) = (Duration::from_hours(24), Duration::from_mins(1));
    let almost = Duration::from_mins(24 * 60 - 1);
    pass(almost).await;
    assert_eq!(bench.show(&waits).await["state"], "awaiting_approval");
    for path in &approved {
        let answer = bench.api.post(&format!("{path}/approve"), json!({})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    for _ in 0..4 {
        bench.begun().await;
    }
    pass(2 * minute).await;
    let over = bench.over(&waits).await;
    assert_eq!(over["state"], "cancelled", "{over:#}");
    let why = "it waited for approval for 24 hours, the longest time that a run waits";
    assert_eq!(over["reason"], why);
    let late = bench.api.post(&format!("{waits}/approve"), json!({})).await;
    late.problem(409, "conflict");
    let last = approved.pop().expect("a run");
    assert_eq!(bench.show(&last).await["state"], "awaiting_approval");
    pass(day).await;
    let over = bench.over(&last).await;
    assert_eq!(over["state"], "cancelled", "{over:#}");
    let why = "it waited for its turn for 24 hours, the longest time that a run waits";
    assert_eq!(over["reason"], why);
    let running = bench.show(&approved[0]).await;
    assert_eq!(running["state"], "running", "those under way go on");
    let metrics = bench.api.state.metrics.render().expect("renders");
    assert!(metrics.contains("squall_runs_cut_short_total{kind=\"chaos\",reason=\"waited\"} 2"));
}
