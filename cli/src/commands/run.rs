//! `squall run`: one program behind a private daemon.

use serde_json::Value;
use squall_proxy::chaos::DEFAULT_SCOPE;

use crate::args::{LogFormat, RunArgs};
use crate::base_urls;
use crate::client::Client;
use crate::commands::recordings;
use crate::commands::tape;
use crate::daemon::setup::{Lives, Setup};
use crate::daemon::{Daemon, child, log};
use crate::failure::Failure;
use crate::output_file;
use crate::pointing;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::summary::Summary;

pub(super) async fn run(run: RunArgs) -> Result<(), Failure> {
    run_in(run, None).await
}

/// Runs the program with its traffic in a scope.
pub(super) async fn run_in(run: RunArgs, scope: Option<&str>) -> Result<(), Failure> {
    if let Some(file) = &run.record {
        output_file::check(file)?;
    }
    let session = run.replay.as_deref().map(tape::session).transpose()?;
    // The terminal is the program's, so the log has warnings only.
    log::start("warn", LogFormat::Text)?;
    let mut config = Setup::new(run.daemon, Lives::ForProgram)?.read()?;
    let token = config.require_token()?;
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
            output::report_line(&format!("route {route} on http://{address}"));
        }
    }
    let chaos = daemon.in_force();
    let rules = daemon.rules_in_force();
    let client = Client::to(&daemon.api_address().to_string(), Some(token))?;
    let recording = match &run.record {
        Some(_) => Some(recordings::begin(&client, None).await?),
        None => None,
    };
    let tape = match session {
        Some(session) => Some(tape::play_session(&client, &session).await?),
        None => None,
    };
    let ended = child::run(&run.command, &variables).await;
    daemon.settle().await;
    if let (false, Ok(code)) = (run.quiet, &ended) {
        let mut summary = Summary::new(rules);
        daemon.exchanges(|exchange| summary.add(exchange));
        let text = summary.render(&chaos, &unseen(*code, run.base_urls), Paint::stderr());
        output::report(text.trim_end());
        if tape.is_some() {
            let tape: Value = client.get(&tape::tape_path(DEFAULT_SCOPE)).await?;
            let source = tape["source"].as_str().unwrap_or_default();
            output::report_line(&format!("  {source}: {}", tape::counts(&tape)));
        }
    }
    let written = match (&run.record, &recording) {
        (Some(file), Some(id)) => recordings::finish(&client, id, file).await,
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

/// The likely reason for no traffic; `code` is the program's exit code.
fn unseen(code: u8, base_urls: bool) -> String {
    if code != 0 {
        return format!(
            "no traffic: the program exited with code {code} before it sent a request; its output above may show the error"
        );
    }
    let way = if base_urls {
        "set its base URL"
    } else {
        "try `--base-urls`, or set the base URL"
    };
    format!(
        "no traffic: the program sent no request, or it ignores HTTP_PROXY and HTTPS_PROXY; many libraries have an \
         option (`trust_env` or `proxy`), and Node needs version 22.21, or 24 and later. For programs that ignore \
         proxies, {way} to a route of the proxy."
    )
}
