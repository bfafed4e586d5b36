//! `squall serve`: the daemon, until it is told to stop.

use std::time::Duration;

use crate::args::Serve;
use crate::daemon::profiles::Sources;
use crate::daemon::setup::Setup;
use crate::daemon::signals::{Signals, Told};
use crate::daemon::watch::Changes;
use crate::daemon::{Daemon, log};
use crate::failure::Failure;
use crate::render::output;

pub(super) async fn run(serve: Serve) -> Result<(), Failure> {
    log::start(&serve.log_level, serve.log_format)?;
    let setup = Setup::new(serve.daemon)?.with_store(serve.store.as_deref())?;
    // From here on a signal ends the daemon in good order, however early it comes.
    let mut signals = Signals::listen()?;
    // Watching begins before the file is read for good: no change falls between the two.
    let watched = |sources: &Sources| Changes::of(setup.file(), sources);
    let mut changes = watched(&Sources::of(&setup.read()?));
    let mut daemon = Daemon::start(setup.read()?).await?;
    output::tell_line(&format!("proxy on http://{}", daemon.proxy_address()));
    output::tell_line(&format!("api on http://{}", daemon.api_address()));
    daemon.log_start(setup.file());
    let told = loop {
        tokio::select! {
            () = changes.next() => {}
            told = signals.next() => if told != Told::Reload { break told },
        }
        let before = daemon.profile_sources();
        let (reloaded, told) = reload(daemon, setup.clone(), &mut signals, serve.grace).await?;
        daemon = reloaded;
        if let Some(told) = told {
            break told;
        }
        let now = daemon.profile_sources();
        if (&now.directory, &now.file) != (&before.directory, &before.file) {
            changes = watched(&now);
        }
    };
    tracing::info!(grace = ?serve.grace, "stopping");
    tokio::select! {
        () = daemon.stop(serve.grace) => {}
        _ = signals.stop() => return Err(Failure::Interrupted),
    }
    if told == Told::Interrupt {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    }
}

/// Reads everything anew, on a thread that may be kept waiting; gives the signal to stop that came meanwhile. One
/// that hangs is waited for no longer than `grace` then.
async fn reload(
    mut daemon: Daemon,
    setup: Setup,
    signals: &mut Signals,
    grace: Duration,
) -> Result<(Daemon, Option<Told>), Failure> {
    let mut reloading = tokio::task::spawn_blocking(move || {
        daemon.reload(setup.read(), setup.file());
        daemon
    });
    let failed = |error| Failure::could_not("reload", error);
    tokio::select! {
        daemon = &mut reloading => Ok((daemon.map_err(failed)?, None)),
        told = signals.stop() => match tokio::time::timeout(grace, reloading).await {
            Ok(daemon) => Ok((daemon.map_err(failed)?, Some(told))),
            Err(_) => Err(Failure::Interrupted),
        },
    }
}
