//! `squall fleet`: the daemons that share a PostgreSQL.

use std::fmt::Write as _;

use serde_json::Value;

use crate::args::RemoteArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::table::Table;

pub(super) async fn run(remote: RemoteArgs) -> Result<(), Failure> {
    let fleet: Value = Client::new(&remote)?.get("/v1/fleet").await?;
    if remote.json {
        return output::json(&fleet);
    }
    output::print(&text(&fleet, Paint::stdout()))
}

fn text(fleet: &Value, paint: Paint) -> String {
    let listed = |words: &[String]| match words {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut table = Table::new([
        "DAEMON",
        "HOST",
        "API",
        "VERSION",
        "SEEN",
        "EXCHANGES/S",
        "FAULTS/S",
        "IN FORCE",
        "RUNS",
        "STATE",
    ]);
    let daemons = items(&fleet["daemons"]);
    for daemon in &daemons {
        let own = items(&daemon["in_force"]);
        let own = own
            .iter()
            .map(|one| format!("{}: {}", word(&one["scope"]), word(&one["profile"])));
        let own: Vec<_> = own.collect();
        let takes: Vec<_> = items(&daemon["takes"]).iter().map(word).collect();
        let state = match (&daemon["away"], &daemon["behind"]) {
            (Value::Bool(true), _) => paint.bad("away"),
            (_, Value::Bool(true)) => paint.bad("behind"),
            _ => paint.good("up to date"),
        };
        table.row([
            paint.name(word(&daemon["id"])),
            word(&daemon["host"]),
            word(&daemon["address"]),
            word(&daemon["version"]),
            word(&daemon["seen_at"]),
            daemon["exchanges_per_second"].to_string(),
            daemon["faults_per_second"].to_string(),
            listed(&own),
            listed(&takes),
            state,
        ]);
    }
    let mut text = table.render();
    for daemon in &daemons {
        for problem in items(&daemon["problems"]) {
            let (id, problem) = (word(&daemon["id"]), word(&problem));
            let _ = writeln!(text, "{} {id}: {problem}", paint.bad("!"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn daemons_that_are_behind_are_shown_with_the_reason() {
        let daemon = |id: &str, away: bool, behind: bool| {
            json!({
                "id": id, "host": "h", "address": "127.0.0.1:7071", "version": "1", "seen_at": "now",
                "exchanges_per_second": 12.5, "faults_per_second": 0.0, "away": away, "behind": behind,
                "in_force": [{ "scope": "default", "profile": "brownout" }], "takes": if away { json!([]) } else { json!(["shop", "desk*"]) },
                "problems": if behind { json!(["default: there is no profile `x`"]) } else { json!([]) },
            })
        };
        let fleet = json!({ "daemons": [daemon("a", false, false), daemon("b", false, true), daemon("c", true, false)] });
        let shown = text(&fleet, Paint::plain());
        for expected in [
            "a       h     127.0.0.1:7071  1        now   12.5         0.0       default: brownout  shop, desk*  up to date",
            "default: brownout  shop, desk*  behind",
            "default: brownout  none         away",
            "! b: default: there is no profile `x`",
        ] {
            assert!(shown.contains(expected), "{shown}");
        }
    }
}
