//! Signals a daemon answers to.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// What a daemon is told from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// SIGTERM: end in good order.
    Terminate,
    /// SIGINT: somebody pressed Ctrl-C; end in good order.
    Interrupt,
    /// SIGHUP: read the configuration again.
    Reload,
}

/// The signals, from when this was made.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Begins to listen; until then they end the process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::could_not("signals", error));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next one that ends the daemon.
    pub(crate) async fn stop(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Terminate,
            _ = self.interrupt.recv() => Told::Interrupt,
        }
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Terminate,
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.hangup.recv() => Told::Reload,
        }
    }
}
