use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use proptest::prelude::*;
use squall_journal::events::EventId;
use squall_journal::record::{LlmRecord, Outcome, RuleOutcome};
use squall_journal::ring::Filter;
use squall_profiles::facts::Kind;
use squall_profiles::library::Library;
use squall_profiles::tools::ToolNames;

use super::*;
use crate::chaos::{Chaos, Defaults};

fn metrics() -> Arc<Metrics> {
    Arc::new(Metrics::new("0"))
}

fn recorder(options: RecorderOptions) -> Recorder {
    Recorder::start(options, metrics()).expect("a thread")
}

fn note(recorder: &Recorder, url: &str, outcome: Outcome) -> ExchangeNote {
    let chaos = Chaos::new(
        Library::default(),
        ToolNames::default(),
        Defaults::default(),
        recorder.clone(),
        metrics(),
    );
    let started = Instant::now();
    let id = recorder.begin(started);
    let scope = chaos.scope(None);
    let mut note = scope.note(id, started, Kind::Tool, Method::GET, url.to_owned());
    note.outcome = outcome;
    note
}

fn listed(recorder: &Recorder) -> Vec<Arc<ExchangeNote>> {
    recorder.flush();
    recorder
        .exchanges(&Filter::default(), None, usize::MAX)
        .items
}

#[test]
fn secrets_are_gone_before_anything_is_kept() {
    let recorder = recorder(RecorderOptions {
        redactor: Redactor::with_patterns(["acct_[0-9]+"]).expect("a pattern"),
        ..RecorderOptions::default()
    });
    let mut failed = note(
        &recorder,
        "http://h/acct_7?key=secret",
        Outcome::UpstreamError,
    );
    failed.error = Some("refused the key sk-abcdefgh12345678".to_owned());
    failed.kind = Kind::Agent;
    failed.calls_agent(Some("tasks/acct_4711"));
    recorder.record(failed);
    let kept = &listed(&recorder)[0];
    let method = kept
        .agent
        .as_ref()
        .and_then(|agent| agent.method.as_deref());
    assert_eq!(method, Some("tasks/REDACTED"));
    assert_eq!(kept.url, "http://h/REDACTED?key=REDACTED");
    assert_eq!(kept.error.as_deref(), Some("refused the key REDACTED"));
}

fn of_mcp(traffic: RpcTraffic) -> Box<Traffic> {
    Box::new(Traffic {
        mcp: Some(traffic),
        ..Traffic::default()
    })
}

#[test]
fn what_an_mcp_server_is_asked_is_read_off_the_path() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}"#;
    for (head_says, body, kind, tool) in [
        (Kind::Tool, call, Kind::Mcp, Some("search")),
        (Kind::Mcp, call, Kind::Mcp, Some("search")),
        (Kind::Mcp, ping, Kind::Mcp, None),
        (Kind::Tool, ping, Kind::Tool, None),
        (Kind::Tool, "{}", Kind::Tool, None),
        (Kind::Tool, message, Kind::Agent, None),
        (Kind::Agent, ping, Kind::Agent, None),
    ] {
        let recorder = recorder(RecorderOptions::default());
        let mut seen = note(&recorder, "http://h/mcp", Outcome::Ok);
        seen.kind = head_says;
        let mut traffic = RpcTraffic::new(head_says, 1 << 20);
        for chunk in body.as_bytes().chunks(7) {
            traffic.request(&Bytes::copy_from_slice(chunk));
        }
        recorder.record_with(seen.into(), Some(of_mcp(traffic)));
        let kept = &listed(&recorder)[0];
        assert_eq!((kept.kind, kept.tool.as_deref()), (kind, tool), "{body}");
    }
}

