//! `squall run`: one program behind a private daemon.

mod unseen;

use std::path::Path;

use serde_json::json;
use squall_control_api::store::StoredRecording;

use crate::args::{LogFormat, Run};
use crate::base_urls;
use crate::commands::recordings::{self, Form, check_writable};
use crate::commands::tape;
use crate::daemon::setup::Setup;
use crate::daemon::{Daemon, child, log};
use crate::failure::Failure;
use crate::pointing;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::summary::Summary;

pub(super) async fn run(run: Run) -> Result<(), Failure> {
    run_in(run, None).await
}

/// With its traffic in a scope.
pub(super) async fn run_in(run: Run, scope: Option<&str>) -> Result<(), Failure> {
    if let Some(file) = &run.record {
        check_writable(file)?;
    }
    let session = run.replay.as_deref().map(tape::session).transpose()?;
    // The program's own output is what people want to see.
    log::start("warn", LogFormat::Text)?;
    let mut config = Setup::private(run.daemon)?.read()?;
    config.ask_for_a_token()?;
    let bases = if run.base_urls {
        let set = |name: &str| std::env::var(name).ok();
        base_urls::add_routes(&mut config.proxy.routes, &set)?
    } else {
        Vec::new()
    };
    let daemon = Daemon::start(config).await?;
    let authority = daemon.proxy_address().to_string();
    let mut variables = pointing::variables(&authority, scope, &daemon.ca_bundle()?);
    variables.extend(base_urls::variables(&bases, &authority, scope));
    if !run.quiet {
        for (route, address) in daemon.routes() {
            output::tell_line(&format!("route {route} on http://{address}"));
        }
    }
    let chaos = daemon.in_force();
    let rules = daemon.rules_in_force();
    let recording = match &run.record {
        Some(_) => Some(daemon.record().await?),
        None => None,
    };
    let tape = session.map(|session| daemon.play(&session)).transpose()?;
    let ended = child::run(&run.command, &variables).await;
    daemon.settle().await;
    if let (false, Ok(code)) = (run.quiet, &ended) {
        let mut summary = Summary::new(rules);
        daemon.exchanges(|exchange| summary.add(exchange));
        let unseen = if summary.is_empty() {
            unseen::advice(&run.command, *code).await
        } else {
            String::new()
        };
        output::tell(summary.render(&chaos, &unseen, Paint::stderr()).trim_end());
        if let Some(tape) = tape {
            let counts = tape::counts(&json!(tape.counts()));
            output::tell_line(&format!("  {}: {counts}", tape.source()));
        }
    }
    let written = match (&run.record, &recording) {
        (Some(file), Some(recording)) => keep(&daemon, recording, file).await,
        _ => Ok(()),
    };
    daemon.stop(std::time::Duration::ZERO).await;
    let ended = ended?;
    written?;
    match ended {
        0 => Ok(()),
        code => Err(Failure::Program(code)),
    }
}

/// Writes what was recorded.
async fn keep(daemon: &Daemon, recording: &StoredRecording, file: &Path) -> Result<(), Failure> {
    let (text, ended) = daemon.recorded(recording, Form::of(Some(file))).await?;
    recordings::write(file, &text)?;
    let holds = recordings::holds(ended.tally.exchanges, ended.tally.left_out);
    output::tell_line(&format!("{}: {holds}", file.display()));
    Ok(())
}
