mod suspended;

use squall_documents::DocumentError;
use squall_journal::events::EventId;
use squall_profiles::facts::CanonicalUrl;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::recorder::{JournalEvent, RecorderOptions};

struct Bench {
    chaos: Arc<Chaos>,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    begin: EventId,
}

fn bench() -> Bench {
    with_defaults(Defaults::default())
}

fn with_defaults(defaults: Defaults) -> Bench {
    let metrics = Arc::new(Metrics::new("0"));
    let recorder = Recorder::start(RecorderOptions::default(), metrics.clone()).expect("a thread");
    let begin = recorder.newest_event();
    let library = Library::builtin();
    let tools = ToolNames::default();
    let chaos = Chaos::new(library, tools, defaults, recorder.clone(), metrics.clone());
    Bench {
        chaos,
        recorder,
        metrics,
        begin,
    }
}

fn inline(text: &str) -> ChaosRequest {
    let profile = squall_profiles::profile::parse_chaos("chaos", INLINE, text).expect("valid");
    ChaosRequest {
        rules: RuleSource::Inline(Arc::new(profile)),
        ..ChaosRequest::profile("")
    }
}

/// Two rules, so that a number tells which set is in force.
const TWO_RULES: &str = "{tool_faults: [{tool: a, mode: error}, {tool: b, mode: error}]}";

impl Bench {
    fn put(&self, scope: &str, text: &str) -> ActivationRecord {
        self.chaos.put(scope, inline(text)).expect("valid")
    }

    fn put_profile(&self, scope: &str, name: &str) -> ActivationRecord {
        let put = self.chaos.put(scope, ChaosRequest::profile(name));
        put.expect("a profile")
    }

    /// Puts two rules with a time to live.
    fn put_for(&self, scope: &str, ttl: Option<Duration>) {
        let request = ChaosRequest {
            ttl,
            ..inline(TWO_RULES)
        };
        self.chaos.put(scope, request).expect("valid");
    }

    fn put_for_run(&self, scope: &str, run: &Arc<RunMark>) -> (Arc<ScopeChaos>, ActivationRecord) {
        let put = self.chaos.put_for_run(scope, inline(TWO_RULES), run);
        put.expect("valid")
    }

    fn events(&self) -> Vec<(Change, String, Option<String>)> {
        let batch = self.recorder.events_after(self.begin, usize::MAX);
        let events = batch
            .events
            .into_iter()
            .filter_map(|(_, event)| match event {
                JournalEvent::Chaos(event) => {
                    Some((event.change, event.now.scope.clone(), event.reason.clone()))
                }
                JournalEvent::Exchange(_) | JournalEvent::Run { .. } => None,
            });
        events.collect()
    }

    fn rules(&self, scope: &str) -> usize {
        self.chaos
            .scope(Some(scope))
            .activation()
            .rules()
            .rules()
            .len()
    }

    /// What the metrics count in force.
    fn active(&self) -> Vec<String> {
        let text = self.metrics.render().expect("renders");
        let active = text
            .lines()
            .filter(|line| line.starts_with("squall_chaos_active{") && !line.ends_with(" 0"));
        active.map(str::to_owned).collect()
    }
}

#[test]
fn a_scope_of_its_own_is_apart_from_the_default_one() {
    let bench = bench();
    bench.put(DEFAULT_SCOPE, TWO_RULES);
    let clean = bench.put_profile("clean", NO_CHAOS);
    assert_eq!(
        (bench.rules("clean"), bench.rules("other"), clean.inherited),
        (0, 2, false)
    );
    assert_eq!(bench.chaos.look("other").profile, INLINE);
    assert!(bench.chaos.look("other").inherited);
    assert!(bench.chaos.end("clean"));
    assert_eq!(bench.rules("clean"), 2, "it is under the default one again");
    assert!(!bench.chaos.end("clean"), "a fork is nobody's to end");
}

