//! `squall serve`: the daemon, until it is told to stop.

use std::path::Path;

use crate::args::Serve;
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
    let directory = setup.read()?.profiles;
    let mut changes = Changes::of(setup.file(), directory.as_deref());
    let mut daemon = Daemon::start(setup.read()?).await?;
    output::tell_line(&format!("proxy on http://{}", daemon.proxy_address()));
    output::tell_line(&format!("api on http://{}", daemon.api_address()));
    daemon.log_start(setup.file());
    let told = loop {
        tokio::select! {
            () = changes.next() => {}
            told = signals.next() => if told != Told::Reload { break told },
        }
        let watched = daemon.profile_directory().map(Path::to_owned);
        daemon.reload(setup.read(), setup.file());
        if daemon.profile_directory() != watched.as_deref() {
            changes = Changes::of(setup.file(), daemon.profile_directory());
        }
    };
    tracing::info!(grace = ?serve.grace, "stopping");
    tokio::select! {
        () = daemon.stop(serve.grace) => {}
        () = second(&mut signals) => return Err(Failure::Interrupted),
    }
    if told == Told::Interrupt {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    }
}

/// Waits for a second signal to stop.
async fn second(signals: &mut Signals) {
    while signals.next().await == Told::Reload {}
}
