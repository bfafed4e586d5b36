//! What the store promises, on each database.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use squall_control_api::access::{Digest, TokenRole};
use squall_control_api::store::{
    DEFAULT_WORKSPACE, DocumentKey, DocumentKind, DocumentText, ExchangeRow, Retain, Store,
    StoreError, StoreFailure, StorePlace, StoredDocument, StoredToken, WriteError,
};
use squall_journal::id::ExchangeId;
use squall_journal::record::{ExchangeRecord, Kind, RuleOutcome};
use squall_journal::ring::{Bounds, Entry, Filter, Ring, StatusFilter, Traits};
use squall_journal::timestamp;
use squall_tests::postgres::{Postgres, nobody};
use tempfile::TempDir;

use crate::store_recordings::{
    recordings_come_back_as_they_were, the_oldest_recordings_that_have_ended_make_room,
};
use crate::store_runs::{
    a_run_comes_back_as_it_was_with_all_that_happened,
    a_run_moves_only_from_where_it_is_and_by_its_own_daemon, exchanges_of_the_newest_runs_are_kept,
    parts_of_a_spread_run_are_listed_apart_and_deleted_with_it,
    runs_are_listed_newest_first_by_state_kind_and_workspace,
    runs_that_nobody_executes_are_errored_and_no_others,
    the_newest_runs_that_are_over_are_kept_of_each_workspace,
};

/// Somewhere a store can be opened, again and again.
pub(crate) enum Ground<'a> {
    Sqlite(TempDir),
    Postgres { server: &'a Postgres, name: String },
}

impl Ground<'_> {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().expect("a directory"))
    }

    /// A database of its own.
    pub(crate) fn postgres<'a>(server: &'a Postgres, name: &str) -> Ground<'a> {
        server.database(name);
        Ground::Postgres {
            server,
            name: name.to_owned(),
        }
    }

    pub(crate) fn place(&self) -> StorePlace {
        match self {
            Self::Sqlite(dir) => StorePlace::in_home(dir.path()),
            Self::Postgres { server, name } => place(&server.url(name)),
        }
    }

    /// What is on disk, where the test can read it.
    pub(crate) fn files(&self) -> Vec<std::path::PathBuf> {
        match self {
            Self::Sqlite(dir) => std::fs::read_dir(dir.path())
                .expect("a directory")
                .map(|entry| entry.expect("an entry").path())
                .collect(),
            Self::Postgres { .. } => Vec::new(),
        }
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(self.place()).await.expect("the store opens")
    }

    /// Does something to the tables behind the store's back.
    pub(crate) async fn sql(&self, sql: &'static str) {
        match self {
            Self::Sqlite(dir) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new()
                    .filename(dir.path().join("squall.db"));
                let pool = sqlx::SqlitePool::connect_with(options)
                    .await
                    .expect("it opens");
                sqlx::query(sql).execute(&pool).await.expect(sql);
                pool.close().await;
            }
            Self::Postgres { server, name } => {
                server.sql(name, sql);
            }
        }
    }
}

/// Each promise is a test of its own on SQLite, and all of them are one test on one PostgreSQL: a
/// server takes longer to start than they all take.
macro_rules! on_both {
    ($($promise:ident)*) => {
        mod sqlite {
            use super::Ground;
            $(
                #[tokio::test]
                async fn $promise() {
                    super::$promise(&Ground::sqlite()).await;
                }
            )*
        }

        #[tokio::test]
        async fn postgres_keeps_the_same_promises() {
            let server = Postgres::start();
            $(
                println!("{}", stringify!($promise));
                $promise(&Ground::postgres(&server, stringify!($promise))).await;
            )*
        }
    };
}

