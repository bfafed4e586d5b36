//! `squall runs`: lists, shows, follows, approves and cancels runs.

use serde_json::{Value, json};
use squall_harness::run::{RunRecord, RunState};

use crate::args::{ReadArgs, RemoteArgs, RunsCommand};
use crate::client::{Client, Following, ResponsePage, ServerEvent, segment};
use crate::failure::Failure;
use crate::host::Host;
use crate::judging;
use crate::render::paint::Paint;
use crate::render::table::Table;
use crate::render::{output, run as render};

const RUNS: &str = "/v1/runs";

pub(super) async fn run(action: RunsCommand) -> Result<(), Failure> {
    match action {
        RunsCommand::List { state, limit, read } => {
            Box::pin(list(state.as_deref(), limit, &read)).await
        }
        RunsCommand::Show { run, read } => Box::pin(show(&run, &read)).await,
        RunsCommand::Watch { run, remote } => watch(&run, &remote).await,
        RunsCommand::Approve { run, remote } => {
            post(
                &run,
                "approve",
                "is approved; it starts after the runs before it",
                &remote,
            )
            .await
        }
        RunsCommand::Cancel { run, remote } => post(&run, "cancel", "is cancelled", &remote).await,
    }
}

fn path(run: &str) -> String {
    format!("{RUNS}/{}", segment(run))
}

async fn list(state: Option<&str>, limit: usize, args: &ReadArgs) -> Result<(), Failure> {
    let filter = state.map(|state| format!("&state={}", segment(state)));
    let path = format!("{RUNS}?limit={limit}{}", filter.unwrap_or_default());
    let host = Host::read(args).await?;
    let page: Result<ResponsePage<Value>, Failure> = host.client().get(&path).await;
    host.close().await;
    let page = page?;
    if args.json {
        return output::json(&json!({ "items": page.items, "next_cursor": page.next_cursor }));
    }
    if page.items.is_empty() {
        if let Some(state) = state {
            return output::line(&format!("no runs in state {state}"));
        }
        return output::line(
            "no runs; start one with `squall chaos`, `squall contract run` or `squall ci`",
        );
    }
    let paint = Paint::stdout();
    let mut table = Table::new(["RUN", "KIND", "SUITE", "STATE", "SCORE", "REQUESTED"]);
    for item in page.items {
        let run: RunRecord = read(item)?;
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

async fn show(run: &str, args: &ReadArgs) -> Result<(), Failure> {
    let host = Host::read(args).await?;
    let document: Result<Value, Failure> = host.client().get(&path(run)).await;
    let document = host.in_store(document, &format!("run `{run}`"), "squall runs list");
    host.close().await;
    let document = document?;
    if args.json {
        return output::json(&document);
    }
    output::print(&render::whole(&read(document)?, Paint::stdout()))
}

async fn post(run: &str, what: &str, done: &str, remote: &RemoteArgs) -> Result<(), Failure> {
    let path = format!("{}/{what}", path(run));
    let document: Value = Client::new(remote)?.post(&path, &json!({})).await?;
    output::done(remote.json, &document, &format!("run {run} {done}"))
}

/// Follows a run to its end, however often the connection breaks.
async fn watch(run: &str, remote: &RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    let paint = Paint::stdout();
    let mut following = Following::run(&client, run).await?;
    loop {
        let event = following.next().await?;
        print(&event, remote.json, paint)?;
        if event.name == "done" {
            return end(run, &client, remote.json, paint).await;
        }
    }
}

fn print(event: &ServerEvent, as_json: bool, paint: Paint) -> Result<(), Failure> {
    let data: Value = read_text(&event.data)?;
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

async fn end(run: &str, client: &Client, as_json: bool, paint: Paint) -> Result<(), Failure> {
    let over: RunRecord = client.get(&path(run)).await?;
    if !as_json {
        output::print(&format!("\n{}", render::whole(&over, paint)))?;
    }
    judging::verdict(&over)
}

fn read(document: Value) -> Result<RunRecord, Failure> {
    serde_json::from_value(document)
        .map_err(|error| Failure::could_not("a run of the daemon", error))
}

fn read_text(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::could_not("an event of the daemon", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_run_is_a_line() {
        for (name, data, expected) in [
            (
                "state",
                json!({ "state": "awaiting_approval" }),
                Some("awaiting approval"),
            ),
            (
                "progress",
                json!({ "done": 1, "of": 3 }),
                Some("invocation 1 of 3"),
            ),
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
