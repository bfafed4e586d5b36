//! Why a command did not do what it was asked, and the exit code that says so.

use std::process::ExitCode;

use thiserror::Error;

use crate::config::ConfigErrors;

/// Every way a command ends badly. One variant, one exit code.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// What was asked makes no sense; exit 2.
    #[error("{0}")]
    Usage(String),
    /// The configuration is invalid; exit 2.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// What is wrong with a file has been printed already; exit 2.
    #[error("invalid")]
    Reported,
    /// The control API refused; exit 2, or 3 if it is the daemon that is in trouble.
    #[error("{0}")]
    Refused(#[from] crate::client::Problem),
    /// The daemon cannot be reached; exit 3.
    #[error(
        "no daemon answers at {server}: {cause}; start one with `squall serve`, or name it with `--server`"
    )]
    Unreachable {
        /// Where it was looked for.
        server: String,
        /// What the attempt met.
        cause: String,
    },
    /// Something else than a daemon's API answers there; exit 3.
    #[error(
        "{server} answers, but it is not Squall's control API; `squall serve` prints `api on \
         http://…` when it starts: name that with `--server`"
    )]
    Foreign {
        /// Where it answers.
        server: String,
    },
    /// There is no CA to work with; exit 3.
    #[error(transparent)]
    Ca(#[from] squall_proxy::tls::CaError),
    /// The data plane could not start; exit 3.
    #[error(transparent)]
    Proxy(#[from] squall_proxy::StartError),
    /// Something the command needs failed; exit 3.
    #[error("{0}")]
    CouldNotRun(String),
    /// The program that was to be run could not be started; 126 or 127, as shells have it.
    #[error("{message}")]
    NotStarted {
        /// The exit code.
        code: u8,
        /// What is wrong with it.
        message: String,
    },
    /// The program that was run ended with this code, which is ours too.
    #[error("the program ended with {0}")]
    Program(u8),
    /// Whoever read our stdout has gone; exit 0, as it has what it wanted.
    #[error("nobody reads any more")]
    ReaderGone,
    /// Ctrl-C; exit 130.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// "`what`: `cause`", for things that could not be done.
    pub(crate) fn could_not(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> Self {
        Self::CouldNotRun(format!("{what}: {cause}"))
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_)
            | Self::Config(_)
            | Self::Reported
            | Self::Proxy(squall_proxy::StartError::Config(_)) => 2,
            Self::Refused(problem) if problem.status < 500 => 2,
            Self::Refused(_)
            | Self::Unreachable { .. }
            | Self::Foreign { .. }
            | Self::Ca(_)
            | Self::Proxy(_)
            | Self::CouldNotRun(_) => 3,
            Self::NotStarted { code, .. } | Self::Program(code) => *code,
            Self::ReaderGone => 0,
            Self::Interrupted => 130,
        })
    }

    /// Whether a person is told; a program's own code, and Ctrl-C, speak for themselves.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::Program(_) | Self::Reported | Self::ReaderGone | Self::Interrupted
        )
    }
}
