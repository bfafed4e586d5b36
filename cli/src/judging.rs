//! Trying an agent: a run is asked for, followed, and told. `chaos`, `contract` and `ci` are this.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use squall_harness::run::{RunKind, RunRecord, RunState};

use crate::args::{Site, Trial};
use crate::baseline;
use crate::client::{Client, Following, segment};
use crate::daemon::signals::{Signals, Told};
use crate::failure::Failure;
use crate::host::Host;
use crate::profile_file;
use crate::render::paint::Paint;
use crate::render::progress::Progress;
use crate::render::{output, run as render};
use crate::reports::Reports;
use crate::suite::LocalSuite;

/// A run that a command line wants.
pub(crate) struct Wish<'w> {
    /// What it tries.
    pub(crate) kind: RunKind,
    /// The profile in the place of the suite's chaos: its name or its file.
    profile: Option<&'w str>,
    trial: &'w Trial,
}

impl<'w> Wish<'w> {
    /// With the suite's own chaos.
    pub(crate) fn of(kind: RunKind, trial: &'w Trial) -> Self {
        Self {
            kind,
            profile: None,
            trial,
        }
    }

    /// With another profile, if one is named.
    pub(crate) fn under(self, profile: Option<&'w str>) -> Self {
        Self { profile, ..self }
    }

    fn asked(&self) -> Result<Asked<'w>, Failure> {
        let mut options = options(self)?;
        let mut variables = BTreeMap::new();
        if let Some(file) = self.profile.and_then(profile_file::named) {
            let profile = profile_file::read(file)?;
            options.insert("profile".to_owned(), profile.named_document());
            variables = profile.variables;
        }
        Ok(Asked {
            kind: self.kind,
            options,
            variables,
            site: &self.trial.site,
        })
    }
}

/// What a daemon is asked for, the suite apart.
pub(crate) struct Asked<'a> {
    /// What the run tries.
    pub(crate) kind: RunKind,
    /// Its `options`.
    pub(crate) options: Map<String, Value>,
    /// What variables in them stand for.
    pub(crate) variables: BTreeMap<String, String>,
    /// Which daemon.
    pub(crate) site: &'a Site,
}

/// A run that is over.
pub(crate) struct Judged {
    /// What came of it.
    pub(crate) run: RunRecord,
    /// The same as the daemon wrote it.
    pub(crate) document: Value,
    /// Where it can be asked for more.
    pub(crate) host: Host,
    /// Whether somebody ended it.
    pub(crate) interrupted: bool,
}

/// Has a run made, writes its reports, and tells what came of it.
pub(crate) async fn run(wish: Wish<'_>) -> Result<(), Failure> {
    let trial = wish.trial;
    let suite = LocalSuite::read(&trial.suite.file)?;
    let reports = Reports::of(wish.kind, trial, &suite.suite.output)?;
    let Judged {
        run,
        document,
        host,
        interrupted,
    } = Box::pin(judge(&wish.asked()?, &suite)).await?;
    if interrupted {
        host.close().await;
        return ended_before_its_end(&run, trial.json);
    }
    let written = reports.write(host.client(), &run).await;
    host.close().await;
    if trial.json {
        output::json(&document)?;
    } else {
        output::print(&render::whole(&run, Paint::stdout()))?;
    }
    let told = told_of(&written);
    if trial.json {
        output::tell(&format!("{told}{}", render::closing(&run)));
    } else {
        output::print(&format!("\n{told}{}\n", render::closing(&run)))?;
    }
    verdict(&run).and(unwritten(written))
}

/// Says how far a run came that somebody ended, and nothing more.
fn ended_before_its_end(run: &RunRecord, as_json: bool) -> Result<(), Failure> {
    let closing = render::closing(run);
    if as_json {
        output::tell_line(&closing);
    } else {
        output::line(&closing)?;
    }
    Err(Failure::Interrupted)
}

/// A report that could not be written is a failure, unless the daemon has none to give: an older one.
fn unwritten(written: Result<Vec<PathBuf>, Failure>) -> Result<(), Failure> {
    match written {
        Err(Failure::Refused(problem)) if problem.status == 404 => {
            output::tell_line("squall: the daemon gives no reports; none was written");
            Ok(())
        }
        written => written.map(drop),
    }
}

