//! `squall mutate` against an agent in HTTP that records what it receives.

mod cached;
mod judged;
mod rejections;
mod search;
mod templates;

use serde_json::{Value, json};
use squall_tests::Upstream;

use crate::desk::{CommandResult, Desk, suite_of};

/// An agent that answers every request, whatever it is.
fn agent() -> Upstream {
    Upstream::start(None, |mut connection| {
        while let Some(request) = connection.head() {
            let mut request = request;
            // What cannot be framed is not read further.
            let is_odd = request.header("transfer-encoding").is_some();
            if is_odd || connection.body(&mut request).is_none() {
                connection.send(
                    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                );
                return;
            }
            let body = r#"{"output":"It is sunny."}"#;
            let length = body.len();
            connection.send(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            ));
        }
    })
}

/// The agent runs already, so a private daemon would use the ports of a running one.
const PORTS: &[&str] = &["--proxy", "127.0.0.1:0", "--api", "127.0.0.1:0"];

const PAGE: &str = include_str!("../../../docs/mutations.md");

/// The types in the table of the page.
fn kinds() -> Vec<&'static str> {
    let (_, rest) = PAGE.split_once("## Types").unwrap();
    let (table, _) = rest.split_once("\n## ").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap()).collect()
}

fn cells(run: &Value) -> impl Iterator<Item = &Value> {
    run["cells"].as_array().unwrap().iter()
}

#[test]
fn every_type_reaches_the_agent_and_the_result_shows_each_mutant() {
    let (desk, agent) = (Desk::new(), agent());
    let kinds = kinds();
    assert_eq!(kinds.len(), 24);
    let suite = json!({
        "agent": { "endpoint": format!("http://{}/ask", agent.address), "timeout": 20000 },
        "golden_prompts": ["What is the weather in Kiel today?", ["Hello", "And in Rome?"]],
        "invariants": [{ "id": "sunny", "type": "contains", "value": "sunny" }],
        "mutations": { "count": 24, "types": kinds, "custom_templates": { "polite": "Good morning! {prompt}" } },
    });
    let told = desk.run(
        &[&["mutate", "--json", "--export", "corpus.jsonl"], PORTS].concat(),
        &desk.write(&suite),
    );
    told.ended(0);
    told.err_has("18 mutants with changed requests");
    let run: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(run["scores"]["mutation_robustness"], 100.0, "{run:#}");
    let found: Vec<_> = cells(&run)
        .map(|cell| cell["mutation"].as_str().unwrap())
        .collect();
    assert_eq!(found, kinds);
    let requests = agent.requests();
    let bodies: Vec<_> = requests
        .iter()
        .map(|one| String::from_utf8_lossy(&one.body))
        .collect();
    let mut mutants = 0;
    for evidence in cells(&run).flat_map(|cell| cell["evidence"].as_array().unwrap()) {
        mutants += 1;
        let mutant = &evidence["mutant"];
        assert!(
            !mutant["lineage"].as_array().unwrap().is_empty(),
            "{evidence:#}"
        );
        let turns = mutant["turns"].as_array();
        let last = turns.map_or(&evidence["prompt"], |turns| turns.last().unwrap());
        // A text that is redacted in evidence is sent whole.
        let text = last.to_string();
        let is_sent = bodies.iter().any(|body| body.contains(&text));
        assert!(
            is_sent || text.contains("redacted") || mutant["request"].is_string(),
            "not sent: {evidence:#}"
        );
    }
    assert_eq!(mutants, 48);
    // What the types of requests change is on the wire.
    let changed = requests
        .iter()
        .filter(|one| one.method != "POST" || one.target != "/ask");
    assert!(changed.count() > 3 && requests.len() > 48, "{requests:#?}");
    let corpus = std::fs::read_to_string(desk.directory.path().join("corpus.jsonl")).unwrap();
    assert!(corpus.lines().count() > 20, "{corpus}");
    let again: Vec<Value> = corpus
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let polite = |line: &Value| {
        line["type"] == "custom"
            && line["mutant"] == "Good morning! What is the weather in Kiel today?"
    };
    assert!(again.iter().any(polite), "{corpus}");
    let mut suite = suite;
    suite["mutations"]["corpus"] = "corpus.jsonl".into();
    suite["mutations"]["types"] = json!(["paraphrase"]);
    suite["mutations"]["count"] = 1.into();
    let told = desk.run(
        &[&["mutate", "--json"], PORTS].concat(),
        &desk.write(&suite),
    );
    told.ended(0);
    let run: Value = serde_json::from_str(&told.out).unwrap();
    let first = &cells(&run).next().unwrap()["evidence"][0];
    assert_eq!(first["mutant"]["lineage"], json!(["from the corpus"]));
}

#[test]
fn the_example_of_the_page_runs() {
    let (desk, agent) = (Desk::new(), agent());
    let (_, rest) = PAGE.split_once("```yaml\n").unwrap();
    let (suite, _) = rest.split_once("```").unwrap();
    let address = format!("http://{}/", agent.address);
    let suite = suite.replace("http://127.0.0.1:8000/", &address);
    let file = desk.directory.path().join("suite.yaml");
    std::fs::write(&file, suite).unwrap();
    let told = desk.run(&[&["mutate"], PORTS].concat(), &file);
    told.ended(0);
    assert!(
        told.closing()
            .starts_with("squall mutation: passed score=100 "),
        "{told:#?}"
    );
    assert!(agent.requests().len() >= 12);
}

#[test]
fn without_a_mutant_there_is_no_score() {
    let desk = Desk::new();
    let mut suite = suite_of(&desk.agent("/json", &[]), "unavailable");
    suite["mutations"] = json!({ "types": ["http_header_injection"] });
    let none = desk.run(&["mutate"], &desk.write(&suite));
    none.ended(3);
    none.err_has("no mutation could be written for any golden prompt");
    suite["mutations"] = json!({ "types": ["noise"], "count": 2 });
    suite["model"] = json!({ "name": "writer", "base_url": "http://127.0.0.1:1" });
    let absent = desk.run(&["mutate"], &desk.write(&suite));
    absent.ended(3);
    absent.err_has("mutations could not be written: the model at http://127.0.0.1:1");
}

#[test]
fn mutants_run_under_chaos_where_it_is_wanted_and_ci_runs_them_without() {
    let desk = Desk::new();
    let mut suite = suite_of(&desk.agent("/json", &[]), "unavailable");
    suite["mutations"] = json!({ "types": ["noise", "tone_shift"], "count": 2 });
    let file = desk.write(&suite);
    let run = |arguments: &[&str]| -> Value {
        let told: CommandResult = desk.run(arguments, &file);
        serde_json::from_str(&told.out).unwrap_or_else(|error| panic!("{error}: {told:#?}"))
    };
    let clean = run(&["mutate", "--json"]);
    let under = run(&["mutate", "--chaos", "--json"]);
    assert_eq!(clean["coverage"]["rules_applied"], 0, "{clean:#}");
    assert!(
        under["coverage"]["rules_applied"].as_u64() > Some(0),
        "{under:#}"
    );
    assert_eq!(under["scores"]["mutation_robustness"], 100.0);
    let all = run(&["ci", "--json"]);
    assert_eq!(
        cells(&all)
            .filter(|cell| cell["mutation"].is_string())
            .count(),
        2
    );
    assert!(
        all["scores"]["mutation_robustness"].is_number()
            || clean["scores"]["mutation_robustness"].is_null()
    );
}
