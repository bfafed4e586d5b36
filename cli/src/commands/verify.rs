//! `squall verify`: checks that a suite, its agent and its model are ready for a run.

use squall_harness::run::{CheckRecord, CheckState, RunKind, RunRecord};

use crate::args::VerifyArgs;
use crate::failure::Failure;
use crate::judging::{self, FinishedRun, RunRequest};
use crate::render::paint::Paint;
use crate::render::{output, run as render};
use crate::suite::LocalSuite;

pub(super) async fn run(verify: VerifyArgs) -> Result<(), Failure> {
    let suite = LocalSuite::read(&verify.suite.file)?;
    let request = RunRequest {
        kind: RunKind::Verify,
        options: serde_json::Map::new(),
        variables: std::collections::BTreeMap::new(),
        site: &verify.site,
    };
    let FinishedRun {
        run,
        document,
        host,
        interrupted,
    } = Box::pin(judging::finish(&request, &suite)).await?;
    host.close().await;
    if interrupted {
        return Err(Failure::Interrupted);
    }
    if verify.json {
        output::json(&document)?;
    } else {
        output::print(&text(&run, &suite, Paint::stdout()))?;
    }
    match unreachable(&run) {
        Some(name) => Err(Failure::CouldNotRun(format!("the {name} is unreachable"))),
        None => judging::verdict(&run),
    }
}

/// The part that every run requires and that is unreachable.
fn unreachable(run: &RunRecord) -> Option<&str> {
    let failed = |check: &&CheckRecord| check.state == CheckState::Failed;
    let absent = run.checks.iter().filter(failed).find(|check| {
        let at = check.pointer.as_deref();
        check.name == "agent" || (check.name == "model" && at == Some("/model/base_url"))
    });
    absent.map(|check| check.name.as_str())
}

/// All checks, each failed one with the line to change.
fn text(run: &RunRecord, suite: &LocalSuite, paint: Paint) -> String {
    let mut lines = Vec::new();
    for check in &run.checks {
        lines.extend(render::check(check, |at| suite.place(at), paint));
    }
    let failed = run
        .checks
        .iter()
        .filter(|check| check.state == CheckState::Failed)
        .count();
    let file = &suite.suite.file;
    if run.checks.is_empty() {
        // The run's error is the message.
        return String::new();
    }
    lines.push(String::new());
    lines.push(match failed {
        0 => format!("{file} is ready: all checks passed"),
        1 => format!("{file} is not ready: 1 check failed"),
        more => format!("{file} is not ready: {more} checks failed"),
    });
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use squall_documents::Variables;
    use squall_harness::run::{CoverageRecord, ScoresRecord};

    use super::*;

    #[test]
    fn every_check_is_printed_with_the_line_to_change() {
        let file = "agent:\n  endpoint: http://127.0.0.1:8000/ask\ngolden_prompts: [x]\ninvariants: [{type: completes}]\n";
        let suite = LocalSuite::parse("suite.yaml", file, Variables::Refused, &[]);
        let suite = suite.map_err(|errors| errors.join("\n")).expect("valid");
        let check = |name: &str, state: &str, found: &str, advice: Option<&str>| {
            json!({ "name": name, "state": state, "found": found, "advice": advice,
                    "pointer": advice.map(|_| "/agent/endpoint"), "place": null })
        };
        let document = json!({
            "id": "0194", "kind": "verify", "name": "x", "state": "failed", "score": null, "passed": false,
            "coverage": CoverageRecord::default(), "scores": ScoresRecord::default(), "seed": 1,
            "created_at": "", "started_at": null, "finished_at": "", "error": null, "reason": null,
            "daemon": "", "documents": [], "checks": [
                check("suite", "passed", "valid", None),
                check("reset", "skipped", "the agent is taken to remember nothing", None),
                check("agent", "passed", "it answered in 12 ms", None),
                check("proxy", "failed", "none of the agent's calls came through the proxy",
                      Some("start the agent with the variables that `squall env` prints, or let `agent.start` start \
                            it, which sets them")),
                check("scopes", "warned", "its calls name no scope", Some("pass `baggage` on")),
            ],
        });
        let run: RunRecord = serde_json::from_value(document).expect("a run");
        insta::assert_snapshot!(text(&run, &suite, Paint::plain()));
        insta::assert_snapshot!("shown_again", render::whole(&run, Paint::plain()));
    }
}