/// Where reports are, a line each.
fn told_of(written: &Result<Vec<PathBuf>, Failure>) -> String {
    let files = written.iter().flatten();
    let lines: Vec<_> = files
        .map(|file| format!("report: {}\n", file.display()))
        .collect();
    lines.concat()
}

/// Has a run made, and prints its score alone.
pub(crate) async fn score(wish: Wish<'_>) -> Result<(), Failure> {
    let suite = LocalSuite::read(&wish.trial.suite.file)?;
    let Judged {
        run,
        host,
        interrupted,
        ..
    } = Box::pin(judge(&wish.asked()?, &suite)).await?;
    host.close().await;
    if interrupted {
        return ended_before_its_end(&run, true);
    }
    if wish.trial.json {
        let document = json!({ "run": run.id, "state": run.state, "score": run.score });
        output::json(&document)?;
    } else if run.score.is_some() {
        output::line(&render::score(run.score))?;
    }
    output::tell_line(&render::closing(&run));
    verdict(&run)
}

/// Has a run made. Ctrl-C ends its chaos first, then the command.
pub(crate) async fn judge(asked: &Asked<'_>, suite: &LocalSuite) -> Result<Judged, Failure> {
    let mut signals = Signals::listen()?;
    let notes: Vec<_> = suite.suite.notes.iter().map(ToString::to_string).collect();
    output::tell_findings(&[], &notes);
    let opened = tokio::select! {
        opened = Host::open(asked.site, Some(&suite.suite)) => opened,
        () = told_to_stop(&mut signals) => Err(Failure::Interrupted),
    };
    let host = opened?;
    match made(&host, asked, suite, &mut signals).await {
        Ok((document, interrupted)) => {
            let run = serde_json::from_value(document.clone())
                .map_err(|error| Failure::could_not("a run of the daemon", error))?;
            Ok(Judged {
                run,
                document,
                host,
                interrupted,
            })
        }
        Err(failure) => {
            host.close().await;
            Err(failure)
        }
    }
}

/// Asks for the run and follows it to its end; also whether somebody ended it.
async fn made(
    host: &Host,
    asked: &Asked<'_>,
    suite: &LocalSuite,
    signals: &mut Signals,
) -> Result<(Value, bool), Failure> {
    let client = host.client();
    let taken: Value = client
        .post("/v1/runs", &order(asked, suite))
        .await
        .map_err(|failure| in_suite(failure, suite))?;
    let id = taken["id"].as_str().unwrap_or_default();
    let on_terminal = std::io::stderr().is_terminal();
    let mut progress = Progress::new(on_terminal, Paint::stderr());
    let followed = follow(host, id, signals, &mut progress).await;
    progress.end();
    let interrupted = followed?;
    Ok((client.get(&path(id)).await?, interrupted))
}

/// Follows a run to its end; an interruption cancels it, a second one does not wait for that. Whether there was one.
async fn follow(
    host: &Host,
    id: &str,
    signals: &mut Signals,
    progress: &mut Progress,
) -> Result<bool, Failure> {
    let mut following = Following::run(host.client(), id).await?;
    let mut interrupted = false;
    loop {
        tokio::select! {
            event = following.next() => {
                let event = event?;
                progress.tell(&event);
                if event.name == "done" {
                    return Ok(interrupted);
                }
                if progress.waits_for_a_yes() && host.is_private() {
                    cancel(host.client(), id).await?;
                    return Err(unapproved());
                }
            }
            () = told_to_stop(signals) => {
                if interrupted {
                    return Err(Failure::Interrupted);
                }
                interrupted = true;
                progress.say("ending the run, its chaos first; once more ends at once");
                cancel(host.client(), id).await?;
            }
        }
    }
}

/// A private daemon goes with the command: nobody else can say yes to it.
fn unapproved() -> Failure {
    Failure::CouldNotRun(
        "the configuration's `approval` wants somebody's yes to this run, which a private daemon cannot \
         wait for; ask a running one with `--server`, then say yes with `squall runs approve`"
            .to_owned(),
    )
}

/// Ends a run. One that is over in this moment is as good.
async fn cancel(client: &Client, id: &str) -> Result<(), Failure> {
    let asked: Result<Value, _> = client
        .post(&format!("{}/cancel", path(id)), &json!({}))
        .await;
    match asked {
        Err(Failure::Refused(problem)) if problem.status == 409 => Ok(()),
        asked => asked.map(drop),
    }
}