on_both! {
    every_put_is_a_version_and_the_newest_hundred_are_kept
    an_identical_document_is_no_new_version
    a_change_over_another_version_is_stale
    kinds_and_workspaces_are_separate
    what_was_written_is_there_when_the_store_is_opened_again
    of_many_who_write_at_once_one_wins
    any_text_comes_back_as_it_was
    tables_of_a_newer_squall_are_left_alone
    exchanges_come_back_as_they_were
    exchanges_are_filtered_as_memory_filters_them
    the_oldest_exchanges_go_by_number_and_by_age
    tokens_are_kept_until_they_are_revoked
    a_run_comes_back_as_it_was_with_all_that_happened
    a_run_moves_only_from_where_it_is_and_by_its_own_daemon
    exchanges_of_the_newest_runs_are_kept
    runs_that_nobody_executes_are_errored_and_no_others
    runs_are_listed_newest_first_by_state_kind_and_workspace
    the_newest_runs_that_are_over_are_kept_of_each_workspace
    parts_of_a_spread_run_are_listed_apart_and_deleted_with_it
    recordings_come_back_as_they_were
    the_oldest_recordings_that_have_ended_make_room
    the_oldest_cached_mutants_make_room
}

async fn the_oldest_cached_mutants_make_room(ground: &Ground<'_>) {
    let store = ground.open().await;
    let put = async |workspace: &str, id: &str| {
        let put = store.put_mutants(workspace, id, "[]", 2).await;
        put.expect("written");
    };
    // A list that is written again is new again.
    for id in ["a", "b", "a", "c"] {
        put("mine", id).await;
    }
    put("other", "a").await;
    let opened = ground.open().await;
    for (workspace, id, is_left) in [
        ("mine", "a", true),
        ("mine", "b", false),
        ("mine", "c", true),
        ("other", "a", true),
    ] {
        let found = opened.mutants(workspace, id).await.expect("an answer");
        assert_eq!(found.is_some(), is_left, "{workspace} {id}");
    }
}

async fn tokens_are_kept_until_they_are_revoked(ground: &Ground<'_>) {
    let store = ground.open().await;
    let token = |workspace: &str, name: &str, secret: &str| StoredToken {
        workspace: workspace.to_owned(),
        name: name.to_owned(),
        role: TokenRole::Operator,
        digest: Digest::of(secret),
        created_at: 7,
    };
    let (one, two) = (token("a", "ci", "1"), token("b", "ci", "2"));
    assert!(store.add_token(&one, None).await.expect("an answer"));
    assert!(store.add_token(&two, None).await.expect("an answer"));
    let again = token("a", "ci", "3");
    assert!(
        !store.add_token(&again, None).await.expect("an answer"),
        "taken"
    );
    let opened = ground.open().await;
    assert_eq!(opened.tokens().await.expect("tokens"), [one, two.clone()]);
    for expected in [true, false] {
        let revoked = opened.revoke_token("a", "ci", 8, None).await;
        assert_eq!(revoked.expect("an answer"), expected);
    }
    assert_eq!(
        store.tokens().await.expect("tokens"),
        std::slice::from_ref(&two)
    );
    assert!(
        store.add_token(&again, None).await.expect("an answer"),
        "free again"
    );
    assert_eq!(store.tokens().await.expect("tokens"), [again, two]);
}

fn key(workspace: &str, kind: DocumentKind, name: &str) -> DocumentKey {
    DocumentKey {
        workspace: workspace.to_owned(),
        kind,
        name: name.to_owned(),
    }
}

fn mine() -> DocumentKey {
    key(DEFAULT_WORKSPACE, DocumentKind::Profile, "mine")
}

fn text(body: &str) -> DocumentText {
    DocumentText {
        body: body.to_owned(),
        variables: None,
    }
}

/// Writes the profile `mine` over a version; `None` deletes it.
async fn write(store: &Store, body: Option<&str>, over: i64) -> Result<i64, WriteError> {
    let text = body.map(text);
    store.write(&mine(), text.as_ref(), over, 1, None).await
}

async fn profiles(store: &Store) -> Vec<StoredDocument> {
    let found = store.documents(DocumentKind::Profile).await;
    found.expect("documents")
}

/// The text of a version of a document; `None`: there is none, or it is a deletion.
async fn body(store: &Store, key: &DocumentKey, version: i64) -> Option<String> {
    let found = store.document(key, version).await.expect("an answer");
    found.and_then(|found| Some(found.text?.body))
}

