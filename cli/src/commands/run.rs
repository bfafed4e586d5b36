//! `squall run`: one program behind a private daemon.

use crate::args::{LogFormat, Run};
use crate::daemon::setup::Setup;
use crate::daemon::{Daemon, child, log};
use crate::failure::Failure;
use crate::pointing;
use crate::render::paint::Paint;
use crate::render::summary::Summary;

pub(super) async fn run(run: Run) -> Result<(), Failure> {
    // The program's own output is what people want to see.
    log::start("warn", LogFormat::Text)?;
    let setup = Setup::private(run.daemon)?;
    let config = setup.read()?;
    let daemon = Daemon::start(config).await?;
    let authority = daemon.proxy_address().to_string();
    let variables = pointing::variables(&authority, None, &daemon.ca_bundle()?);
    if !run.quiet {
        for (route, address) in daemon.routes() {
            eprintln!("route {route} on http://{address}");
        }
    }
    let chaos = daemon.in_force();
    let rules = daemon.rules_in_force();
    let ended = child::run(&run.command, &variables).await;
    daemon.settle().await;
    let not_started = matches!(ended, Err(Failure::NotStarted { .. }));
    if !run.quiet && !not_started {
        let mut summary = Summary::new(rules);
        daemon.exchanges(|exchange| summary.add(exchange));
        eprint!("{}", summary.render(&chaos, Paint::stderr()));
    }
    daemon.stop(std::time::Duration::ZERO).await;
    match ended? {
        0 => Ok(()),
        code => Err(Failure::Program(code)),
    }
}
