//! `squall verify`: whether a run could be made at all, and what to change if not.

use squall_harness::run::{CheckRecord, CheckState, RunKind, RunRecord};

use crate::args::Verify;
use crate::failure::Failure;
use crate::judging::{self, Asked, Judged};
use crate::render::paint::Paint;
use crate::render::{output, run as render};
use crate::suite::LocalSuite;

pub(super) async fn run(verify: Verify) -> Result<(), Failure> {
    let suite = LocalSuite::read(&verify.suite.file)?;
    let asked = Asked {
        kind: RunKind::Verify,
        options: serde_json::Map::new(),
        variables: std::collections::BTreeMap::new(),
        site: &verify.site,
    };
    let Judged {
        run,
        document,
        host,
        interrupted,
    } = Box::pin(judging::judge(&asked, &suite)).await?;
    host.close().await;
    if interrupted {
        return Err(Failure::Interrupted);
    }
    if verify.json {
        output::json(&document)?;
    } else {
        output::print(&told(&run, &suite, Paint::stdout()))?;
    }
    match unreachable(&run) {
        Some(name) => Err(Failure::CouldNotRun(format!(
            "the {name} cannot be reached"
        ))),
        None => judging::verdict(&run),
    }
}

/// Who was not there: without them nothing can be run at all.
fn unreachable(run: &RunRecord) -> Option<&str> {
    let failed = |check: &&CheckRecord| check.state == CheckState::Failed;
    let absent = run.checks.iter().filter(failed).find(|check| {
        let at = check.pointer.as_deref();
        check.name == "agent" || (check.name == "model" && at == Some("/model/base_url"))
    });
    absent.map(|check| check.name.as_str())
}

/// Every check, with the line to change.
fn told(run: &RunRecord, suite: &LocalSuite, paint: Paint) -> String {
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
        // What went wrong is the run's to say.
        return String::new();
    }
    lines.push(String::new());
    lines.push(match failed {
        0 => format!("a run of {file} can be made"),
        1 => format!("a run of {file} cannot be made: change what failed above"),
        more => {
            format!("a run of {file} cannot be made: change the {more} things that failed above")
        }
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
    fn every_check_is_told_with_the_line_to_change() {
        let text = "agent:\n  endpoint: http://127.0.0.1:8000/ask\ngolden_prompts: [x]\ninvariants: [{type: completes}]\n";
        let suite = LocalSuite::parse("suite.yaml", text, Variables::Refused);
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
                check("suite", "passed", "it makes sense", None),
                check("reset", "skipped", "the agent is taken to remember nothing", None),
                check("agent", "passed", "it answered in 12 ms", None),
                check("proxy", "failed", "none of the agent's calls came through the proxy",
                      Some("start the agent with the variables that `squall env` prints, or let `agent.start` start \
                            it, which sets them")),
                check("scopes", "warned", "its calls name no scope", Some("pass `baggage` on")),
            ],
        });
        let run: RunRecord = serde_json::from_value(document).expect("a run");
        insta::assert_snapshot!(told(&run, &suite, Paint::plain()));
        insta::assert_snapshot!("shown_again", render::whole(&run, Paint::plain()));
    }
}
