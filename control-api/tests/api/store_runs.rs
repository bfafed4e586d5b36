//! What the store promises of runs, on each database; [`crate::store`] has the list.

use squall_control_api::store::{
    Abandoned, DEFAULT_WORKSPACE, NewRun, RecordedRow, Retain, RunEventRow, RunFilter, RunStep,
    Store,
};
use squall_harness::run::{
    CellRecord, CellState, CoverageRecord, EvidenceRecord, InvariantRecord, PartOf, RunKind,
    RunRecord, RunState, ScoresRecord, SearchRecord,
};

use crate::store::Ground;
use crate::store_recordings::recorded;

pub(crate) fn run(id: &str, daemon: &str) -> RunRecord {
    RunRecord {
        id: id.to_owned(),
        kind: RunKind::Chaos,
        name: "weather\0".to_owned(),
        state: RunState::Queued,
        score: None,
        passed: None,
        coverage: CoverageRecord::default(),
        scores: ScoresRecord::default(),
        cells: Vec::new(),
        scenarios: Vec::new(),
        recoveries: Vec::new(),
        search: Some(SearchRecord {
            generations: 1,
            invocations: 10,
            dollars: None,
            failed: vec![2],
            ended: "all generations were executed".to_owned(),
        }),
        stability: None,
        distributions: Vec::new(),
        replays: Vec::new(),
        exploration: None,
        load: None,
        crew: Vec::new(),
        shrunk: Vec::new(),
        comparison: None,
        warnings: Vec::new(),
        checks: Vec::new(),
        seed: u64::MAX,
        created_at: "2026-11-22T12:00:00.000Z".to_owned(),
        created_by: None,
        invariants: Vec::new(),
        approved_at: None,
        approved_by: None,
        started_at: None,
        finished_at: None,
        error: None,
        reason: None,
        daemon: daemon.to_owned(),
        part_of: None,
        documents: Vec::new(),
        agent: None,
        tester: None,
        suite_file: Some("my suite.yaml".to_owned()),
        min_score: None,
        pass_threshold: None,
        certificate_format: None,
        demands: Vec::new(),
    }
}

fn event(ordinal: i64, name: &str) -> RunEventRow {
    RunEventRow {
        ordinal,
        name: name.to_owned(),
        data: format!("{{\"ordinal\":{ordinal}}}"),
    }
}

pub(crate) async fn add(store: &Store, workspace: &str, record: &RunRecord, lease_ms: i64) {
    add_posted(store, workspace, record, lease_ms, None).await;
}

async fn add_posted(
    store: &Store,
    workspace: &str,
    record: &RunRecord,
    lease_ms: i64,
    posted: Option<&str>,
) {
    let event = event(1, "state");
    let added = store.add_run(NewRun {
        workspace,
        record,
        lease_ms,
        events: std::slice::from_ref(&event),
        posted,
    });
    added.await.expect("it is written");
}

async fn advance(
    store: &Store,
    from: RunState,
    record: &RunRecord,
    events: &[RunEventRow],
) -> bool {
    let step = RunStep {
        from,
        record,
        events,
    };
    store.advance_run(step).await.expect("an answer")
}

async fn told(store: &Store, id: &str) -> Vec<(i64, String)> {
    let events = store.run_events(id, 0, 100).await.expect("events");
    events
        .into_iter()
        .map(|event| (event.ordinal, event.name))
        .collect()
}

fn cell() -> CellRecord {
    CellRecord {
        invariant: "completes".to_owned(),
        scenario: "outage".to_owned(),
        severity: "high".to_owned(),
        state: CellState::Failed,
        reason: Some("no answer".to_owned()),
        faults_applied: 3,
        mutation: None,
        baseline_failed: true,
        evidence: vec![EvidenceRecord {
            prompt: "héllo\0".to_owned(),
            fault: Some("error".to_owned()),
            latency_ms: 12.25,
            exchanges: vec!["e1".to_owned()],
            state: Some(CellState::Failed),
            reason: Some("no answer".to_owned()),
            faults_applied: 3,
            ..EvidenceRecord::default()
        }],
    }
}

