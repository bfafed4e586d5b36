//! Runs as clients of the API see them, carried out by a runner that does what a test says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use http::Request;
use proptest::prelude::*;
use serde_json::{Value, json};
use squall_control_api::access::{Role, Token};
use squall_control_api::store::{DEFAULT_WORKSPACE, Place, Store};
use squall_control_api::{Approval, Order, RunError, Runner, Tools, Verdict, problem::Detail};
use squall_journal::reach::{Observe, Pending, Rules, Wanted};
use squall_journal::run::{CellRecord, CellState, CoverageRecord, RunKind};
use squall_proxy::chaos::Defaults;
use squall_tests::postgres::Postgres;
use tokio::sync::{Semaphore, mpsc};

use crate::bench::{Api, eventually};
use crate::store_runs::{add, run};

/// A runner that puts chaos in force, tells of a cell, and ends as it is told to.
struct Puppet {
    /// One word for each run that may end.
    words: tokio::sync::Mutex<mpsc::UnboundedReceiver<Word>>,
    begun: Arc<Semaphore>,
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Pass,
    Fail,
    Nothing,
    Error,
    /// An error with this in it.
    Leak(&'static str),
    Panic,
}

impl Runner for Puppet {
    fn kind(&self) -> RunKind {
        RunKind::Chaos
    }

    fn check(&self, order: &Order) -> Vec<Detail> {
        match order.chaos {
            Some(_) => Vec::new(),
            None => vec![Detail::at("/options/profile", "say which chaos")],
        }
    }

    fn run<'a>(
        &'a self,
        order: &'a Order,
        tools: Tools<'a>,
    ) -> Pending<'a, Result<Verdict, RunError>> {
        Box::pin(async move {
            let wanted = Wanted {
                run: order.id.clone(),
                rules: (order.chaos.as_ref()).map_or(Rules::Nothing, |trial| trial.rules.clone()),
                seed: order.seed,
                key: "prompt-1".to_owned(),
                trace: None,
                observe: Observe::Model,
                tools: Vec::new(),
                ttl: None,
            };
            tools.reach.begin(&order.scope, wanted).await?;
            tools.tell.coverage(CoverageRecord {
                cells: 1,
                ..CoverageRecord::default()
            });
            tools.tell.progress(1, 2).await;
            tools.tell.cell(cell()).await;
            self.begun.add_permits(1);
            let word = self.words.lock().await.recv().await;
            let (passed, score) = match word.unwrap_or(Word::Nothing) {
                Word::Pass => (Some(true), Some(100.0)),
                Word::Fail => (Some(false), Some(0.0)),
                Word::Nothing => (None, None),
                Word::Error => return Err(RunError::Agent("it is not there".to_owned())),
                Word::Leak(what) => return Err(RunError::Agent(format!("it said {what}"))),
                Word::Panic => panic!("a puppet was told to"),
            };
            Ok(Verdict {
                passed,
                score,
                ..Verdict::default()
            })
        })
    }
}

fn cell() -> CellRecord {
    CellRecord {
        invariant: "completes".to_owned(),
        scenario: "brownout".to_owned(),
        severity: "high".to_owned(),
        state: CellState::Passed,
        reason: None,
        faults_applied: 1,
        mutation: None,
        baseline_failed: false,
        evidence: Vec::new(),
    }
}

