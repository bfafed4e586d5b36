//! Figures over repeats, and comparisons of runs, with an agent that is steady, erratic or worse.

use serde_json::{Value, json};
use squall_tests::program::python;

use crate::desk::{CommandResult, Desk};

/// Every fifth invocation of the erratic agent calls four times and answers at length.
const AGENT: &str = r#"
import sys, urllib.request
style, tool = sys.argv[1:]
with open("count", "a+") as count:
    count.write("x")
    number = count.tell()
strays = style == "erratic" and number % 5 == 0
for _ in range(4 if strays else 1):
    urllib.request.urlopen(tool, timeout=60).read()
answer = "it rains" if style == "worse" else "it is sunny today"
print(answer * 6 if strays else answer)
"#;

/// The invariants of the example in `docs/invariants.md`, and one on the answer.
fn suite(desk: &Desk, style: &str) -> Value {
    let page = include_str!("../../../docs/invariants.md");
    let (_, section) = page
        .split_once("### `variance` and `outliers`")
        .expect("the section");
    let (_, example) = section.split_once("```yaml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let mut invariants = vec![json!({ "id": "sunny", "type": "contains", "value": "sunny" })];
    for line in example
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
    {
        let (written, _) = line.rsplit_once('}').expect("a flow mapping");
        // The flow mapping of YAML as JSON: all its words are plain.
        let members = written.trim_start_matches('{').split(',').map(|member| {
            let (name, value) = member.split_once(':').expect("a member");
            let value = value.trim();
            let value = value
                .parse::<u64>()
                .map_or_else(|_| json!(value), Value::from);
            (name.trim().to_owned(), value)
        });
        let mut invariant: serde_json::Map<_, _> = members.collect();
        invariant.insert("id".to_owned(), invariant["type"].clone());
        invariants.push(invariant.into());
    }
    let mut agent = desk.program(AGENT);
    let tool = format!("http://{}/json", desk.tool.address);
    agent["command"] = json!([python(), "-c", AGENT, style, tool]);
    json!({
        "name": "weather",
        "agent": agent,
        "golden_prompts": ["Weather?"],
        "contract": { "name": "weather", "invariants": invariants, "chaos_matrix": [{ "name": "clean" }] },
        "advanced": { "concurrency": 1 },
        "output": { "format": "json" },
    })
}

/// The id of a run of ten repeats, and what was printed.
fn run(desk: &Desk, style: &str, code: i32) -> (String, CommandResult) {
    let file = desk.write(&suite(desk, style));
    let arguments = ["contract", "run", "--repeat", "10", "--min-score", "100"];
    let printed = desk.run(&arguments, &file);
    printed.ended(code);
    let id = printed.closing().rsplit_once("run=").expect("its id").1;
    (id.to_owned(), printed)
}

fn squall(desk: &Desk, arguments: &[&str]) -> CommandResult {
    desk.squall(arguments).output().unwrap().into()
}

fn document(printed: &CommandResult) -> Value {
    serde_json::from_str(&printed.out).unwrap_or_else(|error| panic!("{error}: {printed:#?}"))
}

#[test]
fn repeats_are_judged_and_runs_are_compared_by_what_is_beyond_chance() {
    let desk = Desk::new();
    let (steady, printed) = run(&desk, "steady", 0);
    for part in ["MEDIAN", "latency", "calls"] {
        printed.out_has(part);
    }
    let (erratic, _) = run(&desk, "erratic", 1);
    let shown = document(&squall(&desk, &["runs", "show", &erratic, "--json"]));
    let cells = shown["cells"].as_array().unwrap().iter();
    let failed = cells.filter(|cell| cell["state"] == "failed");
    let failed: Vec<_> = failed
        .map(|cell| cell["invariant"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["variance", "outliers"], "{shown}");
    let mut distributions = shown["distributions"].as_array().unwrap().iter();
    let found = distributions.find(|one| one["of"] == "calls").unwrap();
    let counts = [&found["min"], &found["p50"], &found["max"]].map(Value::as_f64);
    assert_eq!(counts, [Some(1.0), Some(1.0), Some(4.0)], "{found}");

    let (worse, _) = run(&desk, "worse", 1);
    // The same command names a run by its id, by its suite, and by its report.
    let report = squall(&desk, &["report", &steady, "--format", "json"]);
    report.ended(0);
    std::fs::write(desk.directory.path().join("steady.json"), &report.out).unwrap();
    for (before, after) in [(&*steady, &*worse), ("steady.json", "weather")] {
        let compared = squall(&desk, &["runs", "compare", before, after]);
        compared.ended(0);
        for part in [
            "sunny passed",
            "100 % of 10",
            "0 % of 10",
            "median length",
            "1 newly failing",
        ] {
            compared.out_has(part);
        }
    }
    let on_regression = [
        "runs",
        "compare",
        &worse,
        &steady,
        "--fail-on",
        "regression",
    ];
    squall(&desk, &on_regression).ended(0);
    let on_regression = [
        "runs",
        "compare",
        &steady,
        &worse,
        "--fail-on",
        "regression",
        "--json",
    ];
    let regression = squall(&desk, &on_regression);
    regression.ended(1);
    assert_eq!(
        document(&regression)["newly_failing"][0]["invariant"],
        "sunny"
    );
    let same = squall(&desk, &["runs", "compare", &steady, &steady]);
    same.ended(0);
    same.out_has("0 differences beyond chance");
    assert!(!same.err.contains("is compared with"), "{same:#?}");
    let other = report.out.replacen("weather", "other", 1);
    std::fs::write(desk.directory.path().join("other.json"), other).unwrap();
    let foreign = squall(&desk, &["runs", "compare", "other.json", &steady]);
    foreign.ended(0);
    foreign.err_has(
        "a contract run of suite `weather` is compared with a contract run of suite `other`",
    );
    let unknown = squall(&desk, &["runs", "compare", &steady, "nothing"]);
    unknown.ended(2);
    unknown.err_has("`nothing` is neither");
    // A later run says the same of its baseline.
    let file = desk.write(&suite(&desk, "worse"));
    let arguments = [
        "contract",
        "run",
        "--repeat",
        "10",
        "--baseline",
        "steady.json",
    ];
    let printed = desk.run(&arguments, &file);
    printed.out_has("sunny passed");

    let trend = squall(&desk, &["runs", "trend", "weather", "--last", "3"]);
    trend.ended(0);
    let ids = trend
        .out
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next());
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids[..2], [&*erratic, &*worse], "{trend:#?}");
    assert_eq!(ids.len(), 3, "{trend:#?}");
    trend.out_has("██████████".get(..9).unwrap());
    let items = document(&squall(&desk, &["runs", "trend", "weather", "--json"]));
    assert_eq!(items["items"].as_array().unwrap().len(), 4);
    let unknown = squall(&desk, &["runs", "trend", "other"]);
    unknown.ended(2);
    unknown.err_has("no run of a suite `other`; there are runs of `weather`");
}
