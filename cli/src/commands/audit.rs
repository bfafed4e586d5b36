//! `squall audit`: lists and verifies the audit log.

use serde::Deserialize;
use serde_json::Value;
use squall_harness::count::count;

use super::print_list;
use crate::args::{AuditCommand, RemoteArgs};
use crate::client::{Client, path};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;

const AUDIT: &str = "/v1/audit";

const COLUMNS: [(&str, &str, &str); 8] = [
    ("#", "number", ""),
    ("TIME", "at", ""),
    ("ACTOR", "actor", ""),
    ("SOURCE", "source", ""),
    ("ACTION", "action", ""),
    ("TARGET", "target", ""),
    ("OUTCOME", "outcome", ""),
    ("DETAIL", "detail", ""),
];

pub(super) async fn run(action: AuditCommand, remote: RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(&remote)?;
    match action {
        AuditCommand::Verify { head } => {
            let path = path(&[AUDIT, "verify"], &[("head", head)]);
            print_verification(&client.get(&path).await?, remote.json)
        }
        AuditCommand::List { limit, actor } => {
            let query = [("limit", Some(limit.to_string())), ("actor", actor)];
            let page: Value = client.get(&path(&[AUDIT], &query)).await?;
            if remote.json {
                return output::json(&page);
            }
            let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
            print_list(items, false, &COLUMNS, "no entries")
        }
    }
}

/// The response of `GET /v1/audit/verify`.
#[derive(Deserialize)]
struct Verification {
    valid: bool,
    entries: u64,
    head: String,
    problem: Option<ChainProblem>,
}

#[derive(Deserialize)]
struct ChainProblem {
    entry: i64,
    what: String,
}

fn print_verification(document: &Value, as_json: bool) -> Result<(), Failure> {
    let verdict = Verification::deserialize(document)
        .map_err(|error| Failure::could_not("the daemon's response", error))?;
    if as_json {
        output::json(document)?;
    } else if verdict.valid {
        let entries = count(verdict.entries, "entry");
        output::line(&format!("the audit log is intact: {entries}"))?;
        output::line(&format!("head {}", verdict.head))?;
    }
    if verdict.valid {
        return Ok(());
    }
    if let Some(ChainProblem { entry, what }) = verdict.problem {
        let paint = Paint::stderr();
        output::report_line(&format!(
            "{} entry {entry}: {what}",
            paint.bad("the audit log was changed:")
        ));
        output::report_line(&format!("intact up to entry {}", verdict.entries));
    }
    Err(Failure::NotPassed)
}