/// Keeps the collector at the first exchange until told to go on.
struct Gate(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl ExchangeObserver for Gate {
    fn ended(&self, note: &Arc<ExchangeNote>) {
        if note.url.ends_with("/gate") {
            // Whoever is gone waits for nothing.
            let _ = lock(&self.0).recv();
        }
    }
}

#[test]
fn what_the_collector_has_no_room_for_stays_unread_and_is_counted() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}"#;
    let recorder = recorder(RecorderOptions {
        unread: 2 * call.len() + 1,
        ..RecorderOptions::default()
    });
    let (open, gate) = std::sync::mpsc::channel();
    recorder.observe(Box::new(Gate(gate.into())));
    recorder.record(note(&recorder, "http://h/gate", Outcome::Ok));
    while !recorder.shared.queue.is_empty() {
        std::thread::yield_now();
    }
    for _ in 0..5 {
        let seen = note(&recorder, "http://h/mcp", Outcome::Ok);
        let mut traffic = RpcTraffic::new(Kind::Mcp, 1 << 20);
        traffic.request(&Bytes::from_static(call.as_bytes()));
        recorder.record_with(seen.into(), Some(of_mcp(traffic)));
    }
    let unread = &recorder.shared.unread;
    assert_eq!(unread.load(Ordering::Relaxed), 2 * call.len());
    open.send(()).expect("somebody waits");
    let kept = listed(&recorder);
    let tools: Vec<_> = kept.iter().map(|note| note.tool.as_deref()).collect();
    let known = Some("search");
    assert_eq!(tools[..5], [None, None, None, known, known]);
    let metrics = recorder.shared.metrics.render().expect("text");
    assert!(
        metrics.contains("squall_events_dropped_total{sink=\"journal\"} 3"),
        "{metrics}"
    );
    assert_eq!(unread.load(Ordering::Relaxed), 0);
}

/// Panics at one exchange.
struct Panics;

impl ExchangeObserver for Panics {
    fn ended(&self, note: &Arc<ExchangeNote>) {
        assert!(!note.url.ends_with("/panics"), "as it should");
    }
}

#[test]
fn a_panic_costs_the_collector_one_exchange() {
    let recorder = recorder(RecorderOptions::default());
    recorder.observe(Box::new(Panics));
    for path in ["a", "panics", "b"] {
        recorder.record(note(&recorder, &format!("http://h/{path}"), Outcome::Ok));
    }
    let kept = listed(&recorder);
    let urls: Vec<_> = kept.iter().map(|note| note.url.as_str()).collect();
    assert_eq!(urls, ["http://h/b", "http://h/a"]);
    recorder.record(note(&recorder, "http://h/c", Outcome::Ok));
    assert_eq!(listed(&recorder).len(), 3);
}

#[test]
fn a_list_of_calls_is_found_under_each_of_its_tools() {
    let recorder = recorder(RecorderOptions::default());
    let call = |name: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#)
    };
    let body = format!("[{},{},{}]", call("search"), call("book"), call("search"));
    let seen = note(&recorder, "http://h/mcp", Outcome::Ok);
    let mut traffic = RpcTraffic::new(Kind::Tool, 1 << 20);
    traffic.request(&Bytes::from(body));
    recorder.record_with(seen.into(), Some(of_mcp(traffic)));
    recorder.flush();
    for (tool, found) in [("search", 1), ("book", 1), ("mail", 0)] {
        let filter = Filter {
            tool: Some(tool.to_owned()),
            ..Filter::default()
        };
        let page = recorder.exchanges(&filter, None, 10);
        assert_eq!(page.items.len(), found, "{tool}");
        for seen in page.items {
            let record = seen.to_record();
            assert_eq!(record.tool.as_deref(), Some("search"));
            assert_eq!(record.more_tools, ["book"]);
        }
    }
}

#[test]
fn an_open_exchange_is_listed_and_then_ends_under_the_same_id() {
    let recorder = recorder(RecorderOptions::default());
    let begin = recorder.newest_event();
    let open = note(&recorder, "http://h/slow", Outcome::Open);
    recorder.record(open.clone());
    let record = listed(&recorder)[0].to_record();
    assert_eq!((record.outcome, record.duration_ms), (Outcome::Open, None));
    assert!(
        recorder.events_after(begin, 10).events.is_empty(),
        "only its end is an event"
    );

    let duration = Duration::from_micros(1_500_250);
    recorder.record(ExchangeNote {
        outcome: Outcome::Ok,
        duration,
        ..open
    });
    let all = listed(&recorder);
    assert_eq!(all.len(), 1);
    let record = all[0].to_record();
    assert_eq!(
        (record.outcome, record.duration_ms),
        (Outcome::Ok, Some(1500.25))
    );
    assert_eq!(recorder.events_after(begin, 10).events.len(), 1);
}

