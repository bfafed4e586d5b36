//! `squall serve`: runs the daemon until a signal.

use std::time::Duration;

use crate::args::ServeArgs;
use crate::daemon::setup::{Lives, Setup};
use crate::daemon::signals::{Interruption, Signals};
use crate::daemon::watch::Changes;
use crate::daemon::{Daemon, log};
use crate::failure::Failure;
use crate::render::output;

pub(super) async fn run(serve: ServeArgs) -> Result<(), Failure> {
    log::start(&serve.log_level, serve.log_format)?;
    let setup = Setup::new(serve.daemon, Lives::Long)?.with_store(serve.store.as_deref())?;
    // From here on a signal stops the daemon gracefully.
    let mut signals = Signals::listen()?;
    // Watching starts before the file is read, so no change is missed.
    let mut changes = Changes::of(&setup.read()?);
    let mut daemon = Daemon::start(setup.read()?).await?;
    output::report_line(&format!("proxy on http://{}", daemon.proxy_address()));
    output::report_line(&format!("api on http://{}", daemon.api_address()));
    daemon.log_start(setup.file());
    let signal = loop {
        tokio::select! {
            () = changes.next() => {}
            signal = signals.next() => if signal != Interruption::Reload { break signal },
        }
        let (reloaded, signal) = reload(daemon, setup.clone(), &mut signals, serve.grace).await?;
        daemon = reloaded;
        if let Some(signal) = signal {
            break signal;
        }
        changes.watch(daemon.config());
    };
    tracing::info!(grace = ?serve.grace, "stopping");
    tokio::select! {
        () = daemon.stop(serve.grace) => {}
        _ = signals.stop() => return Err(Failure::Interrupted),
    }
    if signal == Interruption::Interrupt {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    }
}

/// Reloads everything on a thread that may block. A signal to stop is returned; after it a reload that hangs is abandoned
/// after `grace`.
async fn reload(
    mut daemon: Daemon,
    setup: Setup,
    signals: &mut Signals,
    grace: Duration,
) -> Result<(Daemon, Option<Interruption>), Failure> {
    let mut reloading = tokio::task::spawn_blocking(move || {
        daemon.reload(setup.read(), setup.file());
        daemon
    });
    let failed = |error| Failure::could_not("reload", error);
    tokio::select! {
        daemon = &mut reloading => Ok((daemon.map_err(failed)?, None)),
        signal = signals.stop() => match tokio::time::timeout(grace, reloading).await {
            Ok(daemon) => Ok((daemon.map_err(failed)?, Some(signal))),
            Err(_) => Err(Failure::Interrupted),
        },
    }
}
