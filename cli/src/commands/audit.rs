//! `squall audit`: lists and verifies the audit log.

use serde::Deserialize;
use serde_json::Value;

use super::print_list;
use crate::args::{AuditCommand, RemoteArgs};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;

const AUDIT: &str = "/v1/audit";

pub(super) async fn run(action: AuditCommand) -> Result<(), Failure> {
    match action {
        AuditCommand::Verify { head, remote } => verify(head.as_deref(), &remote).await,
        AuditCommand::List {
            limit,
            actor,
            remote,
        } => list(limit, actor.as_deref(), &remote).await,
    }
}

/// The response of `GET /v1/audit/verify`.
#[derive(Deserialize)]
struct Verification {
    valid: bool,
    entries: i64,
    head: String,
    problem: Option<ChainProblem>,
}

#[derive(Deserialize)]
struct ChainProblem {
    entry: i64,
    what: String,
}

async fn verify(head: Option<&str>, remote: &RemoteArgs) -> Result<(), Failure> {
    let mut path = format!("{AUDIT}/verify");
    if let Some(head) = head {
        path = format!("{path}?head={}", segment(head));
    }
    let document: Value = Client::new(remote)?.get(&path).await?;
    let read = serde_json::from_value(document.clone());
    let verdict: Verification =
        read.map_err(|error| Failure::could_not("the daemon's response", error))?;
    if remote.json {
        output::json(&document)?;
    } else if verdict.valid {
        output::line(&format!(
            "the audit log is intact: {} entries",
            verdict.entries
        ))?;
        output::line(&format!("head {}", verdict.head))?;
    }
    if verdict.valid {
        return Ok(());
    }
    if let Some(ChainProblem { entry, what }) = verdict.problem {
        let paint = Paint::stderr();
        output::tell_line(&format!(
            "{} entry {entry}: {what}",
            paint.bad("the audit log was changed:")
        ));
        output::tell_line(&format!("intact up to entry {}", verdict.entries));
    }
    Err(Failure::NotPassed)
}

async fn list(limit: u16, actor: Option<&str>, remote: &RemoteArgs) -> Result<(), Failure> {
    let mut path = format!("{AUDIT}?limit={limit}");
    if let Some(actor) = actor {
        path = format!("{path}&actor={}", segment(actor));
    }
    let page: Value = Client::new(remote)?.get(&path).await?;
    if remote.json {
        return output::json(&page);
    }
    let columns = [
        ("#", "number", ""),
        ("TIME", "at", ""),
        ("ACTOR", "actor", ""),
        ("SOURCE", "source", ""),
        ("ACTION", "action", ""),
        ("TARGET", "target", ""),
        ("OUTCOME", "outcome", ""),
        ("DETAIL", "detail", ""),
    ];
    let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
    print_list(items, false, &columns, "no entries")
}
