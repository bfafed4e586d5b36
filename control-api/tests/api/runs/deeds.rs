//! Runs go their way whatever is done to them.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

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
                let events = bench.all_events(path).await;
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