#[test]
fn a_named_scope_without_chaos_of_its_own_has_one_fork_with_its_own_key() {
    let bench = bench();
    let default = bench.put(DEFAULT_SCOPE, TWO_RULES);
    let fork = bench.chaos.scope(Some("cell-1"));
    assert!(
        Arc::ptr_eq(&fork, &bench.chaos.scope(Some("cell-1"))),
        "made once"
    );
    assert_eq!(fork.id().map(|id| &**id), default.activation.as_deref());
    assert_eq!(
        (fork.activation().key.as_str(), &**fork.scope()),
        ("cell-1", "cell-1")
    );
    assert_eq!(fork.activation().seed, 42);
}

#[test]
fn a_put_ends_the_connections_of_a_named_scope_whatever_came_between() {
    let bench = bench();
    for between in [
        (|_: &Bench| {}) as fn(&Bench),
        |bench| assert!(bench.chaos.end("agent")),
        |bench| assert_eq!(bench.chaos.end_all(None), 1),
        |bench| drop(bench.put(DEFAULT_SCOPE, TWO_RULES)),
    ] {
        bench.put("agent", TWO_RULES);
        let connection = bench.chaos.scope(Some("agent"));
        between(&bench);
        assert!(
            !connection.ended().is_cancelled(),
            "ending chaos ends no connection"
        );
        bench.put("agent", TWO_RULES);
        assert!(connection.ended().is_cancelled());
        assert!(!bench.chaos.scope(Some("agent")).ended().is_cancelled());
        bench.chaos.end_all(None);
    }
}

#[test]
fn the_first_put_on_a_scope_ends_the_connections_of_its_fork() {
    let bench = bench();
    let fork = bench.chaos.scope(Some("agent"));
    bench.put("agent", TWO_RULES);
    assert!(fork.ended().is_cancelled());
}

#[test]
fn canaries_are_searched_for_until_new_chaos_is_put_in_force() {
    let bench = bench();
    for scope in [DEFAULT_SCOPE, "own", "fork"] {
        let owner = if scope == "fork" {
            DEFAULT_SCOPE
        } else {
            scope
        };
        for end in [
            (|bench, owner| assert!(bench.chaos.end(owner))) as fn(&Bench, &str),
            |bench, _| assert_eq!(bench.chaos.end_all(None), 1),
        ] {
            bench.put(owner, TWO_RULES);
            let planted = |scope| bench.chaos.scope(Some(scope)).planted().any();
            assert!(!planted(scope), "{scope} begins anew");
            let origin = crate::recorder::CanaryOrigin {
                exchange: bench.recorder.begin(Instant::now()),
                rule: "attack".to_owned(),
                payload: None,
            };
            let canary = squall_profiles::canary::Canary::from_draw(7);
            bench
                .chaos
                .scope(Some(scope))
                .planted()
                .plant(canary, origin);
            assert!(planted(scope), "{scope}");
            assert!(!planted("another"), "{scope}");
            end(&bench, owner);
            assert!(planted(scope), "{scope} after its end");
            assert!(!planted("another"), "{scope} after its end");
        }
    }
}

#[test]
fn metrics_have_the_times_of_chaos_and_its_faults_before_the_first() {
    let bench = bench();
    bench.put_for("a", Some(Duration::from_mins(1)));
    bench.put_for("b", Some(Duration::from_mins(2)));
    let text = bench.metrics.render().expect("renders");
    let value = |series: &str| -> i64 {
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        let value = line.unwrap_or_else(|| panic!("no {series} in\n{text}"));
        value.trim().parse().expect("a number")
    };
    let faults = "{family=\"tool_faults\",mode=\"error\",profile=\"inline\"}";
    assert_eq!(value(&format!("squall_faults_injected_total{faults}")), 0);
    let time = |name| {
        value(&format!(
            "squall_chaos_{name}_timestamp_seconds{{profile=\"inline\"}}"
        ))
    };
    let lasts = time("expires") - time("started");
    assert!((120..=180).contains(&lasts), "{lasts}");
    bench.put_for("a", None);
    let text = bench.metrics.render().expect("renders");
    assert!(!text.contains("squall_chaos_expires_timestamp_seconds{"));
}

