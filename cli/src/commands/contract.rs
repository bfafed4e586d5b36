//! `squall contract`: invariants × scenarios.

use std::path::Path;

use serde_json::{Value, json};
use squall_documents::did_you_mean;
use squall_harness::agents::settings::{Reset, Way};
use squall_harness::run::RunKind;
use squall_harness::suite::{ContractPart, Isolation, Suite};
use squall_profiles::library::Library;

use crate::args::{ContractCommand, SuiteArgs};
use crate::failure::Failure;
use crate::judging;
use crate::known::Known;
use crate::render::{output, plural};
use crate::suite::LocalSuite;

pub(super) async fn run(action: ContractCommand) -> Result<(), Failure> {
    match action {
        ContractCommand::Run(trial) => {
            Box::pin(judging::run(RunKind::Contract, &trial, None)).await
        }
        ContractCommand::Score(trial) => Box::pin(judging::score(&trial)).await,
        ContractCommand::Validate { suite, json } => validate(&suite, json),
    }
}

/// Prints the errors and warnings of a suite, and what a run of it does.
fn validate(suite: &SuiteArgs, as_json: bool) -> Result<(), Failure> {
    let file = suite.file.display().to_string();
    let read = LocalSuite::read_noting(&suite.file);
    let (told, errors, warnings) = match &read {
        Ok(local) => {
            let library = Known::read(None)?.beside(&Library::builtin());
            let (misspelt, unknown) = unknown_profiles(&local.suite, &library);
            let notes = local.suite.notes.iter().map(ToString::to_string);
            let warnings = notes.chain(unknown).chain(absent(local)).collect();
            (summary(&local.suite), misspelt, warnings)
        }
        Err(errors) => (String::new(), errors.clone(), Vec::new()),
    };
    if as_json {
        output::json(&document(&file, &errors, &warnings))?;
    } else {
        output::tell_findings(&errors, &warnings);
        if errors.is_empty() {
            output::line(&format!("{file}: valid, {told}"))?;
        }
    }
    match errors[..] {
        [] => Ok(()),
        _ => Err(Failure::Reported),
    }
}

/// Profiles in `extends` that are not known on this machine: errors for those whose name is close to a known one, and
/// warnings for others, which the daemon may have.
fn unknown_profiles(suite: &Suite, library: &Library) -> (Vec<String>, Vec<String>) {
    let scenarios = match &suite.contract {
        Some(ContractPart::Written(contract)) => &contract.scenarios[..],
        Some(ContractPart::Named(_)) | None => &[],
    };
    let names: Vec<_> = library.list().into_iter().map(|one| one.name).collect();
    let (mut misspelt, mut unknown) = (Vec::new(), Vec::new());
    let scenarios = scenarios.iter().map(|scenario| &scenario.chaos);
    for chaos in scenarios {
        for extended in &chaos.extends {
            let (name, place) = (&extended.name, extended.position);
            if library.get(name).is_some() {
                continue;
            }
            let near = did_you_mean(name, names.iter().map(String::as_str));
            let (line, column) = (place.line, place.column);
            let told = format!(
                "{}:{line}:{column}: unknown profile `{name}` in `extends`",
                chaos.file
            );
            if near.is_empty() {
                unknown.push(format!("{told}; the daemon of the run must have it"));
            } else {
                misspelt.push(format!("{told}{near}"));
            }
        }
    }
    (misspelt, unknown)
}

/// Programs of the suite that do not exist. Programs without a slash and Python modules are looked up when they are
/// started: `squall verify` checks those.
fn absent(local: &LocalSuite) -> Vec<String> {
    let suite = &local.suite;
    let agent = &suite.agent;
    let mut named = Vec::new();
    if let Way::Command(command) = &agent.way {
        named.push(("/agent/command", command.first()));
    }
    if let Some(Reset::Command(command)) = &agent.reset {
        named.push(("/agent/reset_command", command.first()));
    }
    if let Some(start) = &agent.start {
        named.push(("/agent/start/command", start.command.first()));
    }
    let programs = named.into_iter().filter_map(|(pointer, program)| {
        let program = program.filter(|program| program.contains('/'))?;
        (!Path::new(program).exists())
            .then(|| (pointer, format!("the program `{program}` does not exist")))
    });
    programs
        .map(|(pointer, what)| format!("{}: {what}", local.place(pointer)))
        .collect()
}

fn document(file: &str, errors: &[String], warnings: &[String]) -> Value {
    json!({ "file": file, "valid": errors.is_empty(), "errors": errors, "warnings": warnings })
}

