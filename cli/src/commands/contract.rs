//! `squall contract`: invariants × scenarios.

use serde_json::Value;
use squall_documents::did_you_mean;
use squall_harness::count::count;
use squall_harness::run::RunKind;
use squall_harness::suite::{ContractPart, Isolation, Suite};
use squall_profiles::library::Library;

use super::Findings;
use crate::args::{ContractCommand, ContractRunArgs, SuiteArgs};
use crate::failure::Failure;
use crate::judging;
use crate::known::Known;
use crate::render::output;
use crate::suite::LocalSuite;
use crate::text;

pub(super) async fn run(action: ContractCommand) -> Result<(), Failure> {
    match action {
        ContractCommand::Run(arguments) => {
            let ContractRunArgs { spread, trial } = *arguments;
            let suite = LocalSuite::read(&trial.suite.file)?;
            let spread = spread.then(|| ("spread".to_owned(), Value::Bool(true)));
            let options = spread.into_iter().collect();
            let run =
                judging::run_suite(RunKind::Contract, &trial, None, suite, options, |_| Ok(()));
            Box::pin(run).await
        }
        ContractCommand::Score(trial) => Box::pin(judging::score(&trial)).await,
        ContractCommand::Validate { suite, json } => validate(&suite, json),
    }
}

/// Prints the errors and warnings of a suite, and what a run of it does.
fn validate(suite: &SuiteArgs, as_json: bool) -> Result<(), Failure> {
    let (summary, errors, warnings) = match LocalSuite::read_noting(&suite.file) {
        Ok(local) => {
            let library = Known::read(None)?.beside(&Library::builtin());
            let (misspelt, unknown) = unknown_profiles(&local.suite, &library);
            let mut warnings = text::lines(&local.suite.notes);
            warnings.extend(unknown);
            (format!(", {}", summary(&local.suite)), misspelt, warnings)
        }
        Err(errors) => (String::new(), errors, Vec::new()),
    };
    let found = Findings {
        file: suite.file.display().to_string(),
        summary,
        errors,
        warnings,
    };
    if as_json {
        output::json(&found.document())?;
    } else {
        found.print()?;
    }
    found.verdict()
}

/// Profiles in `extends` that are not known on this machine: errors for those whose name is close to a known one, and
/// warnings for others, which the daemon may have.
fn unknown_profiles(suite: &Suite, library: &Library) -> (Vec<String>, Vec<String>) {
    let names: Vec<_> = library
        .list()
        .into_iter()
        .map(|profile| profile.name)
        .collect();
    let (mut misspelt, mut unknown) = (Vec::new(), Vec::new());
    for chaos in suite.scenarios().iter().map(|scenario| &scenario.chaos) {
        for extended in &chaos.extends {
            let (name, place) = (&extended.name, extended.position);
            if library.get(name).is_some() {
                continue;
            }
            let near = did_you_mean(name, names.iter().map(String::as_str));
            let (line, column) = (place.line, place.column);
            let error = format!(
                "{}:{line}:{column}: unknown profile `{name}` in `extends`",
                chaos.file
            );
            if near.is_empty() {
                unknown.push(format!("{error}; the daemon of the run must have it"));
            } else {
                misspelt.push(format!("{error}{near}"));
            }
        }
    }
    (misspelt, unknown)
}

/// What a run tests, and how often it invokes the agent.
fn summary(suite: &Suite) -> String {
    let prompts = suite.golden_prompts.len() as u64;
    let contract = match &suite.contract {
        None => return format!("{}, no contract", count(prompts, "golden prompt")),
        Some(ContractPart::Named(name)) => {
            return format!(
                "{}, contract `{name}`, which must be stored in the daemon of the run",
                count(prompts, "golden prompt")
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
        "contract `{}`: {} in {}, {}; {}, plus probes and, if no scenario is without chaos, a clean baseline",
        contract.name,
        count(invariants, "invariant"),
        count(scenarios, "scenario"),
        count(prompts, "golden prompt"),
        count(scenarios * prompts * each, "invocation"),
    )
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;

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