async fn told_to_stop(signals: &mut Signals) {
    while signals.next().await == Told::Reload {}
}

fn path(id: &str) -> String {
    format!("/v1/runs/{}", segment(id))
}

/// What the command line says of how the suite is tried.
fn options(wish: &Wish<'_>) -> Result<Map<String, Value>, Failure> {
    let trial = wish.trial;
    let baseline = trial
        .baseline
        .as_deref()
        .map(baseline::option)
        .transpose()?;
    let mut options = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(name.to_owned(), value);
        }
    };
    add("seed", trial.seed.map(Value::from));
    add("concurrency", trial.concurrency.map(Value::from));
    add("strict", trial.strict.then_some(Value::Bool(true)));
    add("profile", wish.profile.map(Value::from));
    add("min_score", trial.min_score.map(Value::from));
    add("repeat", trial.repeat.map(Value::from));
    add("baseline", baseline);
    add("fail_on", trial.fail_on.map(|what| what.as_str().into()));
    Ok(options)
}

/// What is posted.
fn order(asked: &Asked<'_>, suite: &LocalSuite) -> Value {
    let mut order = json!({
        "kind": asked.kind.as_str(),
        "suite": suite.document,
        "options": asked.options,
    });
    let mut secrets = suite.secrets.clone();
    secrets.extend(asked.variables.clone());
    if !secrets.is_empty() {
        order["secrets"] = json!(secrets);
    }
    order
}

/// What the daemon refuses of the suite is said with its place in the file.
fn in_suite(failure: Failure, suite: &LocalSuite) -> Failure {
    let Failure::Refused(problem) = &failure else {
        return failure;
    };
    let place = |pointer: &str| match pointer.strip_prefix("/suite") {
        Some(below) => Some(suite.place(below)),
        None => option(pointer),
    };
    match problem.placed(place) {
        Some(lines) => Failure::Usage(lines),
        None => failure,
    }
}

/// The option that a pointer into the order came from.
fn option(pointer: &str) -> Option<String> {
    let name = pointer.strip_prefix("/options/")?;
    Some(format!("--{}", name.replace('_', "-")))
}

/// What a run that is over makes of the command.
pub(crate) fn verdict(run: &RunRecord) -> Result<(), Failure> {
    match run.state {
        RunState::Passed => Ok(()),
        RunState::Failed => Err(Failure::NotPassed),
        RunState::Inconclusive => Err(Failure::Inconclusive),
        RunState::Queued
        | RunState::AwaitingApproval
        | RunState::Running
        | RunState::Errored
        | RunState::Cancelled => {
            let why = run.error.as_deref().or(run.reason.as_deref());
            let state = run.state.as_str().replace('_', " ");
            let what = format!("the run is {state}");
            Err(match why {
                Some(why) => Failure::could_not(what, why),
                None => Failure::CouldNotRun(what),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(state: RunState) -> RunRecord {
        let document = json!({
            "id": "0194", "kind": "ci", "name": "x", "state": state, "score": 80.0, "passed": null,
            "coverage": CoverageRecord::default(), "scores": ScoresRecord::default(),
            "seed": 1, "created_at": "", "started_at": null, "finished_at": null, "error": null,
            "reason": null, "daemon": "", "documents": [],
        });
        serde_json::from_value(document).expect("a run")
    }

    use squall_harness::run::{CoverageRecord, ScoresRecord};

    #[test]
    fn g50_every_end_of_a_run_has_its_exit_code() {
        for (state, expected) in [
            (RunState::Passed, None),
            (RunState::Failed, Some(1)),
            (RunState::Inconclusive, Some(4)),
            (RunState::Errored, Some(3)),
            (RunState::Cancelled, Some(3)),
        ] {
            let code = verdict(&over(state)).err();
            let code = code.map(|failure| failure.exit_code());
            let expected = expected.map(std::process::ExitCode::from);
            assert_eq!(code, expected, "{state:?}");
        }
    }

    #[test]
    fn options_are_called_as_on_the_command_line() {
        assert_eq!(option("/options/min_score").as_deref(), Some("--min-score"));
        assert_eq!(option("/kind"), None);
    }
}
