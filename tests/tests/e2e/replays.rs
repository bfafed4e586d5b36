//! Incidents as tests: what was recorded is replayed without its upstreams, and judged.

mod around;
mod reports;
mod stream;

use std::fs::{self, File};
use std::net::TcpListener;
use std::process::Output;

use serde_json::{Value, json};
use squall_tests::daemon::binary;
use squall_tests::program::clean;

use crate::desk::{CommandResult, Desk};

/// A suite whose agent must say this.
fn suite(agent: &Value, said: &str) -> Value {
    json!({
        "agent": agent,
        "invariants": [{ "id": "says-so", "type": "contains", "value": said }],
        "golden_prompts": ["Weather?"],
        "output": { "format": "terminal" },
    })
}

/// Records the agent while it answers its prompt; the session's file.
fn record(desk: &Desk, agent: &Value, id: &str) -> String {
    let command = agent["command"].as_array().unwrap().iter();
    let command: Vec<_> = command.map(|word| word.as_str().unwrap()).collect();
    let file = format!("{id}.yaml");
    let prompt = desk.directory.path().join("prompt");
    fs::write(&prompt, "Weather?").unwrap();
    let record = ["run", "--quiet", "--record", &file, "--"];
    let mut squall = desk.squall(&record);
    squall.args(command).stdin(File::open(prompt).unwrap());
    let output: Output = squall.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    file
}

/// Records one call of the agent's tool, and adds the prompt; the session.
fn recorded(desk: &Desk, agent: &Value, id: &str) -> String {
    let file = record(desk, agent, id);
    let path = desk.directory.path().join(&file);
    let text = fs::read_to_string(&path).unwrap();
    // No model call shows the prompt.
    fs::write(
        &path,
        format!("input: Weather?\nexpected_failure: it was cloudy\n{text}"),
    )
    .unwrap();
    file
}

fn replay(desk: &Desk, suite: &Value, more: &[&str]) -> CommandResult {
    let file = desk.write(suite);
    desk.run(&[&["replay", "run"][..], more].concat(), &file)
}

/// The run that a command printed.
fn run_of(result: &CommandResult) -> Value {
    serde_json::from_str(&result.out).unwrap_or_else(|error| panic!("{error}: {result:#?}"))
}

#[test]
fn what_was_recorded_is_replayed_without_its_upstreams() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let session = recorded(&desk, &agent, "incident");
    let opened = desk.tool.opened();
    let suite = suite(&agent, "sunny");
    let passed = replay(&desk, &suite, &[&session, "--json"]);
    passed.ended(0);
    let run = run_of(&passed);
    assert_eq!(run["kind"], "replay");
    assert_eq!(run["scores"]["replay_regression"], 100.0, "{run:#}");
    let [replayed] = &run["replays"].as_array().unwrap()[..] else {
        panic!("{run:#}");
    };
    for (count, expected) in [("served", 1), ("missed", 0), ("dialled", 0)] {
        assert_eq!(replayed[count], expected, "{count}: {run:#}");
    }
    assert_eq!(replayed["calls"][0]["state"], "same", "{run:#}");
    assert_eq!(desk.tool.opened(), opened);
}

