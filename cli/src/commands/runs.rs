//! `squall runs`: lists, shows, follows, approves and cancels runs.

use serde_json::{Value, json};
use squall_harness::run::{RunRecord, RunState};

use crate::args::{RemoteArgs, ReportArgs, RunsCommand};
use crate::client::{Client, Following, RUNS, ResponsePage, ServerEvent, path};
use crate::failure::Failure;
use crate::host;
use crate::judging;
use crate::render::paint::Paint;
use crate::render::table::Table;
use crate::render::{output, run as render};

pub(super) async fn run(action: RunsCommand) -> Result<(), Failure> {
    match action {
        RunsCommand::List { state, limit, read } => {
            let limit = Some(limit.to_string());
            let path = path(&[RUNS], &[("limit", limit), ("state", state.clone())]);
            let page = host::read(&read.store, None, async |client| client.get(&path).await);
            list(page.await?, state.as_deref(), read.json)
        }
        RunsCommand::Show { run, read } => {
            let path = path(&[RUNS, &run], &[]);
            let show = async |client: &Client| {
                if read.json {
                    return output::json(&client.get::<Value>(&path).await?);
                }
                output::print(&render::whole(&client.get(&path).await?, Paint::stdout()))
            };
            host::read(&read.store, Some(("run", &*run)), show).await
        }
        RunsCommand::Watch { run, read } => {
            let watch = async |client: &Client| watch(client, &run, read.json).await;
            let over = host::read(&read.store, Some(("run", &*run)), watch).await?;
            judging::verdict(&over)
        }
        RunsCommand::Export {
            run,
            format,
            output,
            store,
        } => {
            let report = ReportArgs {
                run,
                format,
                output,
                store,
            };
            super::report::run(report).await
        }
        RunsCommand::Approve { run, remote } => {
            let line = format!("run {run} is approved; it starts after the runs before it");
            post(&run, "approve", &line, &remote).await
        }
        RunsCommand::Cancel { run, remote } => {
            post(&run, "cancel", &format!("run {run} is cancelled"), &remote).await
        }
    }
}

fn list(page: ResponsePage<Value>, state: Option<&str>, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(&json!({ "items": page.items, "next_cursor": page.next_cursor }));
    }
    if page.items.is_empty() {
        return output::line(&match state {
            Some(state) => format!("no runs in state {state}"),
            None => "no runs; start one with `squall chaos`, `squall contract run` or `squall ci`"
                .to_owned(),
        });
    }
    let paint = Paint::stdout();
    let mut table = Table::new(["RUN", "KIND", "SUITE", "STATE", "SCORE", "REQUESTED"]);
    for item in page.items {
        let run: RunRecord = serde_json::from_value(item)
            .map_err(|error| Failure::could_not("a run of the daemon", error))?;
        table.row([
            run.id,
            run.kind.as_str().to_owned(),
            paint.name(&run.name),
            render::state(run.state, paint),
            render::score(run.score),
            run.created_at,
        ]);
    }
    output::print(&table.render())
}

async fn post(run: &str, what: &str, line: &str, remote: &RemoteArgs) -> Result<(), Failure> {
    let path = path(&[RUNS, run, what], &[]);
    let document: Value = Client::new(remote)?.post(&path, &json!({})).await?;
    output::result(remote.json, &document, line)
}

/// Follows a run to its end, however often the connection breaks.
async fn watch(client: &Client, run: &str, as_json: bool) -> Result<RunRecord, Failure> {
    let paint = Paint::stdout();
    let mut following = Following::run(client, run).await?;
    loop {
        let event = following.next().await?;
        print(&event, as_json, paint)?;
        if event.name == "done" {
            break;
        }
    }
    let over: RunRecord = client.get(&path(&[RUNS, run], &[])).await?;
    if !as_json {
        output::print(&format!("\n{}", render::whole(&over, paint)))?;
    }
    Ok(over)
}

fn print(event: &ServerEvent, as_json: bool, paint: Paint) -> Result<(), Failure> {
    let data: Value = serde_json::from_str(&event.data)
        .map_err(|error| Failure::could_not("an event of the daemon", error))?;
    if as_json {
        return output::json_line(&json!({ "event": event.name, "data": data }).to_string());
    }
    match line(&event.name, &data, paint) {
        Some(line) => output::line(&line),
        None => Ok(()),
    }
}

/// The line of an event, if it has one.
fn line(name: &str, data: &Value, paint: Paint) -> Option<String> {
    let text = |member: &str| data[member].as_str().unwrap_or_default();
    match name {
        "state" => {
            let state = RunState::parse(text("state"))?;
            Some(render::state(state, paint))
        }
        "progress" => Some(format!("invocation {} of {}", data["done"], data["of"])),
        "cell" => Some(format!(
            "{} under {}: {}",
            paint.name(text("invariant")),
            text("scenario"),
            text("state").replace('_', " ")
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn an_event_of_a_run_is_a_line() {
        for (name, data, expected) in [
            ("state", json!({ "state": "awaiting_approval" }), Some("awaiting approval")),
            ("progress", json!({ "done": 1, "of": 3 }), Some("invocation 1 of 3")),
            (
                "cell",
                json!({ "invariant": "completes", "scenario": "outage", "state": "not_exercised" }),
                Some("completes under outage: not exercised"),
            ),
            ("score", json!({ "score": 1 }), None),
            ("done", json!({}), None),
        ] {
            let found = line(name, &data, Paint::plain());
            assert_eq!(found.as_deref(), expected, "{name}");
        }
    }
}
