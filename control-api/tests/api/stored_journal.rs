//! The journal outlives the daemon, and never holds it up.

use std::time::Duration;

use serde_json::json;
use squall_control_api::store::{DEFAULT_WORKSPACE, RunStep, Store, StorePlace};
use squall_control_api::{ExchangeChoice, JournalOptions, Retain};
use squall_harness::run::RunState;
use squall_profiles::verdict::{RuleVerdict, VerdictOutcome};
use squall_proxy::recorder::ExchangeNote;
use squall_tests::postgres::Postgres;

use crate::bench::{Api, eventually};
use crate::store::Ground;
use crate::store_runs::{add, run};

const ALL: JournalOptions = JournalOptions {
    exchanges: ExchangeChoice::All,
    retain: Retain {
        exchanges: 100_000,
        age: Duration::from_hours(24),
        runs: 1_000,
    },
    queue: 8_192,
};

/// A daemon that is started on what is there.
async fn start(ground: &Ground<'_>, ring: usize, options: JournalOptions) -> Api {
    Api::with_journal(ground.open().await, ring, options).await
}

/// Ids of every page, first to last.
async fn listed(api: &Api, limit: usize) -> Vec<String> {
    api.pages("/v1/exchanges", limit, "id", async || {}).await
}

fn notes(api: &Api, count: usize) -> Vec<ExchangeNote> {
    (0..count)
        .map(|_| api.note(None, "http://h/x?key=secret"))
        .collect()
}

fn ids<'a>(notes: impl IntoIterator<Item = &'a ExchangeNote>) -> Vec<String> {
    let mut ids: Vec<_> = notes.into_iter().map(|note| note.id.to_string()).collect();
    ids.sort();
    ids.reverse();
    ids
}

async fn metric(api: &Api, name: &str) -> u64 {
    let text = api.get("/metrics").await;
    let text = String::from_utf8_lossy(&text.body).into_owned();
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .expect(name);
    line.rsplit(' ')
        .next()
        .and_then(|value| value.parse().ok())
        .expect(name)
}

const STORED: &str = "squall_exchanges_stored_total ";
const SAMPLED_OUT: &str = "squall_exchanges_sampled_out_total ";
const DROPPED: &str = "squall_events_dropped_total{sink=\"store\"} ";

#[tokio::test]
async fn exchanges_outlive_the_daemon() {
    let ground = Ground::sqlite();
    let api = start(&ground, 100, ALL).await;
    let first = notes(&api, 5);
    let before = ids(&first);
    api.record(first);
    let newest = format!("/v1/exchanges/{}", before[0]);
    let shown = api.get(&newest).await.json();
    assert_eq!(listed(&api, 100).await, before);

    let api = start(&ground, 100, ALL).await;
    let second = notes(&api, 3);
    let expected = [ids(&second), before.clone()].concat();
    api.record(second);
    for limit in [1, 2, 3, 8, 100] {
        assert_eq!(listed(&api, limit).await, expected, "in pages of {limit}");
    }
    let mut again = api.get(&newest).await.json();
    assert_eq!(again["nearest_misses"], json!(null));
    again["nearest_misses"] = shown["nearest_misses"].clone();
    assert_eq!(again, shown);
    assert_eq!(again["url"], "http://h/x?key=REDACTED");
    let never = api.note(None, "http://h/").id;
    api.get(&format!("/v1/exchanges/{never}"))
        .await
        .problem(404, "not-found");
}

#[tokio::test]
async fn what_leaves_memory_is_found_in_the_store_in_its_place() {
    let ground = Ground::sqlite();
    let api = start(&ground, 3, ALL).await;
    let mut all = notes(&api, 20);
    let expected = ids(&all);
    // Exchanges end in another order than they begin.
    all.reverse();
    all.rotate_left(7);
    for note in all {
        api.record([note]);
    }
    for limit in [1, 2, 3, 4, 7, 100] {
        assert_eq!(listed(&api, limit).await, expected, "in pages of {limit}");
    }
}