pub(crate) async fn a_run_comes_back_as_it_was_with_all_that_happened(ground: &Ground<'_>) {
    let store = ground.open().await;
    let mut record = run("1", "d");
    add(&store, DEFAULT_WORKSPACE, &record, 60_000).await;
    let shown = store.run(DEFAULT_WORKSPACE, "1").await.expect("an answer");
    assert_eq!(shown.as_ref(), Some(&record));
    record.state = RunState::Running;
    assert!(advance(&store, RunState::Queued, &record, &[event(2, "state")]).await);
    let progress = [event(3, "progress"), event(4, "cell")];
    assert!(
        store
            .add_run_events("1", "d", &progress, &[])
            .await
            .expect("an answer")
    );
    record.state = RunState::Failed;
    record.cells = vec![cell()];
    record.invariants = InvariantRecord::of(&record.cells);
    record.score = Some(33.3);
    record.passed = Some(false);
    assert!(advance(&store, RunState::Running, &record, &[event(5, "done")]).await);
    store.close().await;
    let store = ground.open().await;
    let shown = store.run(DEFAULT_WORKSPACE, "1").await.expect("an answer");
    assert_eq!(shown, Some(record.clone()));
    let names = ["state", "state", "progress", "cell", "done"];
    let all: Vec<_> = (1..).zip(names.map(str::to_owned)).collect();
    assert_eq!(told(&store, "1").await, all);
    let rest = store.run_events("1", 3, 1).await.expect("events");
    assert_eq!(rest, [event(4, "cell")]);
    let listed = store
        .runs(DEFAULT_WORKSPACE, &RunFilter::default(), 10)
        .await;
    record.cells.clear();
    assert_eq!(listed.expect("a list"), [record]);
    assert_eq!(store.run("other", "1").await.expect("an answer"), None);
    assert_eq!(
        store.run(DEFAULT_WORKSPACE, "2").await.expect("an answer"),
        None
    );
}

pub(crate) async fn a_run_moves_only_from_where_it_is_and_by_its_own_daemon(ground: &Ground<'_>) {
    let store = ground.open().await;
    let queued = run("1", "d");
    add(&store, DEFAULT_WORKSPACE, &queued, 60_000).await;
    let at = |state, daemon: &str| RunRecord {
        state,
        daemon: daemon.to_owned(),
        ..queued.clone()
    };
    let (running, failed) = (RunState::Running, RunState::Failed);
    assert!(!advance(&store, running, &at(failed, "d"), &[event(2, "state")]).await);
    assert!(
        !advance(
            &store,
            RunState::Queued,
            &at(running, "e"),
            &[event(2, "state")]
        )
        .await
    );
    assert!(
        !store
            .add_run_events("1", "e", &[event(2, "cell")], &[])
            .await
            .expect("an answer")
    );
    assert!(
        advance(
            &store,
            RunState::Queued,
            &at(running, "d"),
            &[event(2, "state")]
        )
        .await
    );
    assert!(advance(&store, running, &at(failed, "d"), &[event(3, "done")]).await);
    assert!(!advance(&store, failed, &at(running, "d"), &[event(4, "state")]).await);
    assert!(
        !store
            .add_run_events("1", "d", &[event(4, "cell")], &[])
            .await
            .expect("an answer")
    );
    assert_eq!(told(&store, "1").await.len(), 3);
    // An event that is there already is nothing that happened: all or nothing.
    add(&store, DEFAULT_WORKSPACE, &run("2", "d"), 60_000).await;
    let twice = [event(2, "cell"), event(1, "cell")];
    assert!(store.add_run_events("2", "d", &twice, &[]).await.is_err());
    assert_eq!(told(&store, "2").await.len(), 1);
}