/// An API whose runs end when the test says how.
struct Bench {
    api: Api,
    words: mpsc::UnboundedSender<Word>,
    begun: Arc<Semaphore>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(Store::in_memory(), Defaults::default(), &[]).await
    }

    async fn with(store: Store, defaults: Defaults, approval: &[&str]) -> Self {
        let (words, receiver) = mpsc::unbounded_channel();
        let begun = Arc::new(Semaphore::new(0));
        let puppet = Puppet {
            words: tokio::sync::Mutex::new(receiver),
            begun: begun.clone(),
        };
        let approval = Approval::new(approval.iter().map(|glob| (*glob).to_owned()));
        let runners: Vec<Arc<dyn Runner>> = vec![Arc::new(puppet)];
        let api = Api::with_runs(store, defaults, runners, approval).await;
        Self { api, words, begun }
    }

    /// Asks for a run; its path.
    async fn ask(&self) -> String {
        let answer = self.api.post("/v1/runs", wish()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let path = answer.header("location").to_owned();
        assert_eq!(
            path,
            format!("/v1/runs/{}", answer.json()["id"].as_str().expect("an id"))
        );
        path
    }

    /// Waits until a run's runner is at work.
    async fn begun(&self) {
        self.begun.acquire().await.expect("open").forget();
    }

    fn say(&self, word: Word) {
        self.words.send(word).expect("the puppet listens");
    }

    async fn show(&self, path: &str) -> Value {
        self.api.get(path).await.json()
    }

    /// The run once it is over.
    async fn over(&self, path: &str) -> Value {
        eventually("the run's end", async || {
            let run = self.show(path).await;
            (run["finished_at"] != Value::Null).then_some(run)
        })
        .await
    }

    async fn events(&self, path: &str, last: Option<&str>) -> Events {
        let mut request = Request::builder()
            .uri(format!("{path}/events"))
            .header("host", "localhost:7071");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = self
            .api
            .send(request.body(Body::empty()).expect("a request"))
            .await;
        assert_eq!(response.status(), 200);
        Events {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }
}

fn suite() -> Value {
    json!({
        "name": "weather",
        "agent": { "endpoint": "http://agent.prod.example:8000/" },
        "golden_prompts": ["What is the weather?"],
        "invariants": [{ "type": "completes" }],
    })
}

fn wish() -> Value {
    json!({ "kind": "chaos", "suite": suite(), "options": { "profile": "brownout", "seed": 7 } })
}

struct Events {
    body: BodyDataStream,
    text: String,
}

impl Events {
    /// Id, name and data of the next event; `None` at the end.
    async fn next(&mut self) -> Option<(i64, String, Value)> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.map(str::trim).map(str::to_owned)
                };
                if let (Some(id), Some(name), Some(data)) =
                    (field("id:"), field("event:"), field("data:"))
                {
                    let data = serde_json::from_str(&data).expect("JSON");
                    return Some((id.parse().expect("a number"), name, data));
                }
            }
            let chunk = self.body.next().await?.expect("a chunk");
            self.text
                .push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
        }
    }

    async fn rest(mut self) -> Vec<(i64, String, Value)> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