#[test]
fn one_call_ends_all_chaos_and_says_so_for_each_scope() {
    let bench = bench();
    bench.put(DEFAULT_SCOPE, TWO_RULES);
    bench.put("a", TWO_RULES);
    bench.put_profile("clean", NO_CHAOS);
    assert_eq!(bench.rules("b"), 2);
    assert_eq!(
        bench.active(),
        ["squall_chaos_active{profile=\"inline\"} 2"]
    );
    assert_eq!(bench.chaos.end_all(Some("enough")), 3);
    assert_eq!(
        ["default", "a", "b"].map(|scope| bench.rules(scope)),
        [0, 0, 0]
    );
    assert!(bench.active().is_empty());
    let mut ended = bench.events().split_off(3);
    ended.sort_by(|a, b| a.1.cmp(&b.1));
    let reason = Some("enough".to_owned());
    assert_eq!(
        ended,
        [
            (Change::Ended, "a".to_owned(), reason.clone()),
            (Change::Ended, "clean".to_owned(), reason.clone()),
            (Change::Ended, "default".to_owned(), reason)
        ]
    );
}

#[test]
fn chaos_ends_when_its_time_is_over_and_not_before() {
    let bench = bench();
    let ttl = Some(Duration::from_mins(1));
    bench.put_for("a", ttl);
    bench.put("b", TWO_RULES);
    let now = Instant::now();
    let next = bench
        .chaos
        .end_expired(now)
        .expect("one has a time to live");
    assert!(next > now && next <= now + Duration::from_mins(1));
    assert_eq!(bench.rules("a"), 2);
    assert_eq!(bench.chaos.end_expired(next), None);
    assert_eq!((bench.rules("a"), bench.rules("b")), (0, 2));
    let over = Some("its time to live is over".to_owned());
    assert_eq!(
        bench.events().pop(),
        Some((Change::Ended, "a".to_owned(), over))
    );
}

#[test]
fn no_activation_outlives_the_limit_of_the_config() {
    let limit = Duration::from_mins(10);
    let bench = with_defaults(Defaults {
        ttl: Some(limit),
        ..Defaults::default()
    });
    for (ttl, expected) in [(None, 10), (Some(5), 5), (Some(20), 10)] {
        let ttl = ttl.map(Duration::from_mins);
        bench.put_for("a", ttl);
        let now = Instant::now();
        let left = bench.chaos.end_expired(now).expect("it ends") - now;
        assert_eq!(left.as_secs().div_ceil(60), expected, "{ttl:?}");
    }
}

#[tokio::test]
async fn the_time_keeper_ends_what_is_put_while_it_sleeps() {
    let bench = bench();
    let stop = CancellationToken::new();
    let keeper = tokio::spawn(bench.chaos.clone().keep_time(stop.clone()));
    let mut changes = bench.recorder.changes();
    let ttl = Some(Duration::from_millis(20));
    bench.put_for("a", ttl);
    while bench.chaos.look("a").rules > 0 {
        changes.changed().await.expect("the recorder lives");
    }
    stop.cancel();
    keeper.await.expect("it returns");
}

/// Nobody keeps time here: the exchange itself finds that the time is over.
#[test]
fn an_exchange_after_the_time_to_live_meets_no_chaos() {
    let bench = bench();
    for (put_in, asked_for) in [
        ("a", "a"),
        (DEFAULT_SCOPE, "fork"),
        (DEFAULT_SCOPE, "default"),
    ] {
        bench.put_for(put_in, Some(Duration::ZERO));
        let found = bench.chaos.scope(Some(asked_for));
        assert_eq!(found.activation().rules().rules().len(), 0, "{asked_for}");
        let over = Some("its time to live is over".to_owned());
        let event = (Change::Ended, put_in.to_owned(), over);
        assert_eq!(bench.events().pop(), Some(event), "{asked_for}");
    }
}

#[test]
fn forks_are_bounded_and_those_in_use_stay() {
    let bench = bench();
    bench.put("own", TWO_RULES);
    let busy = bench.chaos.scope(Some("busy"));
    for number in 0..table::FORKS + 200 {
        let name = format!("scope-{number}");
        bench.chaos.scope(Some(&name));
        bench.chaos.scope(Some("busy"));
    }
    // The default scope, the scope with chaos of its own, and the forks.
    assert_eq!(bench.chaos.list().len(), 2 + table::FORKS);
    assert!(Arc::ptr_eq(&busy, &bench.chaos.scope(Some("busy"))));
    assert_eq!(bench.rules("own"), 2);
}

