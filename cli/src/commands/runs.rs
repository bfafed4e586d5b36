//! `squall runs`: lists, shows, compares, follows, approves and cancels runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use squall_harness::run::{RunRecord, RunState};
use squall_harness::scores;

use crate::args::{RemoteArgs, ReportArgs, RunsCommand};
use crate::client::{Client, Following, RUNS, ResponsePage, ServerEvent, path};
use crate::failure::Failure;
use crate::host;
use crate::judging;
use crate::render::paint::Paint;
use crate::render::table::Table;
use crate::render::{output, run as render};
use crate::text;

/// Most runs whose suites are named in an error.
const MOST_LISTED: usize = 200;

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
        RunsCommand::Compare {
            before,
            after,
            fail_on,
            read,
        } => {
            let both = async |client: &Client| {
                Ok([find(client, &before).await?, find(client, &after).await?])
            };
            let [before, after] = host::read(&read.store, None, both).await?;
            compare(before, after, fail_on.is_some(), read.json)
        }
        RunsCommand::Trend { suite, last, read } => {
            let (limit, name) = (Some(last.to_string()), Some(suite.clone()));
            let path = path(&[RUNS], &[("limit", limit), ("suite", name)]);
            let runs = async |client: &Client| {
                let page: ResponsePage<Value> = client.get(&path).await?;
                if page.items.is_empty() {
                    return Err(unknown_suite(client, &suite).await?);
                }
                Ok(page)
            };
            trend(host::read(&read.store, None, runs).await?, read.json)
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
    output::print(&table(&records(page.items)?))
}

fn records(items: Vec<Value>) -> Result<Vec<RunRecord>, Failure> {
    serde_json::from_value(Value::Array(items))
        .map_err(|error| Failure::could_not("a run of the daemon", error))
}

fn table(runs: &[RunRecord]) -> String {
    let paint = Paint::stdout();
    let mut table = Table::new(["RUN", "KIND", "SUITE", "STATE", "SCORE", "REQUESTED"]);
    for run in runs {
        table.row([
            run.id.clone(),
            run.kind.as_str().to_owned(),
            paint.name(&run.name),
            render::state(run.state, paint),
            render::score(run.score),
            run.created_at.clone(),
        ]);
    }
    table.render()
}

/// A finished run: by its id, the newest one of a suite, or the run in a JSON report.
async fn find(client: &Client, argument: &str) -> Result<RunRecord, Failure> {
    if let Some(file) = text::as_file(argument) {
        return Ok(judging::read_report(file)?.run);
    }
    let by_id = client.get(&path(&[RUNS, argument], &[])).await;
    let run: RunRecord = match by_id {
        Err(Failure::Refused(problem)) if matches!(problem.status, 400 | 404) => {
            let of_suite = path(&[RUNS], &[("suite", Some(argument.to_owned()))]);
            let page: ResponsePage<RunRecord> = client.get(&of_suite).await?;
            let newest = page.items.into_iter().find(|run| run.state.is_over());
            let newest = newest.ok_or_else(|| {
                Failure::Usage(format!(
                    "`{argument}` is neither the id of a run nor a suite with a finished run; `squall runs list` lists \
                     what exists"
                ))
            })?;
            client.get(&path(&[RUNS, &newest.id], &[])).await?
        }
        found => found?,
    };
    if run.state.is_over() {
        return Ok(run);
    }
    let state = run.state.as_str().replace('_', " ");
    Err(Failure::Usage(format!(
        "run {argument} is {state}; there is nothing to compare yet"
    )))
}

fn compare(
    before: RunRecord,
    after: RunRecord,
    fails_if_worse: bool,
    as_json: bool,
) -> Result<(), Failure> {
    if (before.kind, &before.name) != (after.kind, &after.name) {
        let of = |run: &RunRecord| format!("a {} run of suite `{}`", run.kind.as_str(), run.name);
        output::report_line(&format!(
            "{} is compared with {}: cells are the same if their invariants and scenarios have the same names",
            of(&after),
            of(&before)
        ));
    }
    let (comparison, score) = (scores::of_runs(&before, &after), after.score);
    if as_json {
        output::json(&comparison)?;
    } else {
        let lines = render::compared(&comparison, score, Paint::stdout());
        let runs = table(&[before, after]);
        output::print(&format!("{runs}\n{}\n", lines.join("\n")))?;
    }
    if fails_if_worse && comparison.is_regression(score) {
        return Err(Failure::NotPassed);
    }
    Ok(())
}

/// The error for a suite without runs, with the names of those that have some.
async fn unknown_suite(client: &Client, suite: &str) -> Result<Failure, Failure> {
    let all = path(&[RUNS], &[("limit", Some(MOST_LISTED.to_string()))]);
    let page: ResponsePage<RunRecord> = client.get(&all).await?;
    let names = page.items.iter().map(|run| format!("`{}`", run.name));
    let names: Vec<_> = names.collect::<BTreeSet<_>>().into_iter().collect();
    let known = match &names[..] {
        [] => "there are no runs".to_owned(),
        names => format!("there are runs of {}", names.join(", ")),
    };
    Ok(Failure::Usage(format!(
        "no run of a suite `{suite}`; {known}"
    )))
}

/// Runs of a suite, newest first in the page.
fn trend(page: ResponsePage<Value>, as_json: bool) -> Result<(), Failure> {
    let mut items = page.items;
    items.reverse();
    if as_json {
        return output::json(&json!({ "items": items }));
    }
    let paint = Paint::stdout();
    let mut table = Table::new([
        "RUN",
        "REQUESTED",
        "STATE",
        "SCORE",
        "",
        "CHAOS",
        "CONTRACT",
        "MUTATION",
        "REPLAY",
        "EXERCISED",
    ]);
    for run in records(items)? {
        let (scores, coverage) = (&run.scores, &run.coverage);
        let [chaos, contract, mutation, replay] = [
            scores.chaos_resilience,
            scores.contract_compliance,
            scores.mutation_robustness,
            scores.replay_regression,
        ]
        .map(render::score);
        table.row([
            run.id,
            run.created_at,
            render::state(run.state, paint),
            render::score(run.score),
            bar(run.score),
            chaos,
            contract,
            mutation,
            replay,
            format!("{} of {}", coverage.exercised, coverage.chaos_cells),
        ]);
    }
    output::print(&table.render())
}

/// A score as a bar of ten characters.
fn bar(score: Option<f64>) -> String {
    let full = |score: f64| {
        (0..10)
            .filter(|tenth| f64::from(*tenth) * 10.0 + 5.0 <= score)
            .count()
    };
    score.map_or_else(String::new, |score| {
        let full = full(score);
        format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
    })
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
    fn a_score_is_a_bar() {
        for (score, full) in [
            (None, None),
            (Some(0.0), Some(0)),
            (Some(54.9), Some(5)),
            (Some(100.0), Some(10)),
        ] {
            let found = (!bar(score).is_empty()).then(|| bar(score).matches('█').count());
            assert_eq!(found, full, "{score:?}");
        }
    }

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