#[tokio::test]
async fn a_run_ends_as_its_runner_says_and_leaves_no_chaos() {
    for (word, state, passed) in [
        (Word::Pass, "passed", json!(true)),
        (Word::Fail, "failed", json!(false)),
        (Word::Nothing, "inconclusive", Value::Null),
        (Word::Error, "errored", Value::Null),
        (Word::Panic, "errored", Value::Null),
    ] {
        let bench = Bench::new().await;
        let path = bench.ask().await;
        bench.begun().await;
        let running = bench.show(&path).await;
        assert_eq!(running["state"], "running");
        let scope = format!(
            "/v1/scopes/run-{}/chaos",
            running["id"].as_str().expect("an id")
        );
        assert_eq!(bench.show(&scope).await["profile"], "brownout");
        bench.say(word);
        let over = bench.over(&path).await;
        assert_eq!(
            (&over["state"], &over["passed"]),
            (&json!(state), &passed),
            "{over}"
        );
        assert_eq!(over["seed"], 7);
        assert_eq!(over["name"], "weather");
        assert_eq!(over["cells"], json!([cell()]));
        assert_eq!(over["coverage"]["cells"], 1);
        assert_eq!(over["error"] != Value::Null, state == "errored", "{over}");
        assert_eq!(bench.show(&scope).await["inherited"], true);
        let counted = format!("squall_runs_total{{kind=\"chaos\",state=\"{state}\"}} 1");
        eventually("the run counted", async || {
            let metrics = bench.api.state.metrics.render().expect("renders");
            metrics.contains(&counted).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn what_happens_in_a_run_is_told_from_its_beginning_and_resumes() {
    let bench = Bench::new().await;
    let path = bench.ask().await;
    let mut events = bench.events(&path, None).await;
    let mut names = Vec::new();
    for ordinal in 1..=4 {
        let (id, name, _) = events.next().await.expect("an event");
        assert_eq!(id, ordinal);
        names.push(name);
    }
    assert_eq!(names, ["state", "state", "progress", "cell"]);
    bench.say(Word::Pass);
    let rest = events.rest().await;
    let told: Vec<_> = rest
        .iter()
        .map(|(id, name, _)| (*id, name.as_str()))
        .collect();
    assert_eq!(told, [(5, "score"), (6, "state"), (7, "done")]);
    assert_eq!(rest[2].2["state"], "passed");
    for after in 0..=7_i64 {
        let again = bench
            .events(&path, Some(&after.to_string()))
            .await
            .rest()
            .await;
        let ids: Vec<_> = again.iter().map(|(id, ..)| *id).collect();
        assert_eq!(ids, (after + 1..=7).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_run_s_states_are_told_to_those_who_stream_everything() {
    let bench = Bench::new().await;
    let everything = everything(&bench).await;
    let path = bench.ask().await;
    bench.say(Word::Pass);
    bench.over(&path).await;
    let text = until(everything, "\"state\":\"passed\"").await;
    assert_eq!(text.matches("event: run").count(), 3, "{text}");
}

#[tokio::test]
async fn a_run_that_another_daemon_gave_up_is_told_to_those_who_stream_everything() {
    let store = Store::in_memory();
    let lost = run("lost", "a daemon that is gone");
    add(&store, DEFAULT_WORKSPACE, &lost, -1_000).await;
    let bench = Bench::with(store, Defaults::default(), &[]).await;
    let everything = everything(&bench).await;
    bench.api.state.runs.recover().await.expect("a store");
    let text = until(everything, "\"state\":\"errored\"").await;
    assert_eq!(text.matches("event: run").count(), 1, "{text}");
    for told in ["\"id\":\"lost\"", "its daemon ended"] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

/// What `GET /v1/events` tells from now on.
async fn everything(bench: &Bench) -> BodyDataStream {
    let request = Request::builder()
        .uri("/v1/events")
        .header("host", "localhost:7071");
    let request = request.body(Body::empty()).expect("a request");
    bench.api.send(request).await.into_body().into_data_stream()
}

/// All that is told until `text` is.
async fn until(mut body: BodyDataStream, text: &str) -> String {
    let mut told = String::new();
    while !told.contains(text) {
        let chunk = body.next().await.expect("more").expect("a chunk");
        told.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
    }
    told
}

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
    let place = Place::parse(&server.database("squall"), nowhere, nowhere).expect("a place");
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
    let told = bench.events(&path, None).await.rest().await;
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
async fn a_run_that_is_approved_says_so_while_it_waits_for_its_turn_and_who_did() {
    let bench = Bench::with(Store::in_memory(), Defaults::default(), &["weather"]).await;
    let boss = Token::new("boss", Role::Admin, "hunter2");
    let mut paths = Vec::new();
    for _ in 0..5 {
        paths.push(bench.ask().await);
    }
    bench.api.state.access.configure(vec![boss]);
    let bearer = [("authorization", "Bearer hunter2")];
    let mut approved = Value::Null;
    for path in &paths {
        let path = format!("{path}/approve");
        let answer = bench.api.ask("POST", &path, &bearer, "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        approved = answer.json();
    }
    assert_eq!(approved["state"], "awaiting_approval", "four run at once");
    let waits = "/v1/runs?state=awaiting_approval";
    let listed = bench.api.ask("GET", waits, &bearer, "").await.json();
    let listed = &listed["items"][0];
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
    let tokens =
        tokens.map(|(name, workspace)| Token::new(name, Role::Admin, name).of_workspace(workspace));
    bench.api.state.access.configure(tokens.into());
    let ask = async |who: &str, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {who}");
        let headers = [
            ("authorization", &*bearer),
            ("content-type", "application/json"),
        ];
        let answer = bench.api.ask(method, path, &headers, body.to_owned()).await;
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        answer
    };
    let asked = ask("blue", "POST", "/v1/runs", &wish().to_string()).await;
    bench.begun().await;
    ask("blue", "DELETE", "/v1/chaos?all=true", "").await;
    let path = asked.header("location").to_owned();
    let entry = eventually("the run's end in its workspace's log", async || {
        // Nobody else writes here.
        bench.api.state.audit.stop().await;
        let told = ask("blue", "GET", "/v1/audit?action=run%20ended", "").await;
        let entry = told.json()["items"][0].clone();
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
async fn runs_are_listed_newest_first_without_their_cells() {
    let bench = Bench::new().await;
    let mut paths = Vec::new();
    for word in [Word::Pass, Word::Fail, Word::Pass] {
        let path = bench.ask().await;
        bench.say(word);
        bench.over(&path).await;
        paths.push(path);
    }
    let ids = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().expect("items");
        items
            .iter()
            .map(|run| format!("/v1/runs/{}", run["id"].as_str().expect("an id")))
            .collect()
    };
    let first = bench.show("/v1/runs?limit=2").await;
    assert!(first["items"][0].get("cells").is_none(), "{first}");
    let cursor = first["next_cursor"].as_str().expect("more");
    let second = bench.show(&format!("/v1/runs?cursor={cursor}")).await;
    paths.reverse();
    assert_eq!([ids(&first), ids(&second)].concat(), paths);
    assert_eq!(ids(&bench.show("/v1/runs?state=failed").await), paths[1..2]);
    assert_eq!(
        ids(&bench.show("/v1/runs?kind=ci").await),
        Vec::<String>::new()
    );
    bench
        .api
        .get("/v1/runs?state=lost")
        .await
        .problem(400, "malformed");
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
    for (posted, pointer) in [
        (json!([]), ""),
        (json!({ "kind": "chaos" }), ""),
        (with("/kind", json!("chao")), "/kind"),
        (with("/kind", json!("contract")), "/kind"),
        (with("/suit", json!(1)), "/suit"),
        (with("/suite_name", json!("s")), "/suite_name"),
        (with("/suite/agent", json!(1)), "/suite/agent"),
        (
            with("/suite/golden_prompts", json!([])),
            "/suite/golden_prompts",
        ),
        (
            with("/options/profile", json!("brownot")),
            "/options/profile",
        ),
        (with("/options/profile", Value::Null), "/options/profile"),
        (with("/options/min_score", json!(101)), "/options/min_score"),
        (with("/options/sede", json!(1)), "/options/sede"),
        (
            with("/options/contract", json!("none")),
            "/options/contract",
        ),
    ] {
        let refused = bench.api.post("/v1/runs", posted.clone()).await;
        let pointers = refused.pointers(422, "invalid");
        assert!(
            pointers.contains(&pointer.to_owned()),
            "{posted}: {pointers:?}"
        );
    }
    let refused = bench.api.post("/v1/runs", with("/kind", json!("ci"))).await;
    let problem = refused.problem(422, "invalid");
    assert!(
        problem["detail"]
            .as_str()
            .expect("why")
            .contains("there are chaos"),
        "{problem}"
    );
}

#[tokio::test]
async fn variables_that_are_sent_with_a_suite_are_used_and_never_told() {
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
        format!("{:?}", bench.events(&path, None).await.rest().await),
        bench.show("/v1/audit").await.to_string(),
    ];
    for told in told {
        assert!(!told.contains(VALUE), "{told}");
    }
}

#[tokio::test]
async fn the_hundred_and_first_run_that_is_not_over_is_refused() {
    let bench = Bench::new().await;
    for _ in 0..100 {
        bench.ask().await;
    }
    let refused = bench.api.post("/v1/runs", wish()).await;
    refused.problem(429, "rate-limited");
    assert!(!refused.header("retry-after").is_empty());
    bench.api.state.runs.stop_all().await;
    bench.ask().await;
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

/// What may be done to a run from outside.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Approve,
    Cancel,
    EndAll,
    Word(Word),
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        2 => Just(Deed::Approve),
        1 => Just(Deed::Cancel),
        1 => Just(Deed::EndAll),
        2 => Just(Deed::Word(Word::Pass)),
        1 => Just(Deed::Word(Word::Fail)),
        1 => Just(Deed::Word(Word::Error)),
    ]
}

/// Whether a run may come from one state to the next.
fn is_drawn(from: &str, to: &str) -> bool {
    let over = ["passed", "failed", "inconclusive", "errored", "cancelled"];
    match from {
        "queued" => ["awaiting_approval", "running", "errored", "cancelled"].contains(&to),
        "awaiting_approval" => ["running", "errored", "cancelled"].contains(&to),
        "running" => over.contains(&to),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is done to runs at once, in whatever order: each goes its way, is told of without holes,
    /// is over in the end, and leaves no chaos.
    #[test]
    fn runs_go_their_way_whatever_is_done_to_them(
        deeds in prop::collection::vec((0_usize..3, any_deed()), 0..12),
        approval in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let failure: Mutex<Option<String>> = Mutex::default();
        runtime.block_on(async {
            let globs: &[&str] = if approval { &["*"] } else { &[] };
            let bench = Bench::with(Store::in_memory(), Defaults::default(), globs).await;
            let mut paths = Vec::new();
            for _ in 0..3 {
                paths.push(bench.ask().await);
            }
            let done = deeds.iter().map(async |(which, deed)| {
                let path = &paths[*which];
                match deed {
                    Deed::Approve => {
                        let answer = bench.api.post(&format!("{path}/approve"), json!({})).await;
                        assert!([200, 409].contains(&answer.status), "{answer:?}");
                    }
                    Deed::Cancel => {
                        let answer = bench.api.post(&format!("{path}/cancel"), json!({})).await;
                        assert!([200, 409].contains(&answer.status), "{answer:?}");
                    }
                    Deed::EndAll => drop(bench.api.delete("/v1/chaos?all=true").await),
                    Deed::Word(word) => bench.say(*word),
                }
            });
            futures_util::future::join_all(done).await;
            bench.api.state.runs.stop_all().await;
            for path in &paths {
                let over = bench.over(path).await;
                let events = bench.events(path, None).await.rest().await;
                let ids: Vec<_> = events.iter().map(|(id, ..)| *id).collect();
                assert_eq!(ids, (1..=i64::try_from(ids.len()).expect("few")).collect::<Vec<_>>());
                let states: Vec<_> = events
                    .iter()
                    .filter(|(_, name, _)| name == "state")
                    .map(|(_, _, data)| data["state"].as_str().expect("a state").to_owned())
                    .collect();
                for pair in states.windows(2) {
                    if !is_drawn(&pair[0], &pair[1]) {
                        *failure.lock().expect("no panic") = Some(format!("{states:?}"));
                    }
                }
                assert_eq!(states.first().map(String::as_str), Some("queued"));
                assert_eq!(states.last().map(String::as_str), over["state"].as_str());
                assert_eq!(events.last().map(|(_, name, _)| name.as_str()), Some("done"));
            }
            let left = bench.api.state.chaos.list();
            assert!(left.iter().all(|scope| scope.profile == "none"), "{left:?}");
        });
        let failure = failure.into_inner().expect("no panic");
        prop_assert!(failure.is_none(), "{failure:?}");
    }
}