pub(crate) async fn exchanges_of_the_newest_runs_are_kept(ground: &Ground<'_>) {
    let store = ground.open().await;
    let rows: Vec<_> = (0..70).map(|n| recorded(&format!("{n:03}"))).collect();
    let written: Vec<_> = rows.iter().rev().map(RecordedRow::of).collect();
    for id in ["001", "002"] {
        add(&store, DEFAULT_WORKSPACE, &run(id, "d"), 60_000).await;
        let cell = [event(2, "cell")];
        let told = store.add_run_events(id, "d", &cell, &written).await;
        assert!(told.expect("an answer"));
        // The same again, in another cell.
        let cell = [event(3, "cell")];
        let told = store.add_run_events(id, "d", &cell, &written[..1]).await;
        assert!(told.expect("an answer"));
    }
    let kept = async |id: &str| store.run_exchanges(id).await.expect("an answer");
    assert_eq!(kept("001").await, rows);
    assert!(kept("003").await.is_empty());
    // The second one still runs.
    let over = RunRecord {
        state: RunState::Failed,
        ..run("001", "d")
    };
    assert!(advance(&store, RunState::Queued, &over, &[]).await);
    for number in 3..103 {
        let record = run(&format!("{number:03}"), "d");
        add(&store, DEFAULT_WORKSPACE, &record, 60_000).await;
        let over = RunRecord {
            state: RunState::Failed,
            ..record
        };
        assert!(advance(&store, RunState::Queued, &over, &[]).await);
        if number == 101 {
            assert_eq!(kept("001").await.len(), rows.len());
        }
    }
    assert!(kept("001").await.is_empty());
    assert_eq!(kept("002").await.len(), rows.len());
}

pub(crate) async fn the_newest_runs_that_are_over_are_kept_of_each_workspace(ground: &Ground<'_>) {
    let store = ground.open().await;
    let exchange = [RecordedRow::of(&recorded("e"))];
    // The two oldest wait and run.
    for number in 1..=49 {
        let id = format!("{number:03}");
        let workspace = if number % 5 == 0 {
            "w"
        } else {
            DEFAULT_WORKSPACE
        };
        let mut record = run(&id, "d");
        add(&store, workspace, &record, 60_000).await;
        let cell = [event(2, "cell")];
        let told = store.add_run_events(&id, "d", &cell, &exchange);
        assert!(told.await.expect("an answer"));
        if number > 2 {
            record.state = RunState::Failed;
            assert!(advance(&store, RunState::Queued, &record, &[event(3, "done")]).await);
        }
    }
    let running = RunRecord {
        state: RunState::Running,
        ..run("002", "d")
    };
    assert!(advance(&store, RunState::Queued, &running, &[event(3, "state")]).await);
    let left = async |workspace: &str| {
        let page = store.runs(workspace, &RunFilter::default(), 100).await;
        let ids = page.expect("a list").into_iter().map(|run| run.id);
        ids.collect::<Vec<_>>()
    };
    let prune = async |runs| {
        let retain = Retain {
            runs,
            ..Retain::default()
        };
        let mut slices = 1;
        while store.prune(retain, 0).await.expect("pruned") {
            slices += 1;
        }
        slices
    };
    assert_eq!(prune(38).await, 1);
    assert_eq!(
        (left(DEFAULT_WORKSPACE).await.len(), left("w").await.len()),
        (40, 9)
    );
    assert_eq!(prune(3).await, 3);
    let kept = ["049", "048", "047", "002", "001"];
    assert_eq!(left(DEFAULT_WORKSPACE).await, kept);
    assert_eq!(left("w").await, ["045", "040", "035"]);
    for (id, is_kept) in [
        ("001", true),
        ("002", true),
        ("003", false),
        ("030", false),
        ("045", true),
    ] {
        assert_eq!(
            !told(&store, id).await.is_empty(),
            is_kept,
            "events of {id}"
        );
        let exchanges = store.run_exchanges(id).await.expect("an answer");
        assert_eq!(!exchanges.is_empty(), is_kept, "exchanges of {id}");
    }
}

