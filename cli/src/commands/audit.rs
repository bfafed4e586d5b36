//! `squall audit`: who changed what, and whether the log of it is whole.

use serde::Deserialize;
use serde_json::Value;

use crate::args::{Audit, Remote};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::table::Table;

const AUDIT: &str = "/v1/audit";

pub(super) async fn run(action: Audit) -> Result<(), Failure> {
    match action {
        Audit::Verify { head, remote } => verify(head.as_deref(), &remote).await,
        Audit::List {
            limit,
            actor,
            remote,
        } => list(limit, actor.as_deref(), &remote).await,
    }
}

/// What `GET /v1/audit/verify` says.
#[derive(Deserialize)]
struct Verdict {
    valid: bool,
    entries: i64,
    head: String,
    problem: Option<Wrong>,
}

#[derive(Deserialize)]
struct Wrong {
    entry: i64,
    what: String,
}

async fn verify(head: Option<&str>, remote: &Remote) -> Result<(), Failure> {
    let mut path = format!("{AUDIT}/verify");
    if let Some(head) = head {
        path = format!("{path}?head={}", segment(head));
    }
    let document: Value = Client::new(remote)?.get(&path).await?;
    let read = serde_json::from_value(document.clone());
    let verdict: Verdict = read.map_err(|error| Failure::could_not("the verdict", error))?;
    if remote.json {
        output::json(&document)?;
    } else if verdict.valid {
        output::line(&format!(
            "the audit log is whole: {} entries",
            verdict.entries
        ))?;
        output::line(&format!("head {}", verdict.head))?;
    }
    if verdict.valid {
        return Ok(());
    }
    if let Some(Wrong { entry, what }) = verdict.problem {
        let paint = Paint::stderr();
        output::tell_line(&format!(
            "{} entry {entry}: {what}",
            paint.bad("the audit log is not whole:")
        ));
        output::tell_line(&format!("sound up to entry {}", verdict.entries));
    }
    Err(Failure::NotPassed)
}

/// An entry of `GET /v1/audit`.
#[derive(Deserialize)]
struct Entry {
    number: i64,
    at: String,
    actor: String,
    source: String,
    action: String,
    target: String,
    outcome: String,
    detail: String,
}

async fn list(limit: u16, actor: Option<&str>, remote: &Remote) -> Result<(), Failure> {
    let mut path = format!("{AUDIT}?limit={limit}");
    if let Some(actor) = actor {
        path = format!("{path}&actor={}", segment(actor));
    }
    let page: Value = Client::new(remote)?.get(&path).await?;
    if remote.json {
        return output::json(&page);
    }
    let read = serde_json::from_value(page["items"].clone());
    let entries: Vec<Entry> = read.map_err(|error| Failure::could_not("the audit log", error))?;
    let paint = Paint::stdout();
    let mut table = Table::new(["#", "AT", "WHO", "FROM", "WHAT", "TO", "CAME OUT", ""]);
    for entry in entries {
        let outcome = match entry.outcome.as_str() {
            "done" => entry.outcome,
            other => paint.bad(other),
        };
        table.row([
            entry.number.to_string(),
            entry.at,
            paint.name(&entry.actor),
            entry.source,
            entry.action,
            entry.target,
            outcome,
            entry.detail,
        ]);
    }
    output::print(&table.render())
}