#[test]
fn what_does_not_fit_into_the_queue_is_dropped_and_counted() {
    let recorder = recorder(RecorderOptions {
        queue: 2,
        ..RecorderOptions::default()
    });
    // Nobody takes anything off the queue from here on.
    recorder.stop();
    for _ in 0..5 {
        recorder.record(note(&recorder, "http://h/", Outcome::Ok));
    }
    let text = recorder.shared.metrics.render().expect("renders");
    assert!(
        text.contains("squall_events_dropped_total{sink=\"journal\"} 3"),
        "{text}"
    );
}

#[test]
fn what_is_queued_when_the_recorder_stops_is_taken_in() {
    let recorder = recorder(RecorderOptions::default());
    for _ in 0..1000 {
        recorder.record(note_of_nothing(&recorder));
    }
    recorder.stop();
    assert_eq!(listed(&recorder).len(), 1000);
}

/// Cheaper than [`note`]: without a [`Chaos`] of its own.
fn note_of_nothing(recorder: &Recorder) -> ExchangeNote {
    thread_local! {
        static SCOPE: Arc<crate::chaos::ScopeChaos> = {
            let recorder = Recorder::start(RecorderOptions::default(), metrics()).expect("a thread");
            let library = Library::default();
            Chaos::new(library, ToolNames::default(), Defaults::default(), recorder, metrics())
                .scope(None)
        };
    }
    let started = Instant::now();
    let id = recorder.begin(started);
    let url = "http://h/".to_owned();
    let mut note = SCOPE.with(|scope| scope.note(id, started, Kind::Tool, Method::GET, url));
    note.outcome = Outcome::Ok;
    note.status = Some(StatusCode::OK);
    note
}

#[test]
fn nothing_is_lost_between_many_threads_and_a_collector_that_falls_asleep() {
    let recorder = recorder(RecorderOptions::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..2000 {
                    recorder.record(note_of_nothing(&recorder));
                    if round % 100 == 0 {
                        recorder.flush();
                    }
                }
            });
        }
    });
    assert_eq!(listed(&recorder).len(), 8000);
    let text = recorder.shared.metrics.render().expect("renders");
    let counted = "squall_exchanges_total{dialect=\"none\",kind=\"tool\",outcome=\"ok\"} 8000";
    assert!(text.lines().any(|line| line == counted), "{text}");
}

