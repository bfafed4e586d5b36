use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use squall_control_api::serve;
use squall_journal::events::Bounds;
use squall_proxy::recorder::RecorderOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::bench::{Api, EventStream};

async fn open(api: &Api, path: &str, last: Option<&str>) -> EventStream {
    let headers: Vec<_> = last
        .map(|last| ("last-event-id", last))
        .into_iter()
        .collect();
    api.stream(path, &headers).await
}

#[tokio::test]
async fn events_are_streamed_from_now_on() {
    let api = Api::new();
    api.record([api.note(None, "http://h/before")]);
    let mut events = open(&api, "/v1/events", None).await;
    let opening = events.next().await.expect("an opening");
    assert!(
        opening.id.is_some() && opening.name.is_empty(),
        "{opening:?}"
    );

    api.record([api.note(Some("a"), "http://h/x?key=secret")]);
    let exchange = events.next().await.expect("an exchange");
    assert_eq!(
        (exchange.name.as_str(), exchange.json()["scope"].as_str()),
        ("exchange", Some("a"))
    );
    assert_eq!(exchange.json()["url"], "http://h/x?key=REDACTED");

    api.put("/v1/scopes/a/chaos", json!({ "profile": "none" }))
        .await;
    let chaos = events.next().await.expect("an event");
    assert_eq!(
        (chaos.name.as_str(), &chaos.json()["change"]),
        ("chaos", &json!("started"))
    );
    let mut shown = api.get("/v1/scopes/a/chaos").await.json();
    // A stream is one daemon's.
    let shown_fields = shown.as_object_mut().expect("an object");
    shown_fields.remove("daemon");
    shown_fields.remove("by");
    assert_eq!(chaos.json()["now"], shown);
}

#[tokio::test]
async fn what_a_reader_that_never_reads_misses_is_counted_when_it_is_gone() {
    let events = Bounds {
        events: 3,
        ..Bounds::default()
    };
    let options = RecorderOptions {
        events,
        ..RecorderOptions::default()
    };
    let api = Api::with_options(options);
    let mut events = open(&api, "/v1/events", None).await;
    events.next().await.expect("an opening");
    api.record((0..10).map(|_| api.note(None, "http://h/")));
    let counted = "squall_events_dropped_total{sink=\"events\"} 7";
    let is_counted = async {
        while !api.state.metrics.render().expect("text").contains(counted) {
            tokio::task::yield_now().await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), is_counted).await;
    in_time.expect("what it missed is counted while it is connected");
    drop(events);
}

#[tokio::test]
async fn what_is_gone_is_said_to_be_gone() {
    let events = Bounds {
        events: 3,
        ..Bounds::default()
    };
    let options = RecorderOptions {
        events,
        ..RecorderOptions::default()
    };
    let api = Api::with_options(options);
    let mut events = open(&api, "/v1/events", None).await;
    let opening = events.next().await.expect("an opening").id.expect("an id");
    api.record((0..5).map(|_| api.note(None, "http://h/")));
    for (last, missed) in [
        (opening.as_str(), json!(2)),
        ("ffffffff-1", json!(null)),
        ("what?", json!(null)),
    ] {
        let mut events = open(&api, "/v1/events", Some(last)).await;
        let gap = events.next_named().await.expect("a gap");
        assert_eq!(
            (gap.name.as_str(), &gap.json()["missed"]),
            ("gap", &missed),
            "{last}"
        );
        for _ in 0..3 {
            assert_eq!(
                events.next_named().await.expect("what is held").name,
                "exchange"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_has_only_the_requested_events() {
    let api = Api::new();
    let mut blue = open(&api, "/v1/events?scope=blue", None).await;
    let mut faults = open(&api, "/v1/events?faults=true", None).await;
    api.record([
        api.note(None, "http://h/1"),
        api.note(Some("blue"), "http://h/2"),
    ]);
    api.put("/v1/chaos", json!({ "profile": "none" })).await;
    api.record([api.note(Some("blue"), "http://h/3")]);
    for path in ["http://h/2", "http://h/3"] {
        assert_eq!(
            blue.next_named().await.expect("of blue").json()["url"],
            path
        );
    }
    assert_eq!(
        faults.next_named().await.expect("no plain exchange").name,
        "chaos"
    );
}

#[tokio::test]
async fn a_stream_has_the_filters_of_lists_and_counts_what_is_above_its_bound() {
    let api = Api::new();
    let mut events = open(&api, "/v1/events?host=h&per_second=8", None).await;
    api.record((0..6).map(|_| api.note(None, "http://h/1")));
    api.record([api.note(None, "http://other/")]);
    // A quarter of a second has two.
    for _ in 0..2 {
        assert_eq!(
            events.next_named().await.expect("of the host").name,
            "exchange"
        );
    }
    let skipped = events.next_named().await.expect("the rest");
    assert_eq!(
        (skipped.name.as_str(), &skipped.json()["count"]),
        ("skipped", &json!(4))
    );
    api.record([api.note(None, "http://h/2")]);
    assert_eq!(
        events.next_named().await.expect("the next").json()["url"],
        "http://h/2"
    );
    let problem = api.get("/v1/events?per_second=0").await;
    assert_eq!(problem.status, 400);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_has_a_comment_every_15_seconds() {
    let api = Api::new();
    let mut events = open(&api, "/v1/events?scope=blue", None).await;
    events.next().await.expect("an opening");
    for _ in 0..2 {
        let begun = tokio::time::Instant::now();
        let alive = events.next().await.expect("a heartbeat");
        assert_eq!(begun.elapsed(), Duration::from_secs(15));
        assert_eq!((alive.name.as_str(), alive.id), ("", None));
    }
}

#[tokio::test]
async fn over_a_socket_a_stream_ends_when_the_daemon_stops() {
    let api = Api::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    let served = tokio::spawn(serve(
        listener,
        api.state.clone(),
        |api| api,
        shutdown.clone(),
    ));
    let mut socket = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET /v1/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut begin = [0; 15];
    socket.read_exact(&mut begin).await.expect("an answer");
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    shutdown.cancel();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.expect("a clean end");
    assert!(
        rest.ends_with(b"0\r\n\r\n"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
    served.await.expect("it returns").expect("without an error");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However often a client is cut and however much happens meanwhile, resuming by the last id
    /// shows every exchange once, in order.
    #[test]
    fn resuming_loses_nothing_and_repeats_nothing(
        turns in prop::collection::vec((0_usize..4, 0_usize..5), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
        let (shown, expected) = runtime.block_on(async {
            let api = Api::new();
            let mut last = open(&api, "/v1/events", None).await.next().await.and_then(|e| e.id);
            let (mut happened, mut shown) = (0, Vec::new());
            for (happens, reads) in turns {
                let fresh: Vec<_> =
                    (happened..happened + happens).map(|n| api.note(None, &format!("http://h/{n}"))).collect();
                happened += happens;
                api.record(fresh);
                let mut events = open(&api, "/v1/events", last.as_deref()).await;
                for _ in 0..reads.min(happened - shown.len()) {
                    let event = events.next_named().await.expect("it is held");
                    shown.push(event.json()["url"].as_str().expect("a URL").to_owned());
                    last = event.id;
                }
            }
            let mut events = open(&api, "/v1/events", last.as_deref()).await;
            while shown.len() < happened {
                let event = events.next_named().await.expect("it is held");
                shown.push(event.json()["url"].as_str().expect("a URL").to_owned());
            }
            let expected: Vec<_> = (0..happened).map(|n| format!("http://h/{n}")).collect();
            api.state.recorder.stop();
            (shown, expected)
        });
        prop_assert_eq!(shown, expected);
    }
}
