//! The commands, one file each.

mod audit;
mod ca;
mod certificate;
mod completions;
mod contract;
mod demo;
mod env;
mod explain;
mod explore;
mod fleet;
mod import;
mod init;
mod load;
mod mutate;
mod off;
mod profile;
mod recordings;
mod replay;
mod report;
mod run;
mod runs;
mod schema;
mod serve;
mod status;
mod tail;
mod tape;
mod token;
mod verify;

use serde_json::{Value, json};
use squall_harness::run::RunKind;

use crate::args::Command;
use crate::daemon::signals::Signals;
use crate::failure::Failure;
use crate::judging;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::table::Table;

/// Runs a command.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Schema { of } => schema::run(of),
        Command::Completions { shell } => completions::script(shell),
        Command::Man { directory } => completions::man(&directory),
        Command::Ca { action } => ca::run(action),
        Command::Serve(serve) => on_runtime(serve::run(serve)),
        Command::Run(run) => on_runtime(run::run(run)),
        Command::Profile { action } => on_runtime(profile::run(action)),
        Command::Demo(demo) => on_runtime(demo::run(demo)),
        Command::DemoAgent(agent) => on_runtime(crate::demo::agent::run(agent)),
        Command::Env(env) => on_runtime(env::run(env)),
        Command::Status(remote) => on_runtime(status::run(remote)),
        Command::Fleet(remote) => on_runtime(fleet::run(remote)),
        Command::Tail(tail) => on_runtime(until_interrupted(tail::run(tail))),
        Command::Explain(explain) => on_runtime(explain::run(explain)),
        Command::Off(off) => on_runtime(off::run(off)),
        Command::Audit { action, remote } => on_runtime(audit::run(action, remote)),
        Command::Recordings { action, remote } => on_runtime(recordings::run(action, remote)),
        Command::Tape { action, remote } => on_runtime(tape::run(action, remote)),
        Command::Replay { action } => on_runtime(replay::run(action)),
        Command::Chaos(chaos) => on_runtime(judging::run(
            RunKind::Chaos,
            &chaos.trial,
            chaos.profile.as_deref(),
        )),
        Command::Explore(explore) => on_runtime(explore::run(*explore)),
        Command::Load(load) => on_runtime(load::run(*load)),
        Command::Mutate(mutate) => on_runtime(mutate::run(*mutate)),
        Command::Contract { action } => on_runtime(contract::run(action)),
        Command::Init(init) => init::run(&init),
        Command::Verify(verify) => on_runtime(verify::run(*verify)),
        Command::Certificate(certificate) => on_runtime(certificate::run(*certificate)),
        Command::Report(report) => on_runtime(report::run(*report)),
        Command::Ci(ci) => on_runtime(judging::run(RunKind::Ci, &ci.trial, ci.profile.as_deref())),
        Command::Runs { action } => on_runtime(until_interrupted(runs::run(action))),
        Command::Token { action, remote } => on_runtime(token::run(action, remote)),
    }
}

/// Runs a command's future on this thread.
fn on_runtime(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::could_not("the runtime", error))?;
    let done = runtime.block_on(command);
    // Threads that are still judging are abandoned.
    runtime.shutdown_background();
    done
}

/// Exits with 130 on Ctrl-C, SIGTERM and SIGHUP, after what the command made is dropped.
async fn until_interrupted<T>(
    command: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        done = command => done,
        _ = signals.next() => Err(Failure::Interrupted),
    }
}

/// Prints a list of the API: one JSON document, or a table with a column for each heading, member and text for `null`;
/// `empty` is the line for no items.
fn print_list(
    items: &[Value],
    as_json: bool,
    columns: &[(&str, &str, &str)],
    empty: &str,
) -> Result<(), Failure> {
    if as_json {
        return output::json(&json!({ "items": items }));
    }
    if items.is_empty() {
        return output::line(empty);
    }
    let paint = Paint::stdout();
    let mut table = Table::new(columns.iter().map(|(heading, ..)| *heading));
    for item in items {
        let cells = columns.iter().enumerate();
        table.row(cells.map(|(index, (_, member, absent))| {
            let text = match &item[member] {
                Value::Null => (*absent).to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if index == 0 { paint.name(text) } else { text }
        }));
    }
    output::print(&table.render())
}

/// What was found in a file.
struct Findings {
    file: String,
    /// What a valid file has, after a comma.
    summary: String,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Findings {
    fn document(&self) -> Value {
        let Self {
            file,
            errors,
            warnings,
            ..
        } = self;
        json!({ "file": file, "valid": errors.is_empty(), "errors": errors, "warnings": warnings })
    }

    fn print(&self) -> Result<(), Failure> {
        output::report_findings(&self.errors, &self.warnings);
        if self.errors.is_empty() {
            output::line(&format!("{}: valid{}", self.file, self.summary))?;
        }
        Ok(())
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(Failure::Reported)
        }
    }
}

/// The path of a scope's chaos; the default scope has its own.
fn chaos_path(scope: Option<&str>) -> String {
    match scope {
        Some(scope) => crate::client::path(&["/v1/scopes", scope, "chaos"], &[]),
        None => "/v1/chaos".to_owned(),
    }
}

/// The query of a change in every daemon of the fleet.
fn fleet_query(fleet: bool) -> &'static str {
    if fleet { "?fleet=true" } else { "" }
}
