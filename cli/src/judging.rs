//! Testing an agent: `chaos`, `contract`, `ci` and `verify` request a run, follow it, and print its result.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use squall_control_api::LONGEST_RUN;
use squall_harness::count::count;
use squall_harness::report::Report;
use squall_harness::run::{EvidenceRecord, RunKind, RunRecord, RunState};

use crate::args::{DEFAULT_SUITE, SiteArgs, TrialArgs};
use crate::client::{Client, Following, RUNS, path};
use crate::daemon::signals::{Interruption, Signals};
use crate::failure::Failure;
use crate::host::Host;
use crate::profile_file;
use crate::render::paint::Paint;
use crate::render::progress::RunProgress;
use crate::render::{output, run as render};
use crate::reports::Reports;
use crate::sessions;
use crate::sources;
use crate::suite::LocalSuite;
use crate::text;

/// A request for a run, without the suite.
pub(crate) struct RunRequest<'a> {
    /// The kind of run.
    pub(crate) kind: RunKind,
    /// Its `options`.
    pub(crate) options: Map<String, Value>,
    /// The values of variables in them.
    pub(crate) variables: BTreeMap<String, String>,
    /// The daemon.
    pub(crate) site: &'a SiteArgs,
}

impl<'a> RunRequest<'a> {
    /// From the command line; `profile` replaces the suite's chaos.
    fn new(kind: RunKind, trial: &'a TrialArgs, profile: Option<&str>) -> Result<Self, Failure> {
        let mut variables = BTreeMap::new();
        let profile = match (profile, profile.and_then(text::as_file)) {
            (_, Some(file)) => {
                let profile = profile_file::read(file)?;
                let document = profile.named_document();
                variables = profile.variables;
                Some(document)
            }
            (name, None) => name.map(Value::from),
        };
        let baseline = trial.baseline.as_deref().map(baseline).transpose()?;
        let file =
            Some(trial.suite.file.as_path()).filter(|file| *file != Path::new(DEFAULT_SUITE));
        let options = [
            ("suite_file", file.and_then(Path::to_str).map(Value::from)),
            ("seed", trial.seed.map(Value::from)),
            ("concurrency", trial.concurrency.map(Value::from)),
            ("strict", trial.strict.then_some(Value::Bool(true))),
            ("profile", profile),
            ("min_score", trial.min_score.map(Value::from)),
            ("repeat", trial.repeat.map(Value::from)),
            ("baseline", baseline),
            ("shrink", trial.shrink.then_some(Value::Bool(true))),
            ("fail_on", trial.fail_on.as_deref().map(Value::from)),
        ];
        let given = options.into_iter();
        Ok(Self {
            kind,
            options: given
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect(),
            variables,
            site: &trial.site,
        })
    }
}

/// A finished run.
pub(crate) struct FinishedRun {
    /// The run.
    pub(crate) run: RunRecord,
    /// The same as JSON, as the daemon returned it.
    pub(crate) document: Value,
    /// The daemon, still running.
    pub(crate) host: Host,
    /// Whether the user cancelled it.
    pub(crate) interrupted: bool,
}

/// Executes a run, writes its reports, and prints its result.
pub(crate) async fn run(
    kind: RunKind,
    trial: &TrialArgs,
    profile: Option<&str>,
) -> Result<(), Failure> {
    let suite = LocalSuite::read(&trial.suite.file)?;
    let nothing = |_: &RunRecord| Ok(());
    run_suite(kind, trial, profile, suite, Map::new(), nothing).await
}

/// The same for a suite that was read, with more options. Its sources are fetched first. `ended` is called before the result is printed.
pub(crate) async fn run_suite(
    kind: RunKind,
    trial: &TrialArgs,
    profile: Option<&str>,
    mut suite: LocalSuite,
    options: Map<String, Value>,
    ended: impl FnOnce(&RunRecord) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let reports = Reports::of(kind, trial, &suite.suite.output)?;
    let mut request = RunRequest::new(kind, trial, profile)?;
    request.options.extend(options);
    let config = trial.site.config.as_deref();
    let warnings = Box::pin(sources::fetch(kind, config, &mut suite)).await?;
    if !warnings.is_empty() {
        request
            .options
            .insert("warnings".to_owned(), json!(warnings));
    }
    let finished = Box::pin(finish(&request, &suite)).await?;
    let (run, closing) = (&finished.run, render::closing(&finished.run));
    if finished.interrupted {
        finished.host.close().await;
        print(trial, run, &finished.document, &closing)?;
        return Err(Failure::Interrupted);
    }
    let mut written = reports.write(finished.host.client(), run).await;
    let mut replays = String::new();
    if run.kind == RunKind::Explore && written.is_ok() {
        // A folder for each run, so that those of other runs are not mistaken for its own.
        let directory = reports.directory().join("sessions").join(&run.id);
        match exported(finished.host.client(), run, &directory, &trial.suite.file).await {
            Ok(line) => replays = line,
            Err(failure) => written = Err(failure),
        }
    }
    finished.host.close().await;
    let ended = ended(run);
    let files = written.iter().flatten();
    let files: Vec<_> = files
        .map(|file| format!("report: {}\n", file.display()))
        .collect();
    let files = files.concat() + &replays;
    print(trial, run, &finished.document, &format!("{files}{closing}"))?;
    verdict(run)?;
    ended?;
    written.map(drop)
}

