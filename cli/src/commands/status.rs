//! `squall status`: the active profiles, and problems of the daemon.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};
use squall_journal::activation::{ActivationRecord, Suspended};
use squall_journal::record::{ExchangeRecord, Outcome};

use crate::args::RemoteArgs;
use crate::client::{Client, ResponsePage};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::table::Table;

/// Exchanges that are searched for programs that do not trust the CA.
const LATEST: usize = 200;

pub(super) async fn run(remote: RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(&remote)?;
    let ready: Value = client.get_any("/readyz").await?;
    let scopes: Vec<ActivationRecord> = client.list("/v1/scopes").await?;
    let path = format!("/v1/exchanges?limit={LATEST}");
    let latest: ResponsePage<ExchangeRecord> = client.get(&path).await?;
    let untrusting = untrusting(&latest.items);
    if remote.json {
        return output::json(&json!({
            "server": client.server(), "ready": ready, "scopes": scopes,
            "client_rejected_ca": untrusting,
        }));
    }
    output::print(&text(
        client.server(),
        &ready,
        &scopes,
        &untrusting,
        Paint::stdout(),
    ))
}

/// Hosts to which a TLS handshake failed because the program does not trust the CA.
fn untrusting(exchanges: &[ExchangeRecord]) -> BTreeSet<&str> {
    let rejected = exchanges
        .iter()
        .filter(|exchange| exchange.outcome == Outcome::ClientRejectedCa);
    rejected.map(|exchange| exchange.url.as_str()).collect()
}

fn text(
    server: &str,
    ready: &Value,
    scopes: &[ActivationRecord],
    untrusting: &BTreeSet<&str>,
    paint: Paint,
) -> String {
    let is_ready = ready["status"] == "ready";
    let state = if is_ready {
        paint.good("ready")
    } else {
        paint.bad("not ready")
    };
    let mut text = format!("squall at {server}: {state}\n");
    for listener in ready["listeners"].as_array().into_iter().flatten() {
        let (name, address) = (word(&listener["name"]), word(&listener["address"]));
        let _ = writeln!(text, "  {name} on http://{address}");
    }
    for broken in ready["broken"].as_array().into_iter().flatten() {
        let (file, error) = (word(&broken["file"]), word(&broken["error"]));
        let file = if error.starts_with(file) {
            String::new()
        } else {
            format!("{file}: ")
        };
        let _ = writeln!(text, "{} {file}{error}", paint.bad("!"));
    }
    text.push('\n');
    let mut table = Table::new(["SCOPE", "PROFILE", "SEED", "RULES", "STARTED", "ENDS"]);
    for scope in scopes {
        let mut profile = match (&*scope.profile, scope.inherited) {
            ("none", _) => paint.faint("none"),
            (profile, true) => {
                format!("{} {}", paint.name(profile), paint.faint("(inherited)"))
            }
            (profile, false) => paint.name(profile),
        };
        if let Some(Suspended { profile: own, run }) = &scope.suspended {
            let _ = write!(profile, " ({own} is suspended by run {run})");
        }
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
        table.row([
            scope.scope.clone(),
            profile,
            scope.seed.to_string(),
            scope.rules.to_string(),
            or_dash(&scope.started_at),
            or_dash(&scope.expires_at),
        ]);
    }
    text.push_str(&table.render());
    for host in untrusting {
        let _ = writeln!(
            text,
            "\n{} a program rejected the certificate of {host}: it does not trust Squall's CA; see SSL_CERT_FILE in \
             `squall env`",
            paint.bad("!")
        );
    }
    text
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chaos_that_a_run_suspends_is_shown() {
        let scope = json!({
            "scope": "default", "activation": "a1-2", "inherited": false, "profile": "none", "seed": 42,
            "key": "default", "observe": "model", "rules": 0, "suspended": { "profile": "brownout", "run": "0193" },
        });
        let scopes = [serde_json::from_value(scope).expect("a record")];
        let shown = text(
            "http://x",
            &json!({}),
            &scopes,
            &BTreeSet::new(),
            Paint::plain(),
        );
        let expected = "default  none (brownout is suspended by run 0193)  42";
        assert!(shown.contains(expected), "{shown}");
    }
}