async fn every_put_is_a_version_and_the_newest_hundred_are_kept(ground: &Ground<'_>) {
    let store = ground.open().await;
    let other = key("blue", DocumentKind::Profile, "mine");
    let written = store.write(&other, Some(&text("theirs")), 0, 1, None).await;
    assert_eq!(written.expect("written"), 1);
    for over in 0..103 {
        let version = write(&store, Some(&over.to_string()), over).await;
        assert_eq!(version.expect("written"), over + 1);
    }
    let newest = profiles(&store).await;
    let newest = newest
        .iter()
        .map(|one| (one.workspace.as_str(), one.version));
    assert_eq!(newest.collect::<Vec<_>>(), [("blue", 1), ("default", 103)]);
    for (key, version, expected) in [
        (mine(), 3, None),
        (mine(), 4, Some("3")),
        (mine(), 103, Some("102")),
        (mine(), 104, None),
        (other, 1, Some("theirs")),
    ] {
        let found = body(&store, &key, version).await;
        assert_eq!(found.as_deref(), expected, "{key:?} {version}");
    }
    let sha256 = "4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce";
    let fourth = store.document(&mine(), 4).await.expect("an answer");
    assert_eq!(fourth.expect("version 4").digest, sha256);
}

async fn an_identical_document_is_no_new_version(ground: &Ground<'_>) {
    let store = ground.open().await;
    let with = |variables: Option<&[&str]>| DocumentText {
        variables: variables.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        ..text("same")
    };
    for (text, over, version) in [
        (Some(with(None)), 0, 1),
        (Some(with(None)), 1, 1),
        (Some(with(Some(&["TOKEN"]))), 1, 2),
        (Some(with(Some(&["TOKEN"]))), 2, 2),
        (Some(with(Some(&[]))), 2, 3),
        (None, 3, 4),
        (None, 4, 4),
        (Some(with(None)), 4, 5),
    ] {
        let written = store.write(&mine(), text.as_ref(), over, 1, None).await;
        assert_eq!(written.expect("written"), version, "{text:?} over {over}");
    }
    let second = store.document(&mine(), 2).await.expect("an answer");
    assert_eq!(
        second.expect("version 2").text,
        Some(with(Some(&["TOKEN"])))
    );
    let deletion = store.document(&mine(), 4).await.expect("an answer");
    assert_eq!(deletion.expect("version 4").text, None);
}

async fn a_change_over_another_version_is_stale(ground: &Ground<'_>) {
    let store = ground.open().await;
    for (over, works) in [(1, false), (0, true), (0, false), (2, false), (1, true)] {
        let written = write(&store, Some(&format!("over {over}")), over).await;
        match written {
            Ok(_) => assert!(works, "over {over}"),
            Err(error) => assert!(
                !works && matches!(error, WriteError::Stale),
                "over {over}: {error}"
            ),
        }
    }
    assert_eq!(profiles(&store).await[0].version, 2);
}

