//! `squall off`: ends all chaos, or the chaos of one scope.

use serde_json::{Value, json};
use squall_journal::activation::ActivationRecord;

use super::{chaos_path, fleet_query};
use crate::args::OffArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::render::output;

pub(super) async fn run(off: OffArgs) -> Result<(), Failure> {
    let client = Client::new(&off.remote)?;
    let Some(scope) = &off.scope else {
        let query = if off.fleet { "&fleet=true" } else { "" };
        client.delete(&format!("/v1/chaos?all=true{query}")).await?;
        let line = match off.fleet {
            false => "all chaos has ended",
            true if client.get::<Value>("/v1/fleet").await.is_ok() => {
                "all chaos of the fleet has ended"
            }
            true => "all chaos of this daemon has ended; it belongs to no fleet",
        };
        return output::result(off.remote.json, &json!({ "ended": "all" }), line);
    };
    let path = chaos_path(Some(scope));
    let before: ActivationRecord = client.get(&path).await?;
    client
        .delete(&format!("{path}{}", fleet_query(off.fleet)))
        .await?;
    let after: ActivationRecord = client.get(&path).await?;
    let ended = json!({ "ended": scope, "was_active": was_active(&before) });
    output::result(off.remote.json, &ended, &result(&before, &after))
}

/// Whether the scope had an activation of its own.
fn was_active(before: &ActivationRecord) -> bool {
    !before.inherited && before.activation.is_some()
}

fn result(before: &ActivationRecord, after: &ActivationRecord) -> String {
    let scope = &before.scope;
    let ended = if !was_active(before) {
        format!("scope {scope} had no chaos of its own")
    } else if before.profile == "none" {
        format!("scope {scope} is no longer kept without chaos")
    } else {
        format!("profile {} has ended in scope {scope}", before.profile)
    };
    match &*after.profile {
        "none" => ended,
        profile => format!("{ended}; it inherits profile {profile} of the default scope"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(profile: &str, inherited: bool, active: bool) -> ActivationRecord {
        let value = json!({
            "scope": "job", "activation": active.then_some("a1-1"), "inherited": inherited,
            "profile": profile, "seed": 1, "key": "job", "observe": "model", "rules": 1,
        });
        serde_json::from_value(value).expect("a record")
    }

    #[test]
    fn off_prints_whether_the_scope_had_chaos_of_its_own() {
        let nothing = record("none", true, false);
        let default = record("brownout", true, true);
        let own = record("api_outage", false, true);
        let clean = record("none", false, true);
        for (before, after, expected) in [
            (&own, &nothing, "profile api_outage has ended in scope job"),
            (
                &own,
                &default,
                "profile api_outage has ended in scope job; it inherits profile brownout of \
                 the default scope",
            ),
            (&nothing, &nothing, "scope job had no chaos of its own"),
            (
                &clean,
                &default,
                "scope job is no longer kept without chaos; it inherits profile brownout of the default scope",
            ),
            (
                &default,
                &default,
                "scope job had no chaos of its own; it inherits profile brownout of the default scope",
            ),
        ] {
            assert_eq!(result(before, after), expected);
        }
    }
}