#[test]
fn an_incident_that_reproduces_fails_and_is_expected_to() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let session = recorded(&desk, &agent, "incident");
    // A folder has the session, and the suite names it too.
    let folder = desk.directory.path().join("incidents");
    fs::create_dir(&folder).unwrap();
    fs::rename(desk.directory.path().join(&session), folder.join(&session)).unwrap();
    // Hidden entries and links to folders are not entered.
    fs::create_dir(folder.join(".hidden")).unwrap();
    fs::write(folder.join(".hidden/other.yaml"), "").unwrap();
    fs::write(folder.join(".other.yaml"), "").unwrap();
    std::os::unix::fs::symlink("..", folder.join("parent")).unwrap();
    let named = json!({ "sessions": [{ "file": format!("incidents/{session}") }] });
    for (said, more, code) in [
        ("cloudy", &["incidents"][..], 1),
        ("cloudy", &[], 1),
        ("cloudy", &["--expect-failure"], 0),
        ("sunny", &["--expect-failure"], 1),
    ] {
        let mut suite = suite(&agent, said);
        suite["replays"] = named.clone();
        let result = replay(&desk, &suite, more);
        result.ended(code);
        result.out_has("recorded failure: it was cloudy");
        result.out_has("calls: 1 same, 0 changed, 0 missing, 0 new");
    }
    let mut suite = suite(&agent, "cloudy");
    suite["replays"] = named;
    // One of two prompts fails in `ci`: the chaos of the suite does not touch the session.
    suite["chaos"] =
        json!({ "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 503 }] });
    let file = desk.write(&suite);
    let ci = desk.run(&["ci", "--json"], &file);
    let run = run_of(&ci);
    assert_eq!(run["scores"]["replay_regression"], 0.0, "{run:#}");
    let mut cells = run["cells"].as_array().unwrap().iter();
    let cell = cells.rfind(|cell| cell["scenario"] != "chaos").unwrap();
    assert_eq!(cell["faults_applied"], 0, "{run:#}");
    assert_eq!(cell["evidence"][0]["answer"], "it is sunny", "{run:#}");
}

#[test]
fn a_contract_that_cannot_be_found_is_an_error_with_its_place() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let suite = suite(&agent, "sunny");
    let write = |contract: &str| {
        let text = format!("id: one\ninput: Weather?\ntool_responses: []\ncontract: {contract}\n");
        fs::write(desk.directory.path().join("one.yaml"), text).unwrap();
    };
    write("gone");
    let unknown = replay(&desk, &suite, &["one.yaml"]);
    unknown.ended(2);
    unknown.err_has("one.yaml:4:11: session `one` names contract `gone`");
    write("./gone.yaml");
    let unread = replay(&desk, &suite, &["one.yaml"]);
    unread.ended(2);
    unread.err_has("one.yaml:4:11: ");
    // A file is found beside the session, and decides.
    let contract = "invariants: [{id: cloudy, type: contains, value: cloudy}]\n";
    fs::write(desk.directory.path().join("cloudy.yaml"), contract).unwrap();
    write("./cloudy.yaml");
    replay(&desk, &suite, &["one.yaml"]).ended(1);
    // The suite judges what flakestorm calls `default`.
    write("default");
    replay(&desk, &suite, &["one.yaml"]).ended(0);
    let missing = replay(&desk, &suite, &["gone"]);
    missing.ended(2);
    missing.err_has("gone: cannot be read");
}

