//! `scripts/heat-maps`: in a short form, for one of its agents.

use serde_json::Value;
use squall_tests::daemon::binary;
use squall_tests::program::{clean, script};

#[test]
fn a_map_has_a_known_failure_and_none_without_faults() {
    let mut command = clean(script("../../scripts/heat-maps"));
    command.args(["--agent", "langgraph", "--budget", "4"]);
    let output = command.env("SQUALL_BIN", binary()).output().unwrap();
    let run: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:#?}"));
    let states = |of: &str, key: &str, name: &str| -> Vec<String> {
        let all = run.pointer(of).unwrap().as_array().unwrap().iter();
        let of_it = all.filter(|one| one[key] == name);
        of_it
            .map(|one| one["state"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(states("/cells", "scenario", "clean"), ["passed"; 3]);
    let known = "error on the 1st call of get_lat_lng";
    assert_eq!(states("/exploration/points", "name", known), ["failed"]);
}