#[test]
fn scopes_whose_chaos_has_ended_are_bounded_too() {
    let bench = bench();
    for number in 0..table::FORKS + 50 {
        let name = format!("one-by-one-{number}");
        bench.put_profile(&name, NO_CHAOS);
        bench.chaos.end(&name);
    }
    assert_eq!(bench.chaos.list().len(), 1 + table::FORKS);
    for number in 0..100 {
        let name = format!("at-once-{number}");
        bench.put_profile(&name, NO_CHAOS);
    }
    bench.chaos.end_all(None);
    assert_eq!(bench.chaos.list().len(), 1 + table::FORKS);
}

#[test]
fn an_unknown_profile_changes_nothing() {
    let bench = bench();
    bench.put("a", TWO_RULES);
    let refused = bench
        .chaos
        .put("a", ChaosRequest::profile("no_such_profile"));
    assert_eq!(
        refused,
        Err(PutError::UnknownProfile("no_such_profile".into()))
    );
    assert_eq!(bench.rules("a"), 2);
}

fn put_profile(name: &str, text: &str) -> impl FnOnce(&Library) -> Result<Library, DocumentError> {
    let profile = squall_profiles::profile::parse(name, text).expect("valid");
    move |library| library.with_api(name, profile)
}

#[test]
fn names_of_tools_that_came_with_chaos_outlive_an_edit_and_a_reload() {
    let bench = bench();
    let chaos = &bench.chaos;
    let tool_names = |name: &str| {
        let globs = ["http://search:5001/*".to_owned()];
        ToolNames::new([(name, &globs[..])]).expect("a glob")
    };
    let one = "chaos: {tool_faults: [{tool: search, mode: error}]}";
    let two = "chaos: {tool_faults: [{tool: search, mode: error}, {tool: b, mode: error}]}";
    chaos.edit(put_profile("base", one)).expect("valid");
    let with_tools = |name: &str| ChaosRequest {
        tools: tool_names("search"),
        ..ChaosRequest::profile(name)
    };
    chaos.put("run", with_tools("base")).expect("known");
    chaos.put("clean", with_tools(NO_CHAOS)).expect("known");
    bench.put_profile("other", "base");
    let url = CanonicalUrl::new("http", "search:5001", "/q");
    let own = |scope: &str| -> Vec<String> {
        let rules = chaos.scope(Some(scope)).activation().rules();
        let names = rules.own_tools().names(&url).into_iter();
        names.map(str::to_owned).collect()
    };
    let check = || {
        assert_eq!(
            (own("run"), own("clean")),
            (vec!["search".into()], vec!["search".into()])
        );
        assert_eq!(own("other"), Vec::<String>::new());
    };
    check();
    chaos.edit(put_profile("base", two)).expect("valid");
    assert_eq!(bench.rules("run"), 2, "it was compiled again");
    check();
    chaos
        .reconfigure(tool_names("of the config"), Defaults::default())
        .expect("valid");
    check();
}

#[test]
fn an_edit_takes_effect_at_once_in_every_scope_under_it_and_nowhere_else() {
    let bench = bench();
    let chaos = &bench.chaos;
    let one = "chaos: {tool_faults: [{tool: a, mode: error}]}";
    let two = "chaos: {tool_faults: [{tool: a, mode: error}, {tool: b, mode: error}]}";
    chaos.edit(put_profile("base", one)).expect("valid");
    chaos
        .edit(put_profile("more", "extends: [base]\nchaos: {}"))
        .expect("valid");
    bench.put_profile(DEFAULT_SCOPE, "more");
    bench.put_profile("own", "base");
    bench.put("apart", "{tool_faults: [{tool: z, mode: error}]}");
    let kept = chaos.scope(Some("own"));
    let scopes = ["default", "fork", "own", "apart"];
    assert_eq!(scopes.map(|scope| bench.rules(scope)), [1, 1, 1, 1]);

    chaos.edit(put_profile("base", two)).expect("valid");
    assert_eq!(scopes.map(|scope| bench.rules(scope)), [2, 2, 2, 1]);
    assert!(
        Arc::ptr_eq(&kept, &chaos.scope(Some("own"))),
        "it is the same activation"
    );
    let edited: Vec<_> = bench
        .events()
        .into_iter()
        .filter(|(change, ..)| *change == Change::Edited)
        .collect();
    assert_eq!(edited.len(), 2, "{edited:?}");

    chaos.edit(put_profile("base", two)).expect("valid");
    let events = bench.events().len();
    chaos.edit(put_profile("unrelated", one)).expect("valid");
    assert_eq!(
        bench.events().len(),
        events,
        "an edit that changes nothing in force is no event"
    );
}