async fn kinds_and_workspaces_are_separate(ground: &Ground<'_>) {
    let store = ground.open().await;
    let kinds = [
        DocumentKind::Profile,
        DocumentKind::Suite,
        DocumentKind::Contract,
        DocumentKind::Replay,
    ];
    for workspace in ["default", "red"] {
        for kind in kinds {
            let text = text(&format!("{workspace} {}", kind.as_str()));
            let key = key(workspace, kind, "mine");
            let written = store.write(&key, Some(&text), 0, 1, None).await;
            assert_eq!(written.expect("written"), 1);
        }
    }
    for kind in kinds {
        let found = store.documents(kind).await.expect("documents");
        let found = found.into_iter().filter_map(|one| Some(one.text?.body));
        let expected = ["default", "red"].map(|workspace| format!("{workspace} {}", kind.as_str()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let sizes = store.document_sizes(kind).await.expect("sizes");
        let sizes = sizes
            .into_iter()
            .map(|(workspace, _, bytes)| (workspace, bytes));
        let expected =
            ["default", "red"].map(|name| (name.to_owned(), name.len() + 1 + kind.as_str().len()));
        assert_eq!(
            sizes.collect::<std::collections::BTreeSet<_>>(),
            expected.into()
        );
    }
}

async fn what_was_written_is_there_when_the_store_is_opened_again(ground: &Ground<'_>) {
    let store = ground.open().await;
    write(&store, Some("one"), 0).await.expect("written");
    let before = profiles(&store).await;
    store.close().await;
    let error = store.documents(DocumentKind::Profile).await;
    assert_eq!(error.expect_err("closed").kind, StoreFailure::Unreachable);
    assert_eq!(profiles(&ground.open().await).await, before);
}

async fn of_many_who_write_at_once_one_wins(ground: &Ground<'_>) {
    // Stores of their own, as daemons have them.
    let stores = [ground.open().await, ground.open().await];
    for over in 0..4 {
        let writers = (0..8).map(|writer| {
            let store = stores[writer % 2].clone();
            tokio::spawn(async move {
                let body = format!("{writer} over {over}");
                write(&store, Some(&body), over).await.map(|_| body)
            })
        });
        let mut won = Vec::new();
        for writer in writers.collect::<Vec<_>>() {
            match writer.await.expect("no panic") {
                Ok(body) => won.push(body),
                Err(error) => assert!(matches!(error, WriteError::Stale), "{error}"),
            }
        }
        let newest = body(&stores[0], &mine(), over + 1).await;
        assert_eq!(won, [newest.expect("the newest")]);
    }
}

async fn any_text_comes_back_as_it_was(ground: &Ground<'_>) {
    let store = ground.open().await;
    let long = "ü'\"\\;--\r\n\t🌪".repeat(50_000);
    for (name, written) in [
        ("quotes", "it's \"so\" \\ %s $1 ?"),
        ("long", &long),
        ("Ünicode 🌪", ""),
    ] {
        let key = key(DEFAULT_WORKSPACE, DocumentKind::Profile, name);
        let version = store.write(&key, Some(&text(written)), 0, 1, None).await;
        version.expect(name);
        assert_eq!(body(&store, &key, 1).await.as_deref(), Some(written));
    }
    let nul = write(&store, Some("a\0b"), 0).await;
    assert!(matches!(nul, Err(WriteError::Nul)), "{nul:?}");
}

async fn tables_of_a_newer_squall_are_left_alone(ground: &Ground<'_>) {
    ground.open().await.close().await;
    ground
        .sql("INSERT INTO squall_schema (version) VALUES (99)")
        .await;
    let error = Store::open(ground.place()).await.expect_err("it is newer");
    let message = error.to_string();
    assert!(message.contains("have version 99"), "{message}");
    assert!(message.contains("use the newer Squall"), "{message}");
}

/// An exchange that began at `ms`.
fn exchange(ms: u64, change: impl FnOnce(&mut Value)) -> ExchangeRecord {
    let mut record = json!({
        "id": ExchangeId::new(ms, 7, 9).to_string(), "scope": "default", "kind": "tool",
        "dialect": null, "tool": null, "method": "GET", "url": "https://api.example/v1",
        "status": 200, "upstream_status": 200, "outcome": "ok", "error": null,
        "started_at": timestamp::rfc3339(ms), "duration_ms": 12.625, "injected_ms": 0.1,
        "overhead_us": 71, "request_bytes": 1, "response_bytes": 2, "fingerprint": null,
        "attempt": null, "seed": u64::MAX, "rules": [], "rules_more": 0, "activation": null,
        "run": null, "canaries": [], "llm": null,
    });
    change(&mut record);
    serde_json::from_value(record).expect("a record")
}

fn rule(id: &str, mode: &str, outcome: &str) -> Value {
    json!({
        "profile": "p", "rule": id, "family": "tool_faults", "mode": mode, "outcome": outcome,
        "reason": null, "ordinal": 1, "drawn": 0.125, "parameters": { "delay_ms": 0.1 },
    })
}

async fn keep(store: &Store, records: &[ExchangeRecord]) -> u64 {
    let rows: Vec<_> = records.iter().map(ExchangeRow::of).collect();
    store.keep(&rows).await.expect("kept")
}

/// The moments of the exchanges that are found.
fn moments(found: &[ExchangeRecord]) -> Vec<u64> {
    found.iter().map(|one| id(one).started_ms()).collect()
}

fn id(record: &ExchangeRecord) -> ExchangeId {
    record.id.parse().expect("an id")
}

async fn exchanges_come_back_as_they_were(ground: &Ground<'_>) {
    let store = ground.open().await;
    let odd = exchange(1, |record| {
        record["tool"] = json!("a\0b'; DROP TABLE exchanges; --");
        record["error"] = json!("🌪 \u{0} \"quoted\"");
        record["rules"] = json!([rule("r", "slow", "applied")]);
    });
    let records = [odd.clone(), exchange(2, |_| {})];
    assert_eq!(keep(&store, &records).await, 2);
    let changed = exchange(2, |record| record["status"] = json!(500));
    assert_eq!(keep(&store, &[changed]).await, 0, "what is there stays");
    let found = store
        .exchanges(&Filter::default(), None, 10)
        .await
        .expect("an answer");
    let found: Vec<_> = found.into_iter().rev().collect();
    assert_eq!(found, records);
    let one = store.exchange(id(&odd)).await.expect("an answer");
    assert_eq!(one, Some(odd));
    let never = store.exchange(ExchangeId::new(3, 0, 0)).await;
    assert_eq!(never.expect("an answer"), None);
}

/// Exchanges that differ in everything that filters look at.
fn varied() -> Vec<ExchangeRecord> {
    let urls = [
        "https://API.example/v1",
        "http://api.example:8080/",
        "http://[::1]/x",
        "tunnel.example:443",
        "http://u:p@api.example",
        "wss://api.example/live",
    ];
    let rules = [
        json!([]),
        json!([
            rule("slow-one", "slow", "applied"),
            rule("other", "error", "not_drawn")
        ]),
        json!([
            rule("error", "status", "applied"),
            rule("a_b", "slow", "applied")
        ]),
        json!([rule("never", "error", "bypassed")]),
    ];
    let statuses = [json!(200), json!(404), json!(503), json!(null)];
    let tools = [
        json!(null),
        json!("search"),
        json!("a\0b"),
        json!("book a room"),
    ];
    let runs = [json!(null), json!("r-1"), json!("r-2")];
    let more = [json!([]), json!(["search", "line feed"])];
    let varied = (0..96_u64).map(|ms| {
        let pick = |of: usize, step: u64| usize::try_from(ms / step).expect("small") % of;
        exchange(1_000 + ms, |record| {
            record["url"] = json!(urls[pick(urls.len(), 1)]);
            record["run"] = runs[pick(runs.len(), 4)].clone();
            record["rules"] = rules[pick(rules.len(), 2)].clone();
            record["status"] = statuses[pick(statuses.len(), 3)].clone();
            record["more_tools"] = more[pick(more.len(), 3)].clone();
            record["tool"] = tools[pick(tools.len(), 4)].clone();
            record["scope"] = json!(["default", "blue", "Blue"][pick(3, 5)]);
            record["kind"] = json!(["tool", "llm", "mcp", "other"][pick(4, 7)]);
        })
    });
    varied.collect()
}

/// Each part of a filter with every sort of value, and several together.
fn filters() -> Vec<Filter> {
    let mut filters = vec![Filter::default()];
    let mut add = |part: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        part(&mut filter);
        filters.push(filter);
    };
    let text = |text: &str| Some(text.to_owned());
    for scope in ["default", "blue", "Blue", "none"] {
        add(&|filter| filter.scope = text(scope));
    }
    for kind in Kind::ALL {
        add(&|filter| filter.kind = Some(kind));
    }
    for tool in [
        "search",
        "a\0b",
        "book a room",
        "book",
        "line feed",
        "feed",
        "%",
        "",
    ] {
        add(&|filter| filter.tool = text(tool));
    }
    for fault in ["*", "slow", "error", "a_b", "axb", "slow-one", "%", " "] {
        add(&|filter| filter.fault = text(fault));
    }
    for host in [
        "api.EXAMPLE",
        "api.example:443",
        "api.example:80",
        "[::1]:80",
        "[::1]",
        "example",
    ] {
        add(&|filter| filter.host = text(host));
    }
    for run in ["r-1", "r-2", "r", "\""] {
        add(&|filter| filter.run = text(run));
    }
    for status in ["200", "5xx", "none", "2xx", "999"] {
        add(&|filter| filter.status = StatusFilter::parse(status));
    }
    for since in [0, 1_050, 1_095, 9_999] {
        add(&|filter| filter.since_ms = Some(since));
    }
    add(&|filter| {
        filter.scope = text("blue");
        filter.fault = text("slow");
        filter.status = StatusFilter::parse("2xx");
        filter.host = text("api.example");
    });
    filters
}

/// An exchange in memory.
#[derive(Clone)]
struct HeldExchange(ExchangeRecord);

impl Entry for HeldExchange {
    fn id(&self) -> ExchangeId {
        id(&self.0)
    }

    fn size(&self) -> usize {
        1
    }

    fn traits(&self) -> Traits<'_> {
        let record = &self.0;
        Traits {
            scope: &record.scope,
            kind: record.kind,
            tool: record.tool.as_deref(),
            more_tools: &[],
            tool_calls: &record.more_tools,
            url: &record.url,
            status: record.status,
            outcome: record.outcome,
            run: record.run.as_deref(),
        }
    }

    fn had_fault(&self, name: &str) -> bool {
        let mut rules = self.0.rules.iter();
        rules.any(|rule| {
            rule.outcome == RuleOutcome::Applied && ["*", &rule.mode, &rule.rule].contains(&name)
        })
    }

    fn told_of(&self, _: &str) -> bool {
        false
    }
}

