//! What a certificate says of the agent, and what its suite says of the certificate.

use serde_json::{Value, json};
use squall_tests::program::script;

use crate::desk::{CommandResult, Desk, suite_of};

/// A run of an agent in a file of its own, which ends in this comment, and what its certificate says.
fn certified(desk: &Desk, comment: &str) -> Value {
    let text = std::fs::read_to_string(script("weather_agent.py")).unwrap();
    let file = desk.directory.path().join("agent.py");
    std::fs::write(file, format!("{text}\n# {comment}\n")).unwrap();
    let mut agent = desk.agent("/json", &["--api-key", "quiet-harbour"]);
    agent["command"][1] = json!("agent.py");
    let mut suite = suite_of(&agent, "unavailable");
    suite["certificate"] = json!({ "pass_threshold": 99, "output_format": "pdf" });
    let loud = json!({ "id": "loud", "type": "contains", "value": "LOUD", "severity": "low" });
    suite["contract"]["invariants"]
        .as_array_mut()
        .unwrap()
        .push(loud);
    let told = desk.run(&["contract", "run"], &desk.write(&suite));
    told.ended(0);
    let id = told.closing().split("run=").nth(1).expect("the run's id");
    let mut sign = desk.squall(&["certificate", id]);
    let signed = CommandResult::from(sign.output().unwrap());
    signed.ended(0);
    let name = format!("certificate-{id}.pdf");
    let mut verify = desk.squall(&["certificate", "verify", &name, "--json"]);
    let verified = CommandResult::from(verify.output().unwrap());
    verified.ended(0);
    let document: Value = serde_json::from_str(&verified.out).unwrap();
    document["statement"].clone()
}

#[test]
fn a_certificate_names_the_agent_and_what_was_demanded_of_it() {
    let desk = Desk::new();
    let first = certified(&desk, "one");
    let agent = first["agent"].as_str().unwrap();
    assert!(agent.contains(" agent.py http://127.0.0.1:"), "{agent}");
    assert!(agent.ends_with(" --api-key …"), "{agent}");
    // The run reached what was asked of it, and not what the suite asks of a certificate.
    assert!(first["score"].as_f64().unwrap() < 99.0, "{first:#}");
    let judged = (&first["state"], &first["passed"], &first["min_score"]);
    let failed = (&json!("failed"), &json!(false), &json!(99.0));
    assert_eq!(judged, failed, "{first:#}");
    let demand = json!({
        "invariant": "says-so", "type": "contains", "severity": "critical",
        "parameters": "value: unavailable, when: any_chaos_active",
    });
    assert_eq!(first["demands"][1], demand, "{first:#}");
    assert_eq!(first["scenarios"][0]["rules"], json!([]), "{first:#}");
    let rule = first["scenarios"][1]["rules"][0].as_str().unwrap();
    assert!(rule.starts_with("tool_faults: error ("), "{rule}");
    assert!(rule.contains("tool: *, error_code: 503"), "{rule}");
    let digest = |statement: &Value| {
        let documents = statement["documents"].as_array().unwrap().iter();
        let mut agents = documents.filter(|one| one["name"] == "agent.py");
        agents.next().expect("the agent's file")["digest"].clone()
    };
    let again = certified(&desk, "one");
    assert_eq!(digest(&first), digest(&again));
    assert_ne!(digest(&first), digest(&certified(&desk, "another")));
}
