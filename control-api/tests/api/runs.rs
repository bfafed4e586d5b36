//! Runs as clients of the API see them, carried out by a runner that does what a test says.

mod asking;
mod deeds;
mod ending;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use squall_control_api::access::{Token, TokenRole};
use squall_control_api::store::{DEFAULT_WORKSPACE, RunEventRow, Store, StorePlace};
use squall_harness::reach::{Pending, RequestedChaos, Rules};
use squall_harness::run::{CellRecord, CellState, CoverageRecord};
use squall_harness::runner::{Execute, RunContext, RunError, RunResult, RunSpec, SpecError};
use squall_proxy::chaos::Defaults;
use squall_proxy::upstream::HostPatterns;
use squall_tests::postgres::Postgres;
use tokio::sync::{Semaphore, mpsc};

use crate::bench::{Api, Event, EventStream, ask, eventually, executor};
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

impl Execute for Puppet {
    fn check(&self, spec: &RunSpec) -> Vec<SpecError> {
        executor().check(spec)
    }

    fn run<'a>(
        &'a self,
        spec: &'a RunSpec,
        context: RunContext<'a>,
    ) -> Pending<'a, Result<RunResult, RunError>> {
        Box::pin(async move {
            let wanted = RequestedChaos {
                run: context.run.to_owned(),
                rules: (spec.chaos.as_ref()).map_or(Rules::Nothing, |trial| trial.rules.clone()),
                seed: spec.seed,
                key: "prompt-1".to_owned(),
                trace: None,
                slot: None,
                after: None,
                connects_anew: false,
                tools: squall_profiles::tools::ToolNames::default(),
                tape: None,
            };
            context.reach.begin(context.scope, wanted).await?;
            context.tell.coverage(CoverageRecord {
                cells: 1,
                ..CoverageRecord::default()
            });
            context.tell.progress(1, 2).await;
            context.tell.cell(cell()).await;
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
            Ok(RunResult {
                passed,
                score,
                ..RunResult::default()
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
        let approval: Vec<_> = approval.iter().map(|glob| (*glob).to_owned()).collect();
        let approval = HostPatterns::new(&approval).expect("patterns");
        let api = Api::with_runs(store, defaults, Arc::new(puppet), approval).await;
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

    async fn events(&self, path: &str, last: Option<&str>) -> EventStream {
        let headers: Vec<_> = last
            .map(|last| ("last-event-id", last))
            .into_iter()
            .collect();
        self.api.stream(&format!("{path}/events"), &headers).await
    }

    /// All events of a run, which is over.
    async fn all_events(&self, path: &str) -> Vec<(i64, String, Value)> {
        numbered(self.events(path, None).await.rest().await)
    }
}

/// Number, name and data of events.
fn numbered(events: Vec<Event>) -> Vec<(i64, String, Value)> {
    let event = |event: Event| {
        let id = event.id.as_deref().expect("an id");
        let data = event.json();
        (id.parse().expect("a number"), event.name, data)
    };
    events.into_iter().map(event).collect()
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
        let counted = format!("squall_runs_total{{kind=\"chaos\",state=\"{state}\"}}");
        let metrics = bench.api.state.metrics.render().expect("renders");
        assert!(metrics.contains(&format!("{counted} 0")), "{metrics}");
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
        let counted = format!("{counted} 1");
        eventually("the run counted", async || {
            let metrics = bench.api.state.metrics.render().expect("renders");
            metrics.contains(&counted).then_some(())
        })
        .await;
    }
}

/// What is written of a run's end may be read before whoever wrote it has heard that it is.
#[tokio::test]
async fn who_hears_that_a_run_is_done_finds_it_over() {
    let store = Store::in_memory();
    let bench = Bench::with(store.clone(), Defaults::default(), &[]).await;
    let path = bench.ask().await;
    bench.begun().await;
    let running = bench.show(&path).await;
    let text = |member: &str| running[member].as_str().expect("a text").to_owned();
    let done = RunEventRow {
        ordinal: 100,
        name: "done".to_owned(),
        data: "{}".to_owned(),
    };
    let (run, daemon) = (text("id"), text("daemon"));
    let told = store.add_run_events(&run, &daemon, &[done], &[]).await;
    assert!(told.expect("written"));
    let hear = async {
        let mut events = bench.events(&path, None).await;
        while let Some(event) = events.next_named().await {
            if event.name == "done" {
                return bench.show(&path).await;
            }
        }
        panic!("nobody said that it is done");
    };
    let end = async {
        // The reader comes first.
        tokio::task::yield_now().await;
        bench.say(Word::Pass);
    };
    let (found, ()) = tokio::join!(hear, end);
    assert_eq!(found["state"], "passed", "{found}");
}

#[tokio::test]
async fn events_of_a_run_begin_at_its_start_and_resume() {
    let bench = Bench::new().await;
    let path = bench.ask().await;
    let mut events = bench.events(&path, None).await;
    for (ordinal, name) in (1..).zip(["state", "state", "progress", "cell"]) {
        let event = events.next_named().await.expect("an event");
        let expected = (Some(ordinal.to_string()), name);
        assert_eq!((event.id, event.name.as_str()), expected);
    }
    bench.say(Word::Pass);
    let rest = numbered(events.rest().await);
    let names: Vec<_> = rest
        .iter()
        .map(|(id, name, _)| (*id, name.as_str()))
        .collect();
    assert_eq!(names, [(5, "score"), (6, "state"), (7, "done")]);
    assert_eq!(rest[2].2["state"], "passed");
    for after in 0..=7_i64 {
        let stream = bench.events(&path, Some(&after.to_string())).await;
        let ids = numbered(stream.rest().await).into_iter().map(|(id, ..)| id);
        assert_eq!(ids.collect::<Vec<_>>(), (after + 1..=7).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn the_stream_of_all_events_reports_the_states_of_a_run() {
    let bench = Bench::new().await;
    let mut everything = bench.api.stream("/v1/events", &[]).await;
    let path = bench.ask().await;
    bench.say(Word::Pass);
    bench.over(&path).await;
    let events = everything.until("\"state\":\"passed\"").await;
    let states = events.iter().filter(|event| event.name == "run");
    assert_eq!(states.count(), 3, "{events:?}");
}

#[tokio::test]
async fn the_stream_of_all_events_reports_a_run_whose_daemon_is_gone() {
    let store = Store::in_memory();
    let lost = run("lost", "a daemon that is gone");
    add(&store, DEFAULT_WORKSPACE, &lost, -1_000).await;
    let bench = Bench::with(store, Defaults::default(), &[]).await;
    let mut everything = bench.api.stream("/v1/events", &[]).await;
    bench.api.state.runs.recover().await.expect("a store");
    let events = everything.until("\"state\":\"errored\"").await;
    assert_eq!(events.len(), 1, "{events:?}");
    for part in ["\"id\":\"lost\"", "its daemon ended"] {
        assert!(events[0].data.contains(part), "{part}: {events:?}");
    }
}