/// Prints a run, also as `document`, and its last lines; as JSON, the last lines are on stderr.
fn print(
    trial: &TrialArgs,
    run: &RunRecord,
    document: &Value,
    closing: &str,
) -> Result<(), Failure> {
    if trial.json {
        output::json(document)?;
        output::report(closing);
        return Ok(());
    }
    output::print(&render::whole(run, Paint::stdout()))?;
    output::print(&format!("\n{closing}\n"))
}

/// Writes the failed invocations of a run as replay sessions; returns a line that reports it, if there are any.
async fn exported(
    client: &Client,
    run: &RunRecord,
    directory: &Path,
    suite: &Path,
) -> Result<String, Failure> {
    let failed = sessions::list(client, &run.id).await?;
    let files = sessions::write(&failed, directory)?;
    let (directory, suite) = (directory.display(), suite.display());
    let line = || {
        let files = count(files.len(), "replay session");
        format!(
            "{files} in {directory}: `squall replay run {directory} -c {suite} --expect-failure` replays them\n"
        )
    };
    Ok((!files.is_empty()).then(line).unwrap_or_default())
}

/// Executes a contract run, and prints only its score.
pub(crate) async fn score(trial: &TrialArgs) -> Result<(), Failure> {
    let suite = LocalSuite::read(&trial.suite.file)?;
    let request = RunRequest::new(RunKind::Contract, trial, None)?;
    let finished = Box::pin(finish(&request, &suite)).await?;
    finished.host.close().await;
    let run = &finished.run;
    output::report_line(&render::closing(run));
    if finished.interrupted {
        return Err(Failure::Interrupted);
    }
    if trial.json {
        output::json(&json!({ "run": run.id, "state": run.state, "score": run.score }))?;
    } else if run.score.is_some() {
        output::line(&render::score(run.score))?;
    }
    verdict(run)
}

/// Executes a run. Ctrl-C cancels it, its chaos first.
pub(crate) async fn finish(
    request: &RunRequest<'_>,
    suite: &LocalSuite,
) -> Result<FinishedRun, Failure> {
    let mut signals = Signals::listen()?;
    let notes: Vec<_> = suite.suite.notes.iter().map(ToString::to_string).collect();
    output::report_findings(&[], &notes);
    let host = tokio::select! {
        opened = Host::for_run(request.site, &suite.suite) => opened?,
        () = stop(&mut signals) => return Err(Failure::Interrupted),
    };
    let ended = async {
        let (document, interrupted) = request_run(&host, request, suite, &mut signals).await?;
        let run: RunRecord = serde_json::from_value(document.clone())
            .map_err(|error| Failure::could_not("a run of the daemon", error))?;
        Ok((run, document, interrupted))
    };
    match ended.await {
        Ok((run, document, interrupted)) => Ok(FinishedRun {
            run,
            document,
            host,
            interrupted,
        }),
        Err(failure) => {
            host.close().await;
            Err(failure)
        }
    }
}

/// Requests the run and follows it to its end; returns whether the user cancelled it.
async fn request_run(
    host: &Host,
    request: &RunRequest<'_>,
    suite: &LocalSuite,
    signals: &mut Signals,
) -> Result<(Value, bool), Failure> {
    let client = host.client();
    fits(suite)?;
    let accepted: Value = client
        .post(RUNS, &body(request, suite))
        .await
        .map_err(|failure| in_suite(failure, suite))?;
    let id = accepted["id"].as_str().unwrap_or_default();
    let mut progress = RunProgress::new(Paint::stderr());
    let followed = follow(host, id, signals, &mut progress).await;
    progress.end();
    let interrupted = followed?;
    Ok((client.get(&path(&[RUNS, id], &[])).await?, interrupted))
}

/// An error that names the longest session if all are longer than a run may be.
fn fits(suite: &LocalSuite) -> Result<(), Failure> {
    let sessions = suite.document["replays"]["sessions"].as_array();
    let sizes = sessions
        .into_iter()
        .flatten()
        .map(|one| one.to_string().len());
    let sizes: Vec<_> = sizes.enumerate().collect();
    let total: usize = sizes.iter().map(|(_, size)| size).sum();
    match sizes.iter().max_by_key(|(_, size)| *size) {
        Some((at, size)) if total > LONGEST_RUN => {
            let place = suite.place(&format!("/replays/sessions/{at}"));
            Err(Failure::Usage(format!(
                "{place}: this session has {size} bytes, and all sessions of the run {total}; they may have \
                 {LONGEST_RUN} together: replay them in several runs, or shorten them"
            )))
        }
        _ => Ok(()),
    }
}