#[test]
fn a_profile_in_force_that_is_deleted_stays_in_force() {
    let bench = bench();
    let one = "chaos: {tool_faults: [{tool: a, mode: error}]}";
    bench.chaos.edit(put_profile("mine", one)).expect("valid");
    bench.put_profile("a", "mine");
    bench
        .chaos
        .edit(|library| library.without_api("mine"))
        .expect("it is the API's");
    assert_eq!(bench.rules("a"), 1);
    assert_eq!(
        bench.chaos.put("a", ChaosRequest::profile("mine")),
        Err(PutError::UnknownProfile("mine".into()))
    );
}

#[test]
fn too_many_faults_end_all_chaos() {
    use http::Method;
    use squall_journal::record::Outcome;
    use squall_profiles::facts::Kind;
    use squall_profiles::verdict::{RuleVerdict, VerdictOutcome};

    let halt = Halt {
        faults: Some(2),
        error_share: None,
        over: Duration::from_mins(1),
    };
    let bench = with_defaults(Defaults {
        halt: Some(halt),
        ..Defaults::default()
    });
    bench.put(DEFAULT_SCOPE, TWO_RULES);
    let scope = bench.chaos.scope(None);
    let rule = scope.activation().rules().rules()[0].clone();
    for applied in 1..=3 {
        let started = Instant::now();
        let id = bench.recorder.begin(started);
        let url = "http://h/".to_owned();
        let mut note = scope.note(id, started, Kind::Tool, Method::GET, url);
        note.outcome = Outcome::Injected;
        let rule = rule.clone();
        note.verdicts.push(RuleVerdict {
            rule,
            outcome: VerdictOutcome::Applied,
            ordinal: 1,
            drawn: None,
            spent: None,
            told_of: None,
        });
        bench.recorder.record(note);
        bench.recorder.flush();
        assert_eq!(
            bench.rules(DEFAULT_SCOPE) == 0,
            applied > 2,
            "after {applied} faults"
        );
    }
    let (change, _, reason) = bench.events().pop().expect("an event");
    assert_eq!(change, Change::Ended);
    assert_eq!(reason.as_deref(), Some("safety.halt: 3 faults within 60 s"));
}

#[test]
fn a_workspace_s_scopes_are_under_its_own_chaos_first() {
    let bench = bench();
    let workspaces = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned());
        bench.chaos.set_workspaces(Arc::new(names.collect()));
    };
    bench.put("w", TWO_RULES);
    assert_eq!(bench.rules("w.early"), 0, "nobody has the workspace yet");
    workspaces(&["w"]);
    for (scope, rules) in [
        ("w.early", 2),
        ("w.late", 2),
        ("w", 2),
        ("w2.x", 0),
        ("w-x", 0),
    ] {
        assert_eq!(bench.rules(scope), rules, "{scope}");
    }
    assert!(bench.chaos.look("w.unseen").inherited);
    assert_eq!(bench.chaos.look("w.unseen").rules, 2);
    bench.put_profile("w.clean", NO_CHAOS);
    bench.put(DEFAULT_SCOPE, "tool_faults: [{ mode: empty }]");
    for (scope, rules) in [("w.early", 2), ("w.clean", 0), ("w2.x", 1), ("default", 1)] {
        assert_eq!(bench.rules(scope), rules, "{scope}");
    }
    assert!(bench.chaos.end("w"));
    for (scope, rules) in [("w.early", 1), ("w.clean", 0), ("w", 1)] {
        assert_eq!(bench.rules(scope), rules, "{scope}: under the default one");
    }
    bench.put("w", TWO_RULES);
    workspaces(&[]);
    assert_eq!((bench.rules("w.early"), bench.rules("w")), (1, 2));
}