#[tokio::test]
async fn pages_stay_in_step_while_exchanges_leave_memory() {
    let ground = Ground::sqlite();
    let api = start(&ground, 4, ALL).await;
    let all = notes(&api, 12);
    let expected = ids(&all);
    api.record(all);
    let later = async || api.record(notes(&api, 3));
    let shown = api.pages("/v1/exchanges", 2, "id", later).await;
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn exchanges_with_a_fault_are_stored_and_the_rest_is_sampled() {
    let ground = Ground::sqlite();
    let options = JournalOptions {
        exchanges: ExchangeChoice::Faulted,
        ..ALL
    };
    let api = start(&ground, 100, options).await;
    let chaos = json!({ "chaos": { "tool_faults": [{ "id": "down", "mode": "error" }] } });
    api.put("/v1/chaos", chaos).await;
    let rule = api.state.chaos.scope(None).activation().rules().rules()[0].clone();
    let mut all = notes(&api, 6_000);
    for note in all.iter_mut().step_by(20) {
        note.verdicts.push(RuleVerdict {
            rule: rule.clone(),
            outcome: VerdictOutcome::Applied,
            ordinal: 1,
            drawn: None,
            spent: None,
            told_of: None,
        });
    }
    let faulted = ids(all.iter().step_by(20));
    api.record(all);
    listed(&api, 1_000).await;
    let (stored, sampled_out) = (metric(&api, STORED).await, metric(&api, SAMPLED_OUT).await);
    assert_eq!(stored + sampled_out, 6_000, "{stored} and {sampled_out}");
    assert!(
        stored >= 1_300,
        "a second's share and all that had a fault: {stored}"
    );
    assert_eq!(metric(&api, DROPPED).await, 0);

    let api = start(&ground, 100, options).await;
    let found = api.get("/v1/exchanges?fault=down&limit=1000").await;
    assert_eq!(found.items("id"), faulted);
}

#[tokio::test]
async fn nothing_is_stored_with_none() {
    let options = JournalOptions {
        exchanges: ExchangeChoice::None,
        ..ALL
    };
    let ground = Ground::sqlite();
    let api = start(&ground, 100, options).await;
    assert!(api.state.journal.is_none());
    let notes = notes(&api, 3);
    let held = ids(&notes);
    api.record(notes);
    assert_eq!(listed(&api, 100).await, held);
    let api = start(&ground, 100, ALL).await;
    assert!(listed(&api, 100).await.is_empty());
}

#[tokio::test]
async fn the_newest_stay_when_there_are_too_many() {
    let options = JournalOptions {
        retain: Retain {
            exchanges: 5,
            ..ALL.retain
        },
        ..ALL
    };
    let ground = Ground::sqlite();
    let api = start(&ground, 100, options).await;
    let all = notes(&api, 30);
    let newest = ids(&all)[..5].to_vec();
    api.record(all);
    listed(&api, 100).await;
    // A start looks for what is too much.
    let api = start(&ground, 100, options).await;
    let found = eventually("only five are left", async || {
        let found = listed(&api, 100).await;
        (found.len() <= 5).then_some(found)
    });
    assert_eq!(found.await, newest);
}

#[tokio::test]
async fn an_unreachable_store_delays_nothing_and_gets_the_queue_later() {
    let mut server = Postgres::start();
    let url = server.database("squall");
    let place = StorePlace::parse(&url, "/".as_ref(), "/".as_ref()).expect("a URL");
    let store = Store::open(place).await.expect("it opens");
    let options = JournalOptions { queue: 4, ..ALL };
    let api = Api::with_journal(store, 5, options).await;
    let early = notes(&api, 1);
    let first = early[0].id.to_string();
    api.record(early);
    assert_eq!(listed(&api, 100).await, [first.as_str()]);
    server.stop();
    let broken = eventually("the loss of the store", async || {
        api.record(notes(&api, 1));
        api.state.journal.as_ref().expect("a journal").broken()
    });
    let broken = broken.await;
    assert!(broken.error.contains("does not answer"), "{broken:?}");
    let late = notes(&api, 50);
    let held = ids(&late)[..5].to_vec();
    api.record(late);
    assert!(
        metric(&api, DROPPED).await >= 46,
        "the queue has room for four"
    );
    let page = api.get("/v1/exchanges").await;
    assert_eq!(page.items("id"), held, "memory is shown");
    let cursor = page.json()["next_cursor"]
        .as_str()
        .expect("there is more")
        .to_owned();
    let rest = api.get(&format!("/v1/exchanges?cursor={cursor}")).await;
    rest.problem(503, "store-unavailable");
    api.get(&format!("/v1/exchanges/{first}"))
        .await
        .problem(503, "store-unavailable");
    server.start_again();
    let all = eventually("the store's return", async || {
        let back = api
            .state
            .journal
            .as_ref()
            .expect("a journal")
            .broken()
            .is_none();
        let page = api.get("/v1/exchanges?limit=1000").await;
        (back && page.status == 200).then(|| page.json()["items"].clone())
    });
    let all = all.await;
    let all = all.as_array().expect("items");
    assert_eq!(all.last().map(|item| &item["id"]), Some(&json!(first)));
    assert!(all.len() > 6, "what the queue kept is there: {}", all.len());
}

#[tokio::test]
async fn old_runs_are_deleted_whichever_exchanges_are_stored() {
    let store = Store::in_memory();
    for id in ["1", "2", "3"] {
        let mut record = run(id, "d");
        add(&store, DEFAULT_WORKSPACE, &record, 60_000).await;
        record.state = RunState::Cancelled;
        let step = RunStep {
            from: RunState::Queued,
            record: &record,
            events: &[],
        };
        assert!(store.advance_run(step).await.expect("an answer"));
    }
    let options = JournalOptions {
        exchanges: ExchangeChoice::None,
        retain: Retain {
            runs: 1,
            ..ALL.retain
        },
        ..ALL
    };
    let api = Api::with_journal(store, 1, options).await;
    eventually("the newest run alone", async || {
        let listed = api.get("/v1/runs").await.json();
        let left = listed["items"].as_array().expect("items");
        (left.len() == 1 && left[0]["id"] == "3").then_some(())
    })
    .await;
}
