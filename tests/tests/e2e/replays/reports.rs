//! What reports say of replayed sessions.

use std::fs;

use super::{replay, run_of, suite};
use crate::desk::{CommandResult, Desk};

#[test]
fn a_report_names_the_recorded_failure_that_a_session_replayed() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let place = format!("{}/json", desk.tool.address);
    for (response, fault) in [
        ("status: 503", "recorded 503"),
        ("body: '{', broken_off: true", "recorded abort"),
        ("status: 0", "recorded absence of a response"),
    ] {
        let session = format!(
            "id: one\ninput: Weather?\nexchanges: [{{match: {{url: 'http://{place}'}}, {response}}}]\n"
        );
        fs::write(desk.directory.path().join("one.yaml"), session).unwrap();
        let result = replay(&desk, &suite(&agent, "cloudy"), &["one.yaml", "--json"]);
        result.ended(1);
        let run = run_of(&result);
        let evidence = &run["cells"][0]["evidence"][0];
        assert_eq!(evidence["fault"], fault, "{run:#}");
        let sentence = format!("The replayed session: {fault} on {place}.");
        for format in ["markdown", "html"] {
            let report = desk.squall(&["report", run["id"].as_str().unwrap(), "--format", format]);
            let report = CommandResult::from({ report }.output().unwrap());
            report.ended(0);
            // Markdown has character references.
            let text = (33..127_u8).fold(report.out, |text, code| {
                text.replace(&format!("&#{code};"), &char::from(code).to_string())
            });
            assert!(text.contains(&sentence), "{format}: {text}");
        }
    }
}