#[test]
fn a_session_of_which_nothing_was_requested_proves_nothing() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let suite = suite(&agent, "weather");
    let session =
        "id: one\ninput: Weather?\nexchanges: [{match: {url: 'http://nowhere.test/*'}, body: x}]\n";
    fs::write(desk.directory.path().join("one.yaml"), session).unwrap();
    let result = replay(&desk, &suite, &["one.yaml", "--json"]);
    result.ended(4);
    let run = run_of(&result);
    assert_eq!(run["cells"][0]["state"], "not_exercised", "{run:#}");
    let replayed = &run["replays"][0];
    assert_eq!(
        (&replayed["served"], &replayed["dialled"]),
        (&json!(0), &json!(0)),
        "{run:#}"
    );
    // What the agent called instead is listed.
    let calls = replayed["calls"].as_array().unwrap().iter();
    let states: Vec<_> = calls.map(|call| call["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["missing", "new"], "{run:#}");
    assert_eq!(desk.tool.opened(), 0);
}

#[test]
fn an_agent_that_diverges_goes_on_and_what_changed_is_shown() {
    let desk = Desk::new();
    let session = recorded(&desk, &desk.agent("/json", &[]), "incident");
    let path = desk.directory.path().join(&session);
    let opened = desk.tool.opened();
    let suite = suite(&desk.agent("/json?days=2", &[]), "sunny");
    for (on_miss, served, code) in [
        ("", 1, 0),
        ("on_miss: nearest\n", 1, 0),
        ("on_miss: error\n", 0, 4),
    ] {
        let text = fs::read_to_string(&path)
            .unwrap()
            .replace("on_miss: error\n", "");
        fs::write(&path, format!("{on_miss}{text}")).unwrap();
        let result = replay(&desk, &suite, &[&session, "--json"]);
        fs::write(&path, text).unwrap();
        result.ended(code);
        let run = run_of(&result);
        let replayed = &run["replays"][0];
        assert_eq!(replayed["served"], served, "{on_miss}: {run:#}");
        assert_eq!(replayed["dialled"], 0, "{on_miss}: {run:#}");
        assert_eq!(
            replayed["calls"][0]["state"], "changed",
            "{on_miss}: {run:#}"
        );
    }
    assert_eq!(desk.tool.opened(), opened);
}

#[test]
fn a_failure_without_recorded_responses_does_not_blame_the_agent() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let url = format!("http://{}", desk.tool.address);
    let other = "{match: {url: 'http://nowhere.test/*'}, status: 500}";
    let write = |text: &str| {
        let text = format!("id: one\ninput: Weather?\n{text}\n");
        fs::write(desk.directory.path().join("one.yaml"), text).unwrap();
    };
    let mut suite = suite(&agent, "cloudy");
    // Input alone: the agent calls its upstream, and that is counted.
    write("");
    let live = run_of(&replay(&desk, &suite, &["one.yaml", "--json"]));
    assert_eq!(live["replays"][0]["dialled"], 1, "{live:#}");
    let opened = desk.tool.opened();
    assert!(opened > 0);
    // The tape is empty.
    write("on_miss: error");
    let empty = replay(&desk, &suite, &["one.yaml", "--json", "--expect-failure"]);
    let run = run_of(&empty);
    assert_eq!(run["replays"][0]["dialled"], 0, "{run:#}");
    assert_eq!(run["replays"][0]["missed"], 1, "{run:#}");
    let text = run.to_string();
    assert!(text.contains("1 call had no recorded response"), "{run:#}");
    assert!(
        text.contains("session `one` failed, and 1 of its calls"),
        "{run:#}"
    );
    assert_eq!(desk.tool.opened(), opened);
    // A recorded failure is the cause; its arguments are not recorded. A response that was not requested is no fault.
    write(&format!(
        "exchanges: [{{match: {{url: '{url}/json'}}, status: 503}}, {other}]"
    ));
    suite["output"] = json!({ "format": "terminal" });
    let failed = run_of(&replay(&desk, &suite, &["one.yaml", "--json", "--shrink"]));
    let evidence = &failed["cells"][0]["evidence"][0];
    assert_eq!(evidence["fault"], "recorded 503", "{failed:#}");
    assert_eq!(
        failed["replays"][0]["calls"][0]["state"], "same",
        "{failed:#}"
    );
    // The upstream is not unavailable, and its answer is not the right one either.
    assert_eq!(failed["shrunk"][0]["of"], 1, "{failed:#}");
    assert_eq!(failed["shrunk"][0]["fails_without"], true, "{failed:#}");
}

#[test]
fn a_failure_without_upstreams_is_not_shrunk() {
    let desk = Desk::new();
    let away = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut agent = desk.agent("/json", &[]);
    // It makes two calls.
    let code = format!(
        "import urllib.request\nfor path in 'ab':\n try: urllib.request.urlopen(f'http://{away}/{{path}}').read()\n \
         except OSError: print('unavailable')"
    );
    agent["command"][1] = "-c".into();
    agent["command"][2] = code.into();
    let text = format!(
        "id: one\ninput: Weather?\nexchanges:\n- {{match: {{url: 'http://{away}/a'}}, status: 503}}\n\
         - {{match: {{url: 'http://{away}/b'}}, status: 500}}\n"
    );
    fs::write(desk.directory.path().join("one.yaml"), text).unwrap();
    let suite = suite(&agent, "cloudy");
    let run = run_of(&replay(&desk, &suite, &["one.yaml", "--json", "--shrink"]));
    assert_eq!(run["passed"], false, "{run:#}");
    assert_eq!(run["shrunk"], Value::Null, "{run:#}");
    let warnings = run["warnings"].to_string();
    assert!(warnings.contains("upstream unreachable: "), "{run:#}");
    assert!(warnings.contains("shrink needs the upstreams"), "{run:#}");
}

#[test]
fn a_live_model_that_is_away_is_named_beside_the_failure() {
    let desk = Desk::new();
    let away = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut agent = desk.agent("/json", &[]);
    let code = format!(
        "import urllib.request\nbody = b'{{\"model\": \"m\", \"messages\": []}}'\n\
         call = urllib.request.Request('http://{away}/v1/chat/completions', body, {{'content-type': 'application/json'}})\n\
         try: print(urllib.request.urlopen(call).read())\nexcept OSError: print('unavailable')"
    );
    agent["command"][1] = "-c".into();
    agent["command"][2] = code.into();
    let text = "id: one\ninput: Weather?\nllm_responses: [{dialect: openai-chat, body: {choices: [{index: 0, \
                message: {role: assistant, content: sunny}, finish_reason: stop}]}}]\n";
    fs::write(desk.directory.path().join("one.yaml"), text).unwrap();
    let suite = suite(&agent, "sunny");
    replay(&desk, &suite, &["one.yaml"]).ended(0);
    let live = replay(&desk, &suite, &["one.yaml", "--json", "--models", "live"]);
    live.ended(1);
    let run = run_of(&live);
    let replayed = &run["replays"][0];
    assert_eq!(
        (&replayed["served"], &replayed["dialled"]),
        (&json!(0), &json!(1)),
        "{run:#}"
    );
    let cells = run["cells"].to_string();
    assert!(cells.contains("upstream unreachable: "), "{run:#}");
}

#[test]
fn a_failed_cell_shows_the_command_that_replays_it() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let mut suite = suite(&agent, "sunny");
    suite["chaos"] =
        json!({ "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 503 }] });
    let directory = desk.directory.path();
    // A shell finds this binary by its name.
    fs::create_dir(directory.join("bin")).unwrap();
    std::os::unix::fs::symlink(binary(), directory.join("bin/squall")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", directory.join("bin").display());
    for name in ["suite.yaml", "it's $HOME's \"suite\".yaml"] {
        fs::write(directory.join(name), suite.to_string()).unwrap();
        let ci = desk.squall(&["ci", "--output", "reports", "-c", name]);
        CommandResult::from({ ci }.output().unwrap()).ended(1);
        let page = fs::read_to_string(directory.join("reports/squall-ci.md")).unwrap();
        let command = page.split("Replay\n").nth(1).unwrap();
        let mut lines = command.lines();
        let command = lines.find(|line| line.starts_with("squall")).unwrap();
        assert_eq!(command.contains(" -c "), name != "suite.yaml", "{command}");
        let mut shell = clean("sh");
        shell.args(["-c", command]).current_dir(directory);
        shell.env("PATH", &path).env("SQUALL_HOME", desk.home());
        let result = CommandResult::from(shell.output().unwrap());
        result.ended(1);
        result.out_has("does not contain “sunny”");
        // Only the suite that it names can judge it.
        fs::remove_file(directory.join(name)).unwrap();
    }
}

/// The page has a suite, then a session; both are files, and the agent is any.
#[test]
fn the_example_of_the_page_runs() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/replays.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<_> = page.split("```yaml\n").skip(1).collect();
    let block = |place: usize| blocks[place].split("```").next().unwrap();
    let desk = Desk::new();
    let command = desk.agent("/", &[])["command"].as_array().unwrap().clone();
    let agent = json!([command[0], command[1], "http://stock.example/item"]).to_string();
    let suite = block(0).replace("[python, agent.py]", &agent);
    assert!(suite.contains("stock.example"), "{suite}");
    let file = desk.directory.path().join("suite.yaml");
    fs::write(&file, suite).unwrap();
    fs::create_dir(desk.directory.path().join("incidents")).unwrap();
    let session = desk.directory.path().join("incidents/stock-was-down.yaml");
    fs::write(session, block(1)).unwrap();
    let result = desk.run(&["replay", "run"], &file);
    result.ended(0);
    result.out_has("stock-was-down: passed; calls: 1 same");
    result.out_has("0 live");
}
