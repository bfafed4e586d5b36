//! `squall off`: ends all chaos in one swap, or one scope's.

use serde_json::json;
use squall_journal::activation::ActivationRecord;

use super::chaos_path;
use crate::args::Off;
use crate::client::Client;
use crate::failure::Failure;
use crate::render::output;

pub(super) async fn run(off: Off) -> Result<(), Failure> {
    let client = Client::new(&off.remote)?;
    let Some(scope) = &off.scope else {
        client.delete("/v1/chaos?all=true").await?;
        let ended = json!({ "ended": "all" });
        return output::done(off.remote.json, &ended, "all chaos is over");
    };
    let path = chaos_path(Some(scope));
    let before: ActivationRecord = client.get(&path).await?;
    client.delete(&path).await?;
    let after: ActivationRecord = client.get(&path).await?;
    let ended = json!({ "ended": scope, "was_active": was_active(&before) });
    output::done(off.remote.json, &ended, &said(&before, &after))
}

/// Whether the scope had chaos of its own, or was kept clean.
fn was_active(before: &ActivationRecord) -> bool {
    !before.inherited && before.activation.is_some()
}

fn said(before: &ActivationRecord, after: &ActivationRecord) -> String {
    let scope = &before.scope;
    let ended = if was_active(before) {
        format!("profile {} is over in scope {scope}", before.profile)
    } else {
        format!("nothing was active in scope {scope}, so nothing was ended")
    };
    match &*after.profile {
        "none" => ended,
        profile => format!("{ended}; the default scope's profile {profile} holds there"),
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
    fn ending_nothing_is_told_from_ending_something() {
        let nothing = record("none", true, false);
        let default = record("brownout", true, true);
        let own = record("api_outage", false, true);
        for (before, after, expected) in [
            (&own, &nothing, "profile api_outage is over in scope job"),
            (
                &own,
                &default,
                "profile api_outage is over in scope job; the default scope's profile brownout \
                 holds there",
            ),
            (
                &nothing,
                &nothing,
                "nothing was active in scope job, so nothing was ended",
            ),
            (
                &default,
                &default,
                "nothing was active in scope job, so nothing was ended; the default scope's profile \
                 brownout holds there",
            ),
        ] {
            assert_eq!(said(before, after), expected);
        }
    }
}
