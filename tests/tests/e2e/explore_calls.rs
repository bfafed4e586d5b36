//! `squall explore` against an agent with five planted bugs (`tests/agents/explored.py`), and against the same agent
//! without them.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use squall_tests::upstream::Request;
use squall_tests::{Daemon, Upstream};

use crate::desk::Desk;

/// The model and the tools of the agent.
fn world() -> Upstream {
    Upstream::start(None, |mut connection| {
        while let Some(request) = connection.request() {
            let body = response(&request).to_string();
            let length = body.len();
            connection.send(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            ));
        }
    })
}

fn response(request: &Request) -> Value {
    match &*request.target {
        "/search" => json!({ "hit": { "id": 7, "name": "Rome" } }),
        "/index" => json!({ "id": 7 }),
        "/stock" => json!({ "left": 3 }),
        "/book" => json!({ "booking": 12 }),
        _ => json!({
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content":
                "Search for a room, look up whether it is free, book it, and tell the user the number of the booking." } }],
            "usage": { "prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29 },
        }),
    }
}

/// A suite with this attribute of the agent.
fn suite(world: &Upstream, endpoint: &str) -> Value {
    let lacks = |text: &str| json!({ "id": format!("no {text}"), "type": "contains", "value": text, "negate": true });
    json!({
        "name": "rooms",
        "agent": { "type": "python", "endpoint": endpoint },
        "golden_prompts": [format!("Book a room at http://{}", world.address)],
        "invariants": [{ "id": "completes", "type": "completes" }, lacks("<html"), lacks("[unfinished]")],
        "advanced": { "seed": 7, "concurrency": 4 },
    })
}

/// The budget within which all bugs are found.
const BUDGET: u64 = 260;

/// The points of the planted bugs: each fails alone, or, of the last, together.
const PLANTED: [&str; 5] = [
    "auth_error on the 1st call of model m",
    "empty on the 1st call of GET WORLD/search",
    "html_error on the 1st call of GET WORLD/stock",
    "truncated_response on the 2nd call of model m",
    "error on the 1st call of GET WORLD/search and error on the 1st call of POST WORLD/book",
];

fn failed(exploration: &Value) -> Vec<(usize, String)> {
    let points = exploration["points"].as_array().unwrap().iter().enumerate();
    let failed = points.filter(|(_, point)| point["state"] == "failed");
    let named = failed.map(|(number, point)| (number, point["name"].as_str().unwrap().to_owned()));
    named.collect()
}

/// Invocations until each of `wanted` sets of points has occurred in a random order of `all` points, on average over
/// 200 orders.
fn at_random(all: u64, wanted: &[u64]) -> u64 {
    // A linear congruential generator is random enough for a figure.
    let mut state = 1_u64;
    let mut draw = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut total = 0;
    for _ in 0..200 {
        let mut order: Vec<u64> = (0..all).collect();
        for place in (1..all).rev() {
            order.swap(
                usize::try_from(place).unwrap(),
                usize::try_from(draw(place + 1)).unwrap(),
            );
        }
        let mut first = 0;
        let found = wanted.iter().map(|size| {
            let own = first..first + size;
            first += size;
            order.iter().position(|point| own.contains(point)).unwrap() as u64
        });
        total += found.max().unwrap() + 1;
    }
    total / 200
}

