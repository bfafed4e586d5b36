//! The dashboard's pages Profiles and Connect in Chromium.

use serde_json::json;
use squall_tests::upstream::standard;
use squall_tests::{Path, Stage};

use crate::dashboard::{visited_by, with_pictures};

#[test]
fn a_profile_is_written_tried_compared_and_restored() {
    let stage = Stage::with(&json!({}), standard::serve);
    let mut wire = stage.open(Path::Forward);
    wire.get("/json?first");
    let first = stage.daemon.api.wait_for_exchanges(1).remove(0);
    let upstream = format!("http://{}", stage.plain.address);
    let data = json!({ "upstream": upstream, "exchange": first["id"] });
    let told = visited_by(
        "dashboard_profiles.mjs",
        &stage.daemon,
        "profiles",
        &with_pictures(data),
    );
    let text = |name: &str| {
        told[name]
            .as_str()
            .unwrap_or_else(|| panic!("no {name} in {told}"))
    };

    assert!(text("listed").contains("api_outage"), "{told}");
    assert!(
        text("wrong").starts_with("line 2, column 11: unknown"),
        "{told}"
    );
    assert!(text("wrong").contains("did you mean `error`"), "{told}");
    assert_eq!(told["marked"], "eror");

    let tried = text("dryRun");
    assert!(
        tried.contains("Would have matched 8 and fired on about 4"),
        "{tried}"
    );
    assert!(
        tried.contains("about 4.0 (8 draws by probability)"),
        "{tried}"
    );
    assert_eq!(told["saved"], "/profiles/flaky");

    assert_eq!(
        told["removed"],
        json!(["-     probability: 0.5\n"]),
        "{told}"
    );
    assert_eq!(told["added"], json!(["+     probability: 0.9\n"]), "{told}");
    assert!(text("restored").contains("probability: 0.5"), "{told}");
    let history = text("history");
    assert!(history.contains("Restore version 2"), "{history}");
    assert!(
        told["completed"].to_string().contains("error_code"),
        "{told}"
    );

    let from = text("from");
    assert!(
        from.contains("mode: error") && from.contains("/json*"),
        "{from}"
    );
    assert!(
        text("fromMatched").contains("Would have matched 9 "),
        "{told}"
    );

    assert!(text("plainWrong").contains("line 4, column"), "{told}");
    assert!(text("plainText").contains("probability: 2"), "{told}");
    assert!(text("plainSaved").contains("Saved"), "{told}");
    let versions = stage.daemon.api.get("/v1/profiles/flaky/versions");
    assert_eq!(versions["items"][0]["version"], 4, "{versions}");
}

#[test]
fn a_program_that_rejects_the_ca_is_shown_with_what_to_set() {
    let stage = Stage::with(&json!({}), standard::serve);
    for agent in ["User-Agent: node\r\n", ""] {
        let mut wire = stage.daemon.connect();
        wire.open_tunnel(&stage.secure_authority(), agent);
        assert!(wire.encrypt(&stage.authority.file(), "localhost").is_err());
    }
    stage.daemon.api.wait_for_exchanges(2);
    let data = with_pictures(json!({}));
    let told = visited_by("dashboard_profiles.mjs", &stage.daemon, "connect", &data);
    let advice = told["advice"].as_array().unwrap();
    assert_eq!(advice.len(), 2, "{told}");
    let host = stage.secure_authority();
    let node = format!(
        "refused by Node.js at 127.0.0.1, to {host}: it does not trust the CA; set NODE_EXTRA_CA_CERTS."
    );
    assert!(told["advice"].to_string().contains(&node), "{told}");
    assert!(
        told["advice"].to_string().contains("REQUESTS_CA_BUNDLE"),
        "{told}"
    );
    let proxy = stage.daemon.proxy;
    let bash = told["bash"].as_str().unwrap();
    assert!(
        bash.contains(&format!("export HTTPS_PROXY='http://{proxy}'")),
        "{bash}"
    );
    let powershell = told["powershell"].as_str().unwrap();
    assert!(
        powershell.contains(&format!("$env:HTTPS_PROXY = 'http://job-7:x@{proxy}'")),
        "{powershell}"
    );
}