/// Follows a run to its end; Ctrl-C cancels it, a second one exits at once. Returns whether there was one.
async fn follow(
    host: &Host,
    id: &str,
    signals: &mut Signals,
    progress: &mut RunProgress,
) -> Result<bool, Failure> {
    let mut following = Following::run(host.client(), id).await?;
    let mut interrupted = false;
    loop {
        tokio::select! {
            event = following.next() => {
                let event = event?;
                progress.show(&event.name, &event.data);
                if event.name == "done" {
                    return Ok(interrupted);
                }
                if progress.awaits_approval() && host.is_private() {
                    cancel(host.client(), id).await?;
                    return Err(Failure::CouldNotRun(
                        "the configuration's `approval` requires approval for this run, and a private daemon cannot \
                         wait for it; start the run in a running daemon with `--server`, then use `squall runs approve`"
                            .to_owned(),
                    ));
                }
            }
            () = stop(signals) => {
                if interrupted {
                    return Err(Failure::Interrupted);
                }
                interrupted = true;
                progress.print("cancelling the run, its chaos first; Ctrl-C again exits at once");
                cancel(host.client(), id).await?;
            }
        }
    }
}

/// Cancels a run; one that has just finished is left as it is.
async fn cancel(client: &Client, id: &str) -> Result<(), Failure> {
    let path = path(&[RUNS, id, "cancel"], &[]);
    match client.post::<Value>(&path, &json!({})).await {
        Err(Failure::Refused(problem)) if problem.status == 409 => Ok(()),
        cancelled => cancelled.map(drop),
    }
}

async fn stop(signals: &mut Signals) {
    while signals.next().await == Interruption::Reload {}
}

/// `--baseline`: a run's id, or the run in a JSON report. Of the evidence, only the states are compared; the rest
/// would make the request too large.
fn baseline(argument: &str) -> Result<Value, Failure> {
    let Some(file) = text::as_file(argument) else {
        return Ok(argument.into());
    };
    let mut run = read_report(file)?.run;
    for cell in &mut run.cells {
        for evidence in &mut cell.evidence {
            *evidence = EvidenceRecord {
                state: evidence.state,
                ..EvidenceRecord::default()
            };
        }
        cell.reason = None;
    }
    run.warnings.clear();
    serde_json::to_value(run).map_err(|error| Failure::could_not(file.display(), error))
}

/// Reads a report in JSON from a file.
pub(crate) fn read_report(file: &Path) -> Result<Report, Failure> {
    let text = text::read(file).map_err(|error| {
        Failure::Usage(format!(
            "{error}; pass a report that `squall report RUN --format json` wrote, or the id of a run (`squall runs list`)"
        ))
    })?;
    Report::read(&text).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

/// The body of `POST /v1/runs`.
fn body(request: &RunRequest<'_>, suite: &LocalSuite) -> Value {
    let mut body = json!({
        "kind": request.kind.as_str(),
        "suite": suite.document,
        "options": request.options,
    });
    let mut secrets = suite.secrets.clone();
    secrets.extend(request.variables.clone());
    // Every daemon of a spread run has values of its own.
    if !secrets.is_empty() && !request.options.contains_key("spread") {
        body["secrets"] = json!(secrets);
    }
    body
}

/// Errors of the daemon about the suite, with their places in the file.
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

/// The option that a pointer into the body belongs to.
fn option(pointer: &str) -> Option<String> {
    let name = pointer.strip_prefix("/options/")?;
    Some(format!("--{}", name.replace('_', "-")))
}

/// The result of the command for a finished run.
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
            let reason = run.error.as_deref().or(run.reason.as_deref());
            let state = format!("the run is {}", run.state.as_str().replace('_', " "));
            Err(match reason {
                Some(reason) => Failure::could_not(state, reason),
                None => Failure::CouldNotRun(state),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use squall_harness::run::{CoverageRecord, ScoresRecord};

    use super::*;

    fn run_in(state: RunState) -> RunRecord {
        let document = json!({
            "id": "0194", "kind": "ci", "name": "x", "state": state, "score": 80.0, "passed": null,
            "coverage": CoverageRecord::default(), "scores": ScoresRecord::default(),
            "seed": 1, "created_at": "", "started_at": null, "finished_at": null, "error": null,
            "reason": null, "daemon": "", "documents": [],
        });
        serde_json::from_value(document).expect("a run")
    }

    #[test]
    fn g50_every_end_of_a_run_has_its_exit_code() {
        for (state, expected) in [
            (RunState::Passed, None),
            (RunState::Failed, Some(1)),
            (RunState::Inconclusive, Some(4)),
            (RunState::Errored, Some(3)),
            (RunState::Cancelled, Some(3)),
        ] {
            let code = verdict(&run_in(state)).err();
            let code = code.map(|failure| failure.exit_code());
            let expected = expected.map(std::process::ExitCode::from);
            assert_eq!(code, expected, "{state:?}");
        }
    }

    #[test]
    fn a_baseline_is_an_id_or_a_file_that_must_exist() {
        let id = "0193a1b2c3d4000000010042";
        assert_eq!(baseline(id).expect("an id"), id);
        for missing in ["nowhere.json", "reports/nowhere"] {
            let Err(Failure::Usage(error)) = baseline(missing) else {
                panic!("{missing}");
            };
            assert!(error.starts_with(missing), "{error}");
        }
    }
}