#[test]
fn planted_bugs_are_found_within_the_budget_and_none_in_the_repaired_agent() {
    let (desk, world) = (Desk::new(), world());
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/explored.py");
    std::fs::copy(agent, desk.directory.path().join("explored.py")).unwrap();
    let budget = BUDGET.to_string();
    let explore = ["explore", "--json", "--budget", &budget];
    let told = desk.run(&explore, &desk.write(&suite(&world, "explored:planted")));
    told.ended(1);
    let run: Value = serde_json::from_str(&told.out).unwrap();
    let exploration = &run["exploration"];
    let found = failed(exploration);
    let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
    let planted = PLANTED.map(|name| name.replace("WORLD", &world.address.to_string()));
    for name in &planted {
        assert!(names.contains(&&**name), "{name} is not in {names:#?}");
    }
    assert_eq!(names.len(), planted.len(), "{names:#?}");
    let invocations = found.iter().map(|(place, _)| place + 2).max().unwrap() as u64;
    let all = exploration["single"]["points"].as_u64().unwrap()
        + exploration["pairs"]["points"].as_u64().unwrap();
    // `commit_then_fail` responds with 503 too, so four pairs show the last bug.
    let random = at_random(all, &[1, 1, 1, 1, 4]);
    eprintln!(
        "five bugs in {invocations} invocations of at most {BUDGET}; in a simulated random order of the same {all} points \
         in {random} on average"
    );
    assert!(
        invocations <= BUDGET && invocations < random,
        "{invocations} {random}"
    );
    // What is needed together is reported, and each failure is a session that still fails.
    assert_eq!(
        run["shrunk"][0]["needed"].as_array().unwrap().len(),
        2,
        "{run:#}"
    );
    let id = run["id"].as_str().unwrap();
    let sessions = format!("reports/sessions/{id}");
    let written = std::fs::read_dir(desk.directory.path().join(&sessions));
    assert_eq!(written.unwrap().count(), planted.len());
    told.err_has(&format!("replay sessions in ./{sessions}"));
    let shown = desk.squall(&["runs", "show", id]).output().unwrap();
    let pair = format!("Failed under a pair of faults: {}", planted[4]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    let shown: Vec<_> = shown.split_whitespace().collect();
    let shown = shown.join(" ");
    assert!(shown.contains(&pair), "{shown}");
    let replay = ["replay", "run", "--expect-failure", &sessions];
    let replayed = desk.run(&replay, &desk.write(&suite(&world, "explored:planted")));
    replayed.ended(0);

    let told = desk.run(&explore, &desk.write(&suite(&world, "explored:repaired")));
    told.ended(0);
    let run: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(failed(&run["exploration"]), []);
    assert_eq!(run["score"], 100.0);
    let shown = desk
        .squall(&["runs", "show", run["id"].as_str().unwrap()])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.contains("1: 1st call of model m") && shown.contains("pairs of faults: "),
        "{shown}"
    );
    eprintln!("{shown}");

    // The newest exploration is of the repaired agent.
    let other = desk.run(
        &["explore", "--resume"],
        &desk.write(&suite(&world, "explored:planted")),
    );
    other.ended(2);
    other.err_has("has another `agent`");
    let useless = desk.run(
        &["explore", "--steps", "3"],
        &desk.write(&suite(&world, "explored:planted")),
    );
    useless.ended(2);
    useless.err_has("--steps is for explorations over the actions of an application");
}

#[test]
fn an_agent_that_fails_without_faults_too_passes_no_point() {
    let (desk, world) = (Desk::new(), world());
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/explored.py");
    std::fs::copy(agent, desk.directory.path().join("explored.py")).unwrap();
    let mut suite = suite(&world, "explored:repaired");
    suite["invariants"] = json!([{ "type": "contains", "value": "what it never says" }]);
    let told = desk.run(&["explore", "--json", "--budget", "6"], &desk.write(&suite));
    told.ended(4);
    let run: Value = serde_json::from_str(&told.out).unwrap();
    let points = run["exploration"]["points"].as_array().unwrap();
    assert!(
        !points.is_empty() && points.iter().all(|point| point["state"] != "passed"),
        "{run:#}"
    );
    let spent = desk.run(
        &["explore", "--resume", "--budget", "6"],
        &desk.write(&suite),
    );
    spent.ended(2);
    spent.err_has("has made 6 invocations already");
}

