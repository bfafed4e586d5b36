//! Suites as people write them: flakestorm's v1 and v2 files, and Squall's own.

use squall_documents::VariableError;
use std::path::Path;

use squall_documents::Variables;
use squall_harness::suite::{self, ContractPart, Suite};

fn environment(name: &str) -> Result<String, VariableError> {
    match name {
        "AGENT_URL" => Ok("https://agent.test".to_owned()),
        "AGENT_TOKEN" | "AGENT_KEY" => Ok("hunter2".to_owned()),
        "OPENAI_API_KEY" | "ANTHROPIC_API_KEY" | "GOOGLE_API_KEY" => Ok("key-of-mine".to_owned()),
        _ => Err(VariableError::NotSet),
    }
}

fn read(path: &Path) -> Suite {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("UTF-8");
    let text = std::fs::read_to_string(path).expect("readable");
    suite::parse(name, &text, Variables::From(&environment)).unwrap_or_else(|errors| {
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        panic!("{name} is a valid suite, but:\n{}", told.join("\n"));
    })
}

/// What was read, in a line, and every note.
fn told(suite: &Suite) -> String {
    let (invariants, scenarios) = match &suite.contract {
        Some(ContractPart::Written(contract)) => {
            (contract.invariants.len(), contract.scenarios.len())
        }
        Some(ContractPart::Named(_)) | None => (0, 0),
    };
    let rules = suite.chaos.as_ref().map_or(0, |chaos| chaos.rules.len());
    let notes: Vec<_> = suite
        .notes
        .iter()
        .map(|note| {
            format!(
                "
    {note}"
            )
        })
        .collect();
    let notes = notes.concat();
    format!(
        "{}: {} agent, {} prompts, {} invariants, {rules} rules, contract {invariants} x \
         {scenarios}, {} sessions{notes}",
        suite.file,
        suite.agent.way.as_str(),
        suite.golden_prompts.len(),
        suite.invariants.len(),
        suite.replays.sessions.len(),
    )
}

#[test]
fn every_suite_of_the_corpus_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= 20);
    let told: Vec<_> = files.iter().map(|path| told(&read(path))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_suite_that_was_read_shows_no_secret() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites");
    let suite = read(&folder.join("v1_secrets_from_environment.yaml"));
    assert!(format!("{:?}", suite.model).contains("REDACTED"));
    assert!(!format!("{suite:?}").contains("hunter2"));
    let squall_harness::agents::settings::Way::Http(agent) = &suite.agent.way else {
        panic!("an http agent");
    };
    assert_eq!(agent.endpoint, "https://agent.test/invoke");
    assert_eq!(agent.headers.0[1].1, "hunter2");
    assert_eq!(agent.query_params.0[1].1, "$filter eq 1");
}