#[test]
fn ending_all_of_a_workspace_leaves_others_alone() {
    let bench = bench();
    let workspaces = ["w", "v"].map(str::to_owned).into();
    bench.chaos.set_workspaces(Arc::new(workspaces));
    for scope in ["w", "w.a", "v", "v.a", "other"] {
        bench.put(scope, TWO_RULES);
    }
    bench.put(DEFAULT_SCOPE, "tool_faults: [{ mode: empty }]");
    assert_eq!(bench.rules("w.fork"), 2);
    assert_eq!(bench.chaos.end_all_of("w"), 2);
    for (scope, rules) in [
        ("w", 1),
        ("w.a", 1),
        ("w.fork", 1),
        ("v", 2),
        ("v.a", 2),
        ("v.fork", 2),
        ("other", 2),
        ("default", 1),
    ] {
        assert_eq!(bench.rules(scope), rules, "{scope}");
    }
    assert_eq!(bench.chaos.end_all(None), 4);
    assert_eq!((bench.rules("v.fork"), bench.rules("default")), (0, 0));
}

fn for_run(chaos: &Arc<Chaos>, scope: &str, run: &Arc<RunMark>) -> Arc<ScopeChaos> {
    let request = ChaosRequest::profile(NO_CHAOS);
    let (scope, _) = chaos.put_for_run(scope, request, run).expect("no rules");
    scope
}

#[test]
fn ending_a_run_s_chaos_cuts_the_run_short_unless_the_run_does_it() {
    for (what, why) in [
        ("nothing", None),
        ("another scope's end", None),
        ("its scope's end", Some("its chaos was ended")),
        ("the end of everything", Some("all chaos was ended")),
        ("a limit", Some("safety.halt")),
        (
            "other chaos",
            Some("other chaos was put in force for its scope"),
        ),
    ] {
        let chaos = bench().chaos;
        let run = RunMark::new("r");
        for_run(&chaos, "run", &run);
        for_run(&chaos, "run", &run);
        match what {
            "another scope's end" => assert!(!chaos.end("other")),
            "its scope's end" => assert!(chaos.end("run")),
            "the end of everything" => assert_eq!(chaos.end_all(None), 1),
            "a limit" => assert_eq!(chaos.end_all(Some("safety.halt")), 1),
            "other chaos" => {
                let put = chaos.put("run", ChaosRequest::profile(NO_CHAOS));
                put.expect("no rules");
            }
            _ => {}
        }
        assert_eq!(run.why(), why, "{what}");
        assert_eq!(run.cut().is_cancelled(), why.is_some(), "{what}");
    }
    let chaos = bench().chaos;
    let (run, other) = (RunMark::new("r"), RunMark::new("o"));
    for scope in ["a", "b"] {
        for_run(&chaos, scope, &run);
    }
    for_run(&chaos, "c", &other);
    assert_eq!(chaos.end_for_run(Some("a"), &run), 1);
    assert_eq!(chaos.end_for_run(None, &run), 1);
    assert_eq!(chaos.end_for_run(None, &run), 0);
    assert!(chaos.look("a").inherited && !chaos.look("c").inherited);
    assert_eq!((run.why(), other.why()), (None, None));
}

