//! What documents that arrive may read of the daemon's environment.

use std::collections::BTreeSet;

use serde_json::json;
use squall_control_api::TrustConfig;
use squall_journal::redact::Redactor;

use crate::bench::Api;
use crate::store::Ground;

/// A variable that every process has here.
const KNOWN: &str = "CARGO_MANIFEST_DIR";

fn listed() -> TrustConfig {
    TrustConfig {
        variables: BTreeSet::from([KNOWN.to_owned()]),
        ..TrustConfig::default()
    }
}

fn rules(text: &str) -> serde_json::Value {
    json!({ "tool_faults": [{ "mode": "error", "message": text }] })
}

#[tokio::test]
async fn chaos_names_listed_variables_only_and_nothing_tells_their_values() {
    let api = Api::new();
    let chaos = json!({ "chaos": rules(&format!("at ${{{KNOWN}}}")) });
    let refused = api.put("/v1/chaos", chaos.clone()).await;
    let pointers = refused.pointers(422, "invalid");
    assert_eq!(pointers, ["/chaos/tool_faults/0/message"]);
    api.state.trust.configure(listed());
    assert_eq!(api.put("/v1/chaos", chaos).await.status, 200);
    let other = json!({ "chaos": rules("${HOME:-x}") });
    api.put("/v1/chaos", other).await.pointers(422, "invalid");
    let in_force = api.state.chaos.scope(None);
    let told = format!(
        "{:?}",
        in_force.activation().rules().rules()[0].parameters(&Redactor::default())
    );
    let value = std::env::var(KNOWN).expect("cargo sets it");
    assert!(
        told.contains("at REDACTED") && !told.contains(&value),
        "{told}"
    );
}

#[tokio::test]
async fn a_profile_names_listed_variables_also_after_a_restart() {
    let ground = Ground::sqlite();
    let api = Api::with_store(ground.open().await).await;
    let path = "/v1/profiles/listed";
    let text = format!("tool_faults:\n  - {{ mode: error, message: '${{{KNOWN}}}' }}\n");
    let refused = api.put_yaml(path, &text).await.problem(422, "invalid");
    let detail = refused["detail"].as_str().expect("a text");
    assert!(
        detail.contains("line 2, column") && detail.contains("api.env"),
        "{detail}"
    );
    api.state.trust.configure(listed());
    assert_eq!(api.put_yaml(path, &text).await.status, 201);
    let value = std::env::var(KNOWN).expect("cargo sets it");
    let shown = api.get(path).await;
    assert!(!String::from_utf8_lossy(&shown.body).contains(&value));
    for file in ground.files() {
        let bytes = std::fs::read(&file).expect("it can be read");
        let found = bytes
            .windows(value.len())
            .any(|some| some == value.as_bytes());
        assert!(!found, "the value is in {}", file.display());
    }
    let again = Api::with_trust(ground.open().await, listed()).await;
    assert_eq!(again.get(path).await.status, 200);
    let without = Api::with_store(ground.open().await).await;
    assert_eq!(without.get(path).await.status, 404);
    let broken = without.state.profiles.broken();
    assert!(broken[0].error.contains("api.env"), "{broken:?}");
}