pub(crate) async fn parts_of_a_spread_run_are_listed_apart_and_deleted_with_it(
    ground: &Ground<'_>,
) {
    let store = ground.open().await;
    let part = |id: &str| RunRecord {
        part_of: Some(PartOf {
            run: "001".to_owned(),
            scenario: "outage".to_owned(),
        }),
        ..run(id, "d")
    };
    let whole = run("001", "d");
    add_posted(&store, DEFAULT_WORKSPACE, &whole, 60_000, Some("{}")).await;
    for record in [part("002"), part("003"), run("004", "d")] {
        add(&store, DEFAULT_WORKSPACE, &record, 60_000).await;
    }
    let listed = async |part_of: Option<&str>| {
        let part_of = part_of.map(str::to_owned);
        let filter = RunFilter {
            part_of,
            ..RunFilter::default()
        };
        let page = store.runs(DEFAULT_WORKSPACE, &filter, 100).await;
        let ids = page.expect("a list").into_iter().map(|run| run.id);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(listed(None).await, ["004", "001"]);
    assert_eq!(listed(Some("001")).await, ["003", "002"]);

    let spread = async || store.spread_runs().await.expect("a list");
    assert_eq!(spread().await, []);
    let moved = |to: RunState, record: RunRecord| RunRecord {
        state: to,
        ..record
    };
    let running = moved(RunState::Running, whole.clone());
    assert!(advance(&store, RunState::Queued, &running, &[]).await);
    let name = running.name.replace('\0', "\u{fffd}");
    assert_eq!(
        spread().await,
        [(DEFAULT_WORKSPACE.to_owned(), "001".to_owned(), name)]
    );
    let read = async || store.spread_run("001").await.expect("an answer");
    assert_eq!(read().await, Some((running, "{}".to_owned())));

    let cell = [event(2, "cell")];
    let exchange = [RecordedRow::of(&recorded("e"))];
    let told = store.add_run_events("002", "d", &cell, &exchange).await;
    assert!(told.expect("an answer"));
    let kept = async |id: &str| store.run_exchanges(id).await.expect("an answer").len();
    assert_eq!((kept("001").await, kept("002").await), (1, 0));

    for record in [part("002"), part("003"), run("004", "d")] {
        let over = moved(RunState::Passed, record);
        assert!(advance(&store, RunState::Queued, &over, &[]).await);
    }
    let over = moved(RunState::Passed, whole);
    assert!(advance(&store, RunState::Running, &over, &[]).await);
    assert_eq!((spread().await, read().await), (Vec::new(), None));
    let retain = Retain {
        runs: 1,
        ..Retain::default()
    };
    while store.prune(retain, 0).await.expect("pruned") {}
    assert_eq!(listed(None).await, ["004"]);
    assert_eq!(listed(Some("001")).await, [""; 0]);
    assert_eq!(kept("001").await, 0);
}

pub(crate) async fn runs_that_nobody_executes_are_errored_and_no_others(ground: &Ground<'_>) {
    let store = ground.open().await;
    for (id, daemon, lease_ms) in [
        ("1", "mine", 60_000),
        ("2", "theirs", 60_000),
        ("3", "theirs", -1),
        ("4", "renewed", -1),
        ("5", "mine", 60_000),
    ] {
        add(&store, DEFAULT_WORKSPACE, &run(id, daemon), lease_ms).await;
    }
    let mut over = run("5", "mine");
    over.state = RunState::Cancelled;
    assert!(advance(&store, RunState::Queued, &over, &[event(2, "done")]).await);
    let held = store.renew_runs("renewed", 60_000).await;
    assert_eq!(held.expect("an answer"), ["4"]);
    let give_up = async |which, why: &str| {
        let given_up = store
            .give_up_runs(which, why, "2026-11-22T13:00:00.000Z", |record, last| {
                assert_eq!(record.state, RunState::Errored);
                vec![event(last + 1, "state"), event(last + 2, "done")]
            })
            .await;
        let ids = given_up.expect("an answer").into_iter();
        let ids = ids.map(|run| {
            assert_eq!(run.workspace, DEFAULT_WORKSPACE);
            let states = (run.before.state, run.after.state);
            assert_eq!(states, (RunState::Queued, RunState::Errored));
            run.after.id
        });
        ids.collect::<Vec<_>>()
    };
    assert_eq!(
        give_up(Abandoned::OfDaemon("mine"), "it was killed").await,
        ["1"]
    );
    assert_eq!(
        give_up(Abandoned::Expired, "its daemon is gone").await,
        ["3"]
    );
    assert_eq!(
        give_up(Abandoned::Expired, "again").await,
        Vec::<String>::new()
    );
    let shown = store
        .run(DEFAULT_WORKSPACE, "3")
        .await
        .expect("an answer")
        .expect("a run");
    assert_eq!(shown.error.as_deref(), Some("its daemon is gone"));
    assert!(shown.finished_at.is_some());
    assert_eq!(told(&store, "3").await.len(), 3);
    let mut late = run("3", "theirs");
    late.state = RunState::Running;
    assert!(!advance(&store, RunState::Queued, &late, &[event(2, "state")]).await);
    assert_eq!(
        store.renew_runs("theirs", 60_000).await.expect("an answer"),
        ["2"]
    );
}

pub(crate) async fn runs_are_listed_newest_first_by_state_kind_and_workspace(ground: &Ground<'_>) {
    let store = ground.open().await;
    for (id, kind, workspace) in [
        ("1", RunKind::Chaos, DEFAULT_WORKSPACE),
        ("2", RunKind::Contract, DEFAULT_WORKSPACE),
        ("3", RunKind::Chaos, "w"),
        ("4", RunKind::Chaos, DEFAULT_WORKSPACE),
    ] {
        let mut record = run(id, "d");
        record.kind = kind;
        add(&store, workspace, &record, 60_000).await;
    }
    let mut over = run("4", "d");
    over.state = RunState::Cancelled;
    assert!(advance(&store, RunState::Queued, &over, &[event(2, "done")]).await);
    let all = RunFilter::default();
    let of = |kind| RunFilter {
        kind: Some(kind),
        ..RunFilter::default()
    };
    let named = |name: &str| RunFilter {
        name: Some(name.to_owned()),
        ..RunFilter::default()
    };
    let queued = RunFilter {
        state: Some(RunState::Queued),
        ..RunFilter::default()
    };
    let older = RunFilter {
        before: Some("4".to_owned()),
        ..RunFilter::default()
    };
    for (filter, limit, expected) in [
        (&all, 9, &["4", "2", "1"][..]),
        (&all, 2, &["4", "2"]),
        (&older, 9, &["2", "1"]),
        (&of(RunKind::Chaos), 9, &["4", "1"]),
        (&of(RunKind::Ci), 9, &[]),
        (&queued, 9, &["2", "1"]),
        (&named(&run("1", "d").name), 9, &["4", "2", "1"]),
        (&named("another"), 9, &[]),
    ] {
        let found = store
            .runs(DEFAULT_WORKSPACE, filter, limit)
            .await
            .expect("a list");
        let ids: Vec<_> = found.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(ids, expected, "{filter:?}");
    }
    let theirs = store.runs("w", &all, 9).await.expect("a list");
    assert_eq!(theirs.len(), 1);
}

#[tokio::test]
async fn a_store_in_memory_that_nobody_has_used_knows_no_runs() {
    let store = Store::in_memory();
    assert_eq!(
        store.run(DEFAULT_WORKSPACE, "1").await.expect("an answer"),
        None
    );
    assert_eq!(
        store.renew_runs("d", 1).await.expect("an answer"),
        Vec::<String>::new()
    );
    add(&store, DEFAULT_WORKSPACE, &run("1", "d"), 1).await;
    assert_eq!(store.renew_runs("d", 1).await.expect("an answer"), ["1"]);
}