#[test]
fn what_comes_when_a_runs_activation_was_closed_meets_no_rule_and_is_counted_apart() {
    let bench = bench();
    let run = RunMark::new("r");
    for scope in ["run-r-1", DEFAULT_SCOPE] {
        let (own, _) = bench.put_for_run(scope, &run);
        own.exchange_begins();
        let rest = bench.chaos.close_for_run(&own).expect("it was in force");
        let found = bench.chaos.scope(Some(scope));
        assert!(Arc::ptr_eq(&found, &rest), "{scope}");
        assert_eq!(bench.rules(scope), 0);
        found.exchange_begins();
        assert_eq!((own.exchanges_begun(), rest.exchanges_begun()), (1, 1));
        assert!(bench.chaos.close_for_run(&own).is_none(), "it is closed");
        assert!(!own.ended().is_cancelled(), "its exchanges go on");
        own.ended().cancel();
        assert!(!rest.ended().is_cancelled());
    }
    let listed = bench.chaos.list();
    assert!(listed.iter().all(|record| record.scope != "run-r-1"));
    // Neither chaos above it nor its end concerns what comes late.
    bench.put(DEFAULT_SCOPE, TWO_RULES);
    assert_eq!(bench.rules("run-r-1"), 0);
    bench.chaos.end_for_run(None, &run);
    assert_eq!(
        bench.rules("run-r-1"),
        2,
        "it is under the default one again"
    );
}

#[test]
fn all_chaos_ended_between_two_invocations_cuts_their_run_short() {
    let bench = bench();
    let run = RunMark::new("r");
    let (own, _) = bench.put_for_run("run-r-1", &run);
    bench.chaos.close_for_run(&own);
    assert_eq!(bench.chaos.end_all(None), 0);
    assert_eq!(run.why(), Some("all chaos was ended"));
}

#[test]
fn an_activation_can_go_on_in_another_scope() {
    let bench = bench();
    let run = RunMark::new("r");
    let (first, before) = bench.put_for_run("run-r-1", &run);
    bench.chaos.close_for_run(&first);
    let (second, after) = bench.chaos.go_on_for_run("run-r-2", &first, &run);
    assert_ne!(before.activation, after.activation);
    assert!(std::ptr::eq(first.activation(), second.activation()));
    assert!(std::ptr::eq(
        first.changed_results(),
        second.changed_results()
    ));
    assert_eq!((after.key, bench.rules("run-r-2")), (before.key, 2));
    assert_eq!(second.exchanges_begun(), 0);
}

#[test]
fn a_slot_names_the_invocation_under_way_and_what_is_left_of_it() {
    let bench = bench();
    let run = RunMark::new("r");
    let (own, _) = bench.put_for_run("run-r-1", &run);
    bench.chaos.aliases().slot("slot", "run-r-1");
    assert!(Arc::ptr_eq(&bench.chaos.scope_or_slot(Some("slot")), &own));
    let rest = bench.chaos.close_for_run(&own).expect("it was in force");
    assert!(Arc::ptr_eq(&bench.chaos.scope_or_slot(Some("slot")), &rest));
    let (next, _) = bench.put_for_run("run-r-2", &run);
    bench.chaos.aliases().slot("slot", "run-r-2");
    assert!(Arc::ptr_eq(&bench.chaos.scope_or_slot(Some("slot")), &next));
    assert!(rest.over().is_none());
    assert!(!next.ended().is_cancelled());
}

#[test]
fn connections_of_a_run_stay_between_its_invocations_unless_it_fails_connections() {
    let bench = bench();
    let run = RunMark::new("r");
    let is_over = |chaos: &ScopeChaos| {
        chaos
            .connections_over()
            .is_some_and(CancellationToken::is_cancelled)
    };
    let (own, _) = bench.put_for_run("run-r-1", &run);
    let (shared, _) = bench.put_for_run(DEFAULT_SCOPE, &run);
    let rest = bench.chaos.close_for_run(&own).expect("it was in force");
    own.ended().cancel();
    bench.put_for_run("run-r-1", &run);
    assert!(
        ![&own, &rest, &shared]
            .into_iter()
            .any(|chaos| is_over(chaos))
    );
    let other = RunMark::new("s");
    let (others, _) = bench.put_for_run("run-s-1", &other);
    run.end();
    assert!(is_over(&own) && is_over(&rest));
    assert!(!is_over(&shared), "others use it, too");
    other.connect_anew();
    let (shared, _) = bench.put_for_run(DEFAULT_SCOPE, &other);
    assert!(is_over(&others) && is_over(&shared));
    let tunnel = others.tunnel_over().expect("a named scope");
    assert!(!tunnel.is_cancelled(), "its exchange is still to come");
}
