//! The signals of a daemon.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// A signal that the daemon handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// SIGTERM: stop gracefully.
    Terminate,
    /// SIGINT, Ctrl-C: stop gracefully.
    Interrupt,
    /// SIGHUP: reload the configuration.
    Reload,
}

/// Listens to the signals from its creation on.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Starts to listen; before that, the signals end the process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::could_not("signals", error));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next signal that stops the daemon.
    pub(crate) async fn stop(&mut self) -> Interruption {
        tokio::select! {
            _ = self.terminate.recv() => Interruption::Terminate,
            _ = self.interrupt.recv() => Interruption::Interrupt,
        }
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Interruption {
        tokio::select! {
            _ = self.terminate.recv() => Interruption::Terminate,
            _ = self.interrupt.recv() => Interruption::Interrupt,
            _ = self.hangup.recv() => Interruption::Reload,
        }
    }
}