async fn exchanges_are_filtered_as_memory_filters_them(ground: &Ground<'_>) {
    let (store, records) = (ground.open().await, varied());
    keep(&store, &records).await;
    let mut memory = Ring::new(Bounds::default());
    for record in records {
        memory.put(HeldExchange(record));
    }
    let mut met = 0;
    for filter in &filters() {
        let middle = ExchangeId::new(1_060, 7, 9);
        for (before, limit) in [(None, 1_000), (None, 3), (Some(middle), 5)] {
            let found = store
                .exchanges(filter, before, limit)
                .await
                .expect("an answer");
            let expected = memory.page(filter, before, limit).items;
            met += expected.len();
            let expected: Vec<_> = expected.iter().map(|one| one.id().started_ms()).collect();
            assert_eq!(moments(&found), expected, "{filter:?} before {before:?}");
        }
    }
    assert!(met > 500, "the filters find something: {met}");
}

async fn the_oldest_exchanges_go_by_number_and_by_age(ground: &Ground<'_>) {
    let store = ground.open().await;
    let records: Vec<_> = (1..=2_500).map(|ms| exchange(ms, |_| {})).collect();
    assert_eq!(keep(&store, &records).await, 2_500);
    let mut left = Vec::new();
    for (exchanges, since_ms) in [
        (5_000, 0),
        (5_000, 101),
        (300, 0),
        (300, 2_301),
        (0, 0),
        (0, 0),
    ] {
        let mut slices = 1;
        let retain = Retain {
            exchanges,
            age: Duration::from_secs(1_000),
            runs: 0,
        };
        while store
            .prune(retain, 1_000_000 + since_ms)
            .await
            .expect("pruned")
        {
            slices += 1;
        }
        let found = store
            .exchanges(&Filter::default(), None, 5_000)
            .await
            .expect("an answer");
        let moments = moments(&found);
        left.push((slices, moments.len(), moments.last().copied()));
    }
    assert_eq!(
        left,
        [
            (1, 2_500, Some(1)),
            (1, 2_400, Some(101)),
            (3, 300, Some(2_201)),
            (1, 200, Some(2_301)),
            (1, 0, None),
            (1, 0, None),
        ]
    );
}

