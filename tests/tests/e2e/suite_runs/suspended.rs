//! Chaos that somebody has in force in the default scope while a run needs that scope.

use serde_json::json;
use squall_tests::{Stage, Wire};

use super::{Agent, TOOL, cell, run, stage, suite};

/// The status that a call in no scope gets.
fn status(stage: &Stage) -> u16 {
    let mut wire = Wire::connect(stage.daemon.proxy);
    wire.prefix = format!("http://{TOOL}");
    TOOL.clone_into(&mut wire.host);
    wire.get("/json").status
}

#[test]
fn a_run_suspends_the_chaos_of_others_and_is_not_judged_by_it() {
    for (carries, warnings) in [("none", 1), ("baggage", 0)] {
        let (stage, _tool) = stage();
        let others = json!({ "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 418, "after_calls": 1 }] });
        stage.daemon.api.chaos(&others);
        assert_eq!(status(&stage), 200);
        let before = stage.daemon.api.get("/v1/chaos");
        let agent = Agent::of(&stage, carries);
        let suite = suite(&agent);
        let run = run(&stage.daemon, "contract", &suite, &json!({ "seed": 7 }));
        assert_eq!(run["state"], "passed", "{carries}: {run:#}");
        let warned = run["warnings"].as_array().unwrap().len();
        assert_eq!(warned, warnings, "{carries}: {run:#}");
        assert_eq!(cell(&run, "sunny", "clean")["state"], "passed", "{carries}");
        let down = cell(&run, "honest", "down");
        assert_eq!(down["faults_applied"], 3, "{carries}: {down:#}");
        // The first call counts: the one that follows it meets the fault.
        assert_eq!(stage.daemon.api.get("/v1/chaos"), before, "{carries}");
        assert_eq!(status(&stage), 418, "{carries}");
    }
}