#[test]
fn the_example_of_the_page_runs() {
    let (desk, world) = (Desk::new(), world());
    let page = include_str!("../../../docs/explore.md");
    let (_, rest) = page.split_once("## Over calls").unwrap();
    let (_, rest) = rest.split_once("```yaml\n").unwrap();
    let (suite, _) = rest.split_once("```").unwrap();
    let file = desk.directory.path().join("suite.yaml");
    std::fs::write(&file, suite).unwrap();
    let agent = format!(
        "import json, urllib.request\n\
         def chat(prompt):\n    \
             try:\n        \
                 body = urllib.request.urlopen('http://{}/search', timeout=5).read()\n    \
             except Exception:\n        \
                 return 'I do not know.'\n    \
             return json.loads(body)['hit']['name']\n",
        world.address
    );
    std::fs::write(desk.directory.path().join("my_agent.py"), agent).unwrap();
    let told = desk.run(&["explore"], &file);
    told.ended(1);
    let call = format!("1: 1st call of GET {}/search", world.address);
    let row = |fault: &str, mark: &str| {
        let mut lines = told.out.lines().filter(|line| line.starts_with(fault));
        lines.next().and_then(|line| line.split_whitespace().nth(1)) == Some(mark)
    };
    let is_as_expected = row("empty", "✗") && row("error", "✓") && told.out.contains(&call);
    assert!(is_as_expected, "{}", told.out);
}

/// The run at this path once `found` holds. An exploration takes longer than other requests.
fn when(daemon: &Daemon, path: &str, found: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_mins(4);
    loop {
        let run = daemon.api.get(path);
        if found(&run) {
            return run;
        }
        assert!(
            Instant::now() < deadline && run["error"].is_null(),
            "{run:#}"
        );
        squall_tests::program::pause();
    }
}

#[test]
fn an_exploration_that_a_stopping_daemon_interrupts_is_resumed_to_the_same_result() {
    let world = world();
    let mut daemon = Daemon::start(&json!({ "safety": { "commands": true } }));
    let suite = suite(&world, "agents.explored:planted");
    let order = |options: Value| json!({ "kind": "explore", "suite": suite, "options": options });
    let is_over = |run: &Value| run["finished_at"].is_string();
    let points = |run: &Value| run["exploration"]["points"].as_array().map_or(0, Vec::len);
    let path = daemon.api.ask_for_run(&order(json!({ "budget": 72 })));
    let whole = when(&daemon, &path, is_over);
    let path = daemon.api.ask_for_run(&order(json!({ "budget": 72 })));
    when(&daemon, &path, |run| points(run) >= 32);
    daemon.signal(Signal::TERM);
    daemon.wait();
    daemon.start_again();
    let interrupted = daemon.api.get(&path);
    assert_eq!(interrupted["state"], "cancelled", "{interrupted:#}");
    assert!(points(&interrupted) < points(&whole));
    let resumed = daemon.api.ask_for_run(&order(json!({ "resume": true })));
    let mut resumed = when(&daemon, &resumed, is_over);
    assert_eq!(resumed["exploration"]["resumed"], interrupted["id"]);
    // Failures that were taken over list their faults too.
    let report = format!(
        "/v1/runs/{}/report?format=jsonl",
        resumed["id"].as_str().unwrap()
    );
    let lines = daemon.api.call("GET", &report, None).text();
    let earlier = failed(&interrupted["exploration"]);
    assert!(
        !earlier.is_empty() && lines.lines().count() >= earlier.len(),
        "{lines}"
    );
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_ne!(line["faults"], json!([]), "{line:#}");
    }
    assert!(
        resumed["coverage"]["agent_invocations"].as_u64()
            < whole["coverage"]["agent_invocations"].as_u64()
    );
    resumed["exploration"]["resumed"] = Value::Null;
    assert_eq!(resumed["exploration"], whole["exploration"]);
    assert_eq!(
        (&resumed["state"], &resumed["score"]),
        (&whole["state"], &whole["score"])
    );
    let cells = |run: &Value| {
        let mut cells: Vec<_> = run["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| {
                (
                    cell["scenario"].to_string(),
                    cell["invariant"].to_string(),
                    cell["state"].to_string(),
                )
            })
            .collect();
        cells.sort();
        cells
    };
    assert_eq!(cells(&resumed), cells(&whole));
}