#[tokio::test]
async fn a_store_in_memory_goes_with_the_process_and_is_nobody_else_s() {
    let (one, other) = (Store::in_memory(), Store::in_memory());
    write(&one, Some("one"), 0).await.expect("written");
    assert_eq!(profiles(&one).await.len(), 1);
    assert!(profiles(&other).await.is_empty());
}

#[tokio::test]
async fn a_file_that_is_no_store_is_reported_and_unchanged() {
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("notes.txt");
    std::fs::write(
        &file,
        "not a database, but long enough to be looked at\n".repeat(40),
    )
    .expect("a file");
    let below = Store::open(StorePlace::Sqlite(file.join("squall.db"))).await;
    for (store, way_out) in [
        (
            Store::open(StorePlace::Sqlite(file.clone())).await,
            "no SQLite database",
        ),
        (below, "give it a directory"),
    ] {
        let error = store.expect_err("it is no store").to_string();
        assert!(
            error.contains("notes.txt") && error.contains(way_out),
            "{error}"
        );
    }
    let text = std::fs::read_to_string(&file).expect("still there");
    assert!(text.starts_with("not a database"), "{text}");
}

#[tokio::test]
async fn one_daemon_lives_on_a_file_and_others_visit() {
    let dir = TempDir::new().expect("a directory");
    let place = || StorePlace::in_home(dir.path());
    let resident = Store::move_in(place()).await.expect("it opens");
    let error = Store::move_in(place()).await.expect_err("it is lived on");
    let said = error.to_string();
    assert!(
        said.contains("another daemon uses it") && said.contains("SQUALL_HOME"),
        "{said}"
    );
    let guest = Store::open(place()).await.expect("a guest");
    write(&guest, Some("one"), 0).await.expect("written");
    drop(resident);
    let next = Store::move_in(place()).await.expect("nobody lives there");
    assert_eq!(profiles(&next).await.len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_its_owner_s_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("new/home/squall.db");
    let store = Store::move_in(StorePlace::Sqlite(file.clone()))
        .await
        .expect("it opens");
    write(&store, Some("one"), 0).await.expect("written");
    for entry in std::fs::read_dir(file.parent().expect("a directory")).expect("a list") {
        let entry = entry.expect("a file");
        let mode = entry.metadata().expect("its mode").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{entry:?}: {mode:o}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported_with_its_address_and_no_password() {
    let url = nobody().replace("squall@", "squall:secret@");
    let error = Store::open(place(&url)).await.expect_err("nobody is there");
    assert_eq!(error.kind, StoreFailure::Unreachable);
    let told = format!("{error} {error:?}");
    assert!(told.contains("PostgreSQL at 127.0.0.1:"), "{told}");
    assert!(told.contains("set another one as `store.url`"), "{told}");
    assert!(!told.contains("secret"), "{told}");
}

#[tokio::test]
async fn a_server_that_goes_away_and_comes_back_is_used_again() {
    let mut server = Postgres::start();
    let store = Store::open(place(&server.database("squall")))
        .await
        .expect("it opens");
    write(&store, Some("one"), 0).await.expect("written");
    server.stop();
    let error = write(&store, Some("two"), 1).await;
    let Err(WriteError::Store(StoreError { kind, .. })) = error else {
        panic!("{error:?}");
    };
    assert_eq!(kind, StoreFailure::Unreachable);
    server.start_again();
    assert_eq!(
        profiles(&store).await[0].version,
        1,
        "nothing was half written"
    );
    assert_eq!(write(&store, Some("two"), 1).await.expect("written"), 2);
    for (url, way_out) in [
        (server.url("nowhere"), "create the database"),
        (
            server.url("postgres").replace("squall@", "stranger@"),
            "user and password",
        ),
    ] {
        let error = Store::open(place(&url))
            .await
            .expect_err("it is not let in")
            .to_string();
        assert!(error.contains(way_out), "{error}");
    }
}

fn place(url: &str) -> StorePlace {
    StorePlace::parse(url, Path::new("/"), Path::new("/")).expect("a URL")
}