#[test]
fn what_a_model_call_says_is_read_and_counted() {
    let recorder = recorder(RecorderOptions::default());
    let dialect = squall_dialects::by_name("openai-chat").expect("a dialect");
    let mut traffic = ModelTraffic::new(dialect, None, "/v1/chat/completions", 1 << 20);
    let request = Bytes::from_static(br#"{"model":"gpt-x","stream":true,"messages":[]}"#);
    traffic.request(&request);
    let mut call = note_of_nothing(&recorder);
    call.kind = Kind::Llm;
    call.dialect = Some(dialect.name());
    let traffic = Traffic {
        model: Some(traffic),
        ..Traffic::default()
    };
    recorder.record_with(call.into(), Some(Box::new(traffic)));

    let mut known = note_of_nothing(&recorder);
    known.dialect = Some("openai-chat");
    known.llm = Some(Box::new(LlmRecord {
        model: Some("gpt-x".into()),
        input_tokens: Some(5),
        ..LlmRecord::default()
    }));
    recorder.record(known);

    let all = listed(&recorder);
    let llm = all[1].to_record().llm.expect("it was read");
    assert_eq!((llm.model.as_deref(), llm.stream), (Some("gpt-x"), true));
    let text = recorder.shared.metrics.render().expect("renders");
    let counted =
        "squall_llm_tokens_total{dialect=\"openai-chat\",direction=\"input\",model=\"gpt-x\"} 5";
    assert!(text.lines().any(|line| line == counted), "{text}");
}

#[test]
fn a_reader_that_comes_back_too_late_is_told_and_counted() {
    let events = events::Bounds {
        events: 10,
        ..events::Bounds::default()
    };
    let recorder = recorder(RecorderOptions {
        events,
        ..RecorderOptions::default()
    });
    let begin = recorder.newest_event();
    for _ in 0..25 {
        recorder.record(note_of_nothing(&recorder));
    }
    recorder.flush();
    let batch = recorder.events_after(begin, 100);
    assert_eq!(
        (batch.events.len(), batch.gap.and_then(|gap| gap.missed)),
        (10, Some(15))
    );
    assert_eq!(
        recorder.events_after(EventId::ELSEWHERE, 100).events.len(),
        10
    );
    let text = recorder.shared.metrics.render().expect("renders");
    assert!(
        text.contains("squall_events_dropped_total{sink=\"events\"} 15"),
        "{text}"
    );
}

mod records {
    use squall_profiles::trigger::NotDrawn;
    use squall_profiles::verdict::{Draw, RuleVerdict, VerdictOutcome};

    use super::*;

    fn rule() -> Arc<squall_profiles::rule::Rule> {
        let text = "chaos: {tool_faults: [{tool: search, mode: error}]}";
        let profile = squall_profiles::profile::parse("p.yaml", text).expect("valid");
        profile.rules[0].clone()
    }

    fn verdict(outcome: VerdictOutcome) -> RuleVerdict {
        let drawn = Some(Draw {
            value: 250_000,
            below: 300_000,
        });
        RuleVerdict {
            rule: rule(),
            outcome,
            ordinal: 3,
            drawn,
            spent: None,
            told_of: None,
        }
    }

    #[test]
    fn rules_are_explained_applied_ones_first() {
        let recorder = recorder(RecorderOptions::default());
        let mut note = note_of_nothing(&recorder);
        note.verdicts = vec![
            verdict(VerdictOutcome::NotDrawn(NotDrawn::Limit)),
            verdict(VerdictOutcome::Chosen),
            verdict(VerdictOutcome::Bypassed("the body is too long".into())),
            verdict(VerdictOutcome::Applied),
        ];
        note.verdicts_more = 7;
        recorder.record(note);
        let record = listed(&recorder)[0].to_record();
        let outcomes: Vec<_> = record.rules.iter().map(|rule| rule.outcome).collect();
        assert_eq!(
            outcomes,
            [
                RuleOutcome::Applied,
                RuleOutcome::Bypassed,
                RuleOutcome::Bypassed,
                RuleOutcome::NotDrawn
            ]
        );
        let reasons: Vec<_> = record
            .rules
            .iter()
            .map(|rule| rule.reason.as_deref())
            .collect();
        assert_eq!(reasons[0], None);
        assert_eq!(reasons[1], Some("the exchange ended before it was reached"));
        assert_eq!(reasons[2], Some("the body is too long"));
        assert_eq!(
            (record.rules[0].ordinal, record.rules[0].drawn),
            (3, Some(0.25))
        );
        assert_eq!(record.rules_more, 7);
        let text = recorder.shared.metrics.render().expect("renders");
        for line in [
            "squall_rules_skipped_total{reason=\"bypassed\"} 2",
            "squall_rules_skipped_total{reason=\"not_drawn\"} 8",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "{line} is missing in {text}"
            );
        }
    }

    #[test]
    fn at_most_64_rules_are_listed_and_the_rest_counted() {
        let recorder = recorder(RecorderOptions::default());
        let mut note = note_of_nothing(&recorder);
        note.verdicts = (0..100).map(|_| verdict(VerdictOutcome::Applied)).collect();
        note.verdicts_more = 1;
        let record = note.to_record();
        assert_eq!((record.rules.len(), record.rules_more), (64, 37));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However many notes come between two looks, paging by cursor shows what was there at the
    /// first look once.
    #[test]
    fn pages_hold_while_exchanges_come_in(
        before in 0_usize..40,
        during in 0_usize..5,
        limit in 1_usize..7,
    ) {
        let recorder = recorder(RecorderOptions::default());
        for _ in 0..before {
            recorder.record(note_of_nothing(&recorder));
        }
        let expected: Vec<_> = listed(&recorder).iter().map(|note| note.id).collect();
        let (mut shown, mut cursor) = (Vec::new(), None);
        loop {
            let page = recorder.exchanges(&Filter::default(), cursor, limit);
            shown.extend(page.items.iter().map(|note| note.id));
            for _ in 0..during {
                recorder.record(note_of_nothing(&recorder));
            }
            recorder.flush();
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        prop_assert_eq!(shown, expected);
        recorder.stop();
    }
}