/// What a run tests, and how often it invokes the agent.
fn summary(suite: &Suite) -> String {
    let prompts = suite.golden_prompts.len() as u64;
    let contract = match &suite.contract {
        None => return format!("{}, no contract", plural(prompts, "golden prompt")),
        Some(ContractPart::Named(name)) => {
            return format!(
                "{}, contract `{name}`, which must be stored in the daemon of the run",
                plural(prompts, "golden prompt")
            );
        }
        Some(ContractPart::Written(contract)) => contract,
    };
    let invariants = contract.invariants.len() as u64;
    let scenarios = contract.scenarios.len() as u64;
    let each = match contract.isolation {
        Isolation::Scenario => 1,
        Isolation::Cell => invariants,
    };
    format!(
        "contract `{}`: {} in {}, {}; {} invocations, plus probes and, if no scenario is without chaos, a clean baseline",
        contract.name,
        plural(invariants, "invariant"),
        plural(scenarios, "scenario"),
        plural(prompts, "golden prompt"),
        scenarios * prompts * each,
    )
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;

    #[test]
    fn programs_that_do_not_exist_are_reported_with_their_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.yaml");
        let told = |agent: &str| {
            let text =
                format!("agent: {agent}\ngolden_prompts: [x]\ninvariants: [{{type: completes}}]\n");
            std::fs::write(&file, text).expect("written");
            absent(&LocalSuite::read_noting(&file).expect("a suite"))
        };
        let at = |place: &str| format!("{}:{place}", file.display());
        for (agent, expected) in [
            ("{type: command, command: [cat]}", vec![]),
            (
                "{type: command, command: [./nope, x], reset_command: [./forget]}",
                vec![
                    at("1:33: the program `./nope` does not exist"),
                    at("1:61: the program `./forget` does not exist"),
                ],
            ),
            (
                "{endpoint: 'http://a.test/', start: {command: [./serve], ready_url: 'http://a.test/'}}",
                vec![at("1:54: the program `./serve` does not exist")],
            ),
        ] {
            assert_eq!(told(agent), expected, "{agent}");
        }
    }

    #[test]
    fn an_unknown_profile_is_an_error_only_where_it_is_misspelt() {
        let text = "agent: {endpoint: 'http://a.test/'}\ngolden_prompts: [x]\ncontract:\n  name: c\n  \
                    invariants: [{id: a, type: completes}]\n  chaos_matrix:\n    \
                    - {name: s, extends: [brownot, ours, api_outage]}\n";
        let suite = squall_harness::suite::parse("s.yaml", text, Variables::Refused);
        let found = unknown_profiles(&suite.expect("valid"), &Library::builtin());
        let at =
            |place: &str, rest: &str| vec![format!("s.yaml:7:{place}: unknown profile {rest}")];
        let misspelt = at("27", "`brownot` in `extends`, did you mean `brownout`?");
        assert_eq!(
            found,
            (
                misspelt,
                at(
                    "36",
                    "`ours` in `extends`; the daemon of the run must have it"
                )
            )
        );
    }

    #[test]
    fn a_valid_suite_is_summed_up() {
        let contract = |more: &str| {
            format!(
                "contract: {{name: polite, {more} invariants: [{{id: a, type: completes}}, {{id: b, type: completes}}], \
                 chaos_matrix: [{{name: clean}}, {{name: also}}]}}"
            )
        };
        for (contract, expected) in [
            (
                "invariants: [{type: completes}]".to_owned(),
                "2 golden prompts, no contract",
            ),
            (
                "contract: polite".to_owned(),
                "2 golden prompts, contract `polite`, which must be stored in the daemon of the run",
            ),
            (
                contract(""),
                "contract `polite`: 2 invariants in 2 scenarios, 2 golden prompts; 4 invocations, \
                 plus probes and, if no scenario is without chaos, a clean baseline",
            ),
            (
                contract("isolation: cell,"),
                "contract `polite`: 2 invariants in 2 scenarios, 2 golden prompts; 8 invocations, \
                 plus probes and, if no scenario is without chaos, a clean baseline",
            ),
        ] {
            let text = format!(
                "agent: {{endpoint: 'http://a.test/'}}\ngolden_prompts: [x, y]\n{contract}\n"
            );
            let suite = squall_harness::suite::parse("s.yaml", &text, Variables::Refused);
            assert_eq!(summary(&suite.expect("valid")), expected);
        }
    }
}
