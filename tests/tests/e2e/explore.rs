//! `squall explore` on the demo's shop: the oversell is found, replayed and shrunk, and is not found in the repaired
//! shop.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use squall_tests::daemon::{pid, wait};
use squall_tests::program::{client, told};
use squall_tests::upstream::{Upstream, standard};

use crate::desk::{CommandResult, Desk};

/// A running shop.
struct Shop {
    child: Child,
    port: u16,
}

impl Shop {
    /// Starts it; `desk` gets its suite as `shop.yaml`.
    fn open(desk: &Desk, options: &[&str]) -> Self {
        let mut command = desk.squall(&["demo", "--shop"]);
        command.args(options).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let (_, rest) = line.split_once("http://127.0.0.1:").unwrap();
        let port = rest.split('/').next().unwrap().parse().unwrap();
        // The suite precedes the second line.
        assert!(
            lines
                .next()
                .unwrap()
                .unwrap()
                .contains("squall explore -c shop.yaml")
        );
        let mut suite = vec![0; 16 << 10];
        let count = child.stdout.take().unwrap().read(&mut suite).unwrap();
        std::fs::write(desk.directory.path().join("shop.yaml"), &suite[..count]).unwrap();
        Self { child, port }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn close(mut self) {
        kill_process(pid(&self.child), Signal::TERM).unwrap();
        assert_eq!(wait(&mut self.child, "the shop").code(), Some(130));
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn explore(desk: &Desk, arguments: &[&str]) -> CommandResult {
    let mut command = desk.squall(&["explore"]);
    command.args(arguments).output().unwrap().into()
}

fn episode(desk: &Desk, file: &str) -> Value {
    let text = std::fs::read_to_string(desk.directory.path().join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The file of the first episode that oversold.
fn oversold(found: &CommandResult) -> Option<String> {
    let document: Value = serde_json::from_str(&found.out).unwrap_or_else(|_| panic!("{found:#?}"));
    let items = document["items"].as_array().unwrap();
    let has = |item: &&Value| {
        item["anomalies"]
            .as_array()
            .unwrap()
            .contains(&json!("oversold"))
    };
    Some(items.iter().find(has)?["file"].as_str().unwrap().to_owned())
}

#[test]
fn the_oversell_is_found_for_any_seed_and_replayed() {
    let desk = Desk::new();
    let shop = Shop::open(&desk, &[]);
    let mut file = String::new();
    for seed in 1..=20 {
        let seed = seed.to_string();
        let found = explore(&desk, &["-c", "shop.yaml", "--json", "--seed", &seed]);
        found.ended(1);
        file = oversold(&found).unwrap_or_else(|| panic!("not found with seed {seed}: {found:#?}"));
    }
    let replayed = explore(&desk, &["replay", &file]);
    replayed.ended(1);
    replayed.out_has("oversold persists");
    replayed.out_has("the states are the same after every step");

    // The same seed gives the same actions and observations.
    let before = episode(&desk, &file);
    explore(&desk, &["-c", "shop.yaml", "--json", "--seed", "20"]).ended(1);
    let sequence = |episode: &Value| {
        let steps = episode["steps"].as_array().unwrap().iter();
        let parts = [
            "action",
            "parameters",
            "status",
            "latency_ms",
            "state",
            "signature",
            "anomalies",
        ];
        steps
            .map(|step| parts.map(|part| step[part].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(sequence(&before), sequence(&episode(&desk, &file)));

    // Nothing shorter oversells than to drain the stock and to expedite an order.
    let shrunk = explore(&desk, &["replay", &file, "--shrink", "--json"]);
    shrunk.ended(1);
    let shrunk: Value = serde_json::from_str(&shrunk.out).unwrap();
    let shrunk = shrunk["shrunk"].as_array().unwrap().iter();
    let shortest = shrunk
        .clone()
        .find(|one| one["anomaly"] == "oversold")
        .unwrap();
    let names: Vec<_> = shortest["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["action"].clone())
        .collect();
    assert_eq!(names, ["drain", "purchase"]);
    let smallest = shortest["file"].as_str().unwrap();
    assert_eq!(
        episode(&desk, smallest)["steps"].as_array().unwrap().len(),
        2
    );

    // The same port, with the shop repaired.
    let port = shop.port.to_string();
    shop.close();
    let _repaired = Shop::open(&desk, &["--port", &port, "--repaired"]);
    let gone = explore(&desk, &["replay", smallest]);
    gone.ended(0);
    gone.out_has("oversold is gone");
    gone.out_has("the states part after step 2, purchase (expedite true");
    let clean = explore(&desk, &["-c", "shop.yaml", "--output", "clean"]);
    clean.ended(0);
    clean.out_has("squall explore: 0 anomalies in 5 episodes");
    assert_eq!(
        std::fs::read_dir(desk.directory.path().join("clean"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn the_application_is_started_when_it_is_not_there_and_ended() {
    let desk = Desk::new();
    let shop = Shop::open(&desk, &[]);
    let url = shop.url("/state");
    shop.close();
    let found = explore(&desk, &["-c", "shop.yaml", "--episodes", "1"]);
    found.ended(1);
    let refused = Command::new("curl")
        .args(["-s", "--noproxy", "*", &url])
        .status()
        .unwrap();
    assert_eq!(refused.code(), Some(7), "the shop still runs");
}

/// A suite for an application at an upstream of the test.
fn suite_of(upstream: &Upstream, actions: &Value) -> Value {
    json!({ "explore": {
        "base_url": format!("http://{}", upstream.address),
        "state": { "url": "/json" }, "reset": { "url": "/reset" },
        "actions": actions, "anomalies": [{ "status": "5xx" }],
    } })
}

#[test]
fn only_declared_actions_are_sent_and_redirects_are_not_followed() {
    let elsewhere = Upstream::start(None, standard::serve);
    let desk = Desk::new();
    let location = format!("http://{}/stolen", elsewhere.address);
    let application = Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            if request.target.starts_with("/go") {
                let moved = "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: ";
                connection.send(format!("{moved}{location}\r\n\r\n"));
            } else {
                connection.send(standard::whole("200 OK", "application/json", b"{}"));
            }
        }
    });
    let actions = json!([
        { "name": "go", "path": "/go/{place}?n={n}",
          "parameters": { "place": ["../..//evil.test", "a"], "n": [1, "@evil.test&x=#"] } },
        { "name": "read", "method": "GET", "path": "/read" },
    ]);
    desk.write(&suite_of(&application, &actions));
    explore(&desk, &["--steps", "40", "--episodes", "1"]).ended(0);
    assert_eq!(elsewhere.requests().len(), 0, "a redirect was followed");
    let mut sent: Vec<_> = application
        .requests()
        .into_iter()
        .map(|it| format!("{} {}", it.method, it.target))
        .collect();
    sent.sort();
    sent.dedup();
    let expected = [
        "GET /json",
        "GET /read",
        "POST /go/..%2F..%2F%2Fevil.test?n=%40evil.test%26x%3D%23",
        "POST /go/..%2F..%2F%2Fevil.test?n=1",
        "POST /go/a?n=%40evil.test%26x%3D%23",
        "POST /go/a?n=1",
        "POST /reset",
    ];
    assert_eq!(sent, expected);

    // A file cannot add an action, nor a value.
    let file = desk.directory.path().join("changed.json");
    let seen = json!({ "status": 200, "latency_ms": 0, "response": null, "state": {}, "signature": "", "log": [], "anomalies": [] });
    for choice in [
        json!({ "action": "delete", "parameters": {} }),
        json!({ "action": "go", "parameters": { "place": "b", "n": 1 } }),
    ] {
        let mut step = seen.clone();
        step.as_object_mut()
            .unwrap()
            .extend(choice.as_object().unwrap().clone());
        let episode = json!({ "suite": "suite.yaml", "seed": 1, "episode": 1, "new_states": 0, "initial": seen, "steps": [step] });
        std::fs::write(&file, episode.to_string()).unwrap();
        let refused = explore(&desk, &["replay", "changed.json"]);
        refused.ended(2);
        refused.err_has("only declared actions are sent");
    }
}

#[test]
fn the_suites_chaos_is_in_force_for_actions_only() {
    let desk = Desk::new();
    let application = Upstream::start(None, standard::serve);
    let mut suite = suite_of(
        &application,
        &json!([{ "name": "read", "method": "GET", "path": "/json" }]),
    );
    desk.write(&suite);
    explore(&desk, &["--episodes", "1", "--steps", "2"]).ended(0);
    suite["chaos"] =
        json!({ "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 503 }] });
    desk.write(&suite);
    let found = explore(&desk, &["--episodes", "1", "--steps", "2"]);
    found.ended(1);
    found.out_has("status 5xx in episode 1 after step 1, read: 503");
}

#[test]
fn secrets_in_what_is_found_are_removed() {
    let desk = Desk::new();
    let application = Upstream::start(None, |mut connection| {
        while connection.request().is_some() {
            let body = br#"{"name": "AKIAIOSFODNN7EXAMPLE", "token": "plain words"}"#;
            connection.send(standard::whole("200 OK", "application/json", body));
        }
    });
    let mut suite = suite_of(&application, &json!([{ "name": "read", "path": "/read" }]));
    suite["explore"]["anomalies"] =
        json!([{ "jsonpath": "$.name", "of": "response" }, { "jsonpath": "$.token" }]);
    desk.write(&suite);
    let found = explore(&desk, &["--episodes", "1", "--steps", "1"]);
    found.ended(1);
    let file = "artifacts/episodes/episode_seed42_001.json";
    let text = std::fs::read_to_string(desk.directory.path().join(file)).unwrap();
    for text in [&text, &found.out] {
        assert!(text.contains("REDACTED"), "{text}");
        assert!(
            !text.contains("AKIA") && !text.contains("plain words"),
            "{text}"
        );
    }
}

#[test]
fn an_exploration_without_a_success_or_with_a_dead_application_is_no_pass() {
    let desk = Desk::new();
    // After the action, the application neither resets nor shows its state.
    let dead = std::sync::atomic::AtomicBool::new(false);
    let application = Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            dead.fetch_or(
                request.target == "/die",
                std::sync::atomic::Ordering::SeqCst,
            );
            let status = match (
                &*request.target,
                dead.load(std::sync::atomic::Ordering::SeqCst),
            ) {
                (_, true) => "500 Internal Server Error",
                ("/typo", false) => "404 Not Found",
                (_, false) => "200 OK",
            };
            connection.send(standard::whole(status, "application/json", b"{}"));
        }
    });
    desk.write(&suite_of(
        &application,
        &json!([{ "name": "typo", "path": "/typo" }]),
    ));
    let nothing = explore(&desk, &["--episodes", "1", "--steps", "2"]);
    nothing.ended(4);
    nothing.err_has("no action got a response below status 400");
    desk.write(&suite_of(
        &application,
        &json!([{ "name": "die", "path": "/die" }]),
    ));
    let died = explore(&desk, &["--episodes", "3", "--steps", "2"]);
    died.ended(1);
    died.out_has("no state");
    died.out_has("artifacts/episodes/episode_seed42_001.json");
    died.err_has("the exploration ended in episode 2");
}

#[test]
fn what_prevents_an_exploration_is_reported() {
    let desk = Desk::new();
    let dead = format!("http://{}", squall_tests::dead::refusing());
    let part = json!({ "base_url": dead, "state": { "url": "/s" }, "reset": { "url": "/r" },
        "actions": [{ "name": "a", "path": "/a" }], "anomalies": [{ "status": "5xx" }] });
    desk.write(&json!({ "explore": part }));
    let unreachable = explore(&desk, &[]);
    unreachable.ended(3);
    unreachable.err_has("reset");
    for (option, value) in [
        ("--budget", Some("9")),
        ("--resume", None),
        ("--repeat", Some("2")),
    ] {
        let words: Vec<_> = [option].into_iter().chain(value).collect();
        let useless = explore(&desk, &words);
        useless.ended(2);
        useless.err_has(&format!(
            "{option} is for explorations over the calls of an agent"
        ));
    }
    desk.write(&json!({ "explore": { "base_url": "x" } }));
    explore(&desk, &[]).ended(2);
    desk.write(&json!({ "explore": part, "golden_prompts": ["x"] }));
    let agentless = CommandResult::from(
        desk.squall(&["chaos", "--profile", "brownout"])
            .output()
            .unwrap(),
    );
    agentless.ended(2);
    agentless.err_has("`agent` is missing");
}

/// `SHOP_PICTURE=docs/images/shop.png` writes the picture of the docs.
#[test]
fn run_demo_on_the_page_raises_both_alerts() {
    let desk = Desk::new();
    let shop = Shop::open(&desk, &[]);
    let mut command = client("shop_page.mjs");
    command.args(["--url", &shop.url("/")]);
    if let Some(picture) = std::env::var_os("SHOP_PICTURE") {
        command.arg("--data").arg(picture);
    }
    let facts = told(&mut command);
    assert_eq!(facts["ok"], true, "{facts}");
    assert_eq!(facts["complaints"], json!([]));
    assert_eq!(facts["before"], "");
    let moved = ["Reset", "Drain", "Expedite 5", "Slow mode", "Expedite 5"];
    assert_eq!(facts["places"], json!(moved));
    assert_eq!(facts["cursor"], true);
    assert_eq!(
        facts["alerts"],
        json!([
            "Oversold: 10 more pieces are sold than were in stock.",
            "Slow: the last purchase took 80 ms, the limit is 50 ms.",
        ])
    );
    assert_eq!(facts["state"], json!(["-10", "10", "slow", "80 ms"]));
    assert_eq!(
        facts["log"][0],
        "5 purchase 5 expedited: sold, -10 in stock"
    );
    assert_eq!(facts["focused"], "Reset");
    assert_ne!(facts["backs"][0], facts["backs"][1]);
    let own = shop.url("/");
    let asked = facts["asked"].as_array().unwrap().iter();
    let foreign = asked.map(|url| url.as_str().unwrap());
    let foreign: Vec<_> = foreign
        .filter(|url| !url.starts_with(&own) && *url != "data:,")
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    let head = Command::new("curl")
        .args(["-sI", "-X", "GET", "--noproxy", "*", &own])
        .output()
        .unwrap();
    let head = String::from_utf8(head.stdout).unwrap().to_lowercase();
    assert!(
        head.contains("content-security-policy: default-src 'none';"),
        "{head}"
    );
    assert!(!head.contains("unsafe"), "{head}");
}

/// The page of the docs: its suite explores the shop, and its commands run as they are written.
#[test]
fn the_example_of_the_docs_runs() {
    let page = include_str!("../../../docs/explore.md");
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
        rest.split("```").next().unwrap().to_owned()
    };
    let desk = Desk::new();
    // A free port instead of the one on the page.
    let shop = Shop::open(&desk, &[]);
    let port = shop.port.to_string();
    shop.close();
    let binary = squall_tests::daemon::binary().display().to_string();
    let suite = block("yaml")
        .replace("7080", &port)
        .replace("[squall,", &format!("[\"{binary}\","));
    std::fs::write(desk.directory.path().join("shop.yaml"), suite).unwrap();
    let commands = block("sh");
    let commands = commands
        .lines()
        .map(|line| line.split('#').next().unwrap().trim());
    let mut ran = 0;
    for command in commands.filter(|line| line.starts_with("squall explore ")) {
        let words: Vec<_> = command.split_whitespace().skip(2).collect();
        explore(&desk, &words).ended(1);
        ran += 1;
    }
    assert_eq!(ran, 3);
}
