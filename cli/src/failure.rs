//! Why a command did not do what it was asked, and the exit code that says so.

use std::process::ExitCode;

use thiserror::Error;

use crate::config::ConfigErrors;

/// Every exit code that a command ends with by itself; `run` hands its program's on. In the help, and
/// word for word in `docs/commands.md`.
pub(crate) const EXIT_CODES: [(&str, &str); 7] = [
    ("0", "it went well"),
    ("1", "what was checked did not pass"),
    ("2", "usage, or an invalid file; also what the API refuses"),
    (
        "3",
        "it could not run: no daemon, no port, no certificate, or the daemon is in trouble",
    ),
    ("4", "what was checked proves nothing"),
    (
        "126, 127",
        "`run`: the program cannot be executed, was not found",
    ),
    ("130", "interrupted"),
];

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
    /// What was checked did not pass, and why has been printed already; exit 1.
    #[error("it did not pass")]
    NotPassed,
    /// What was checked proves nothing, and why has been printed already; exit 4.
    #[error("it proves nothing")]
    Inconclusive,
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
    /// A daemon's proxy answers there instead of its API; exit 3.
    #[error(
        "{server} is Squall's proxy, not its control API; the API listens on port 7071 unless \
         `api.listen` or `--api` says otherwise, and `squall serve` prints `api on http://…` when it \
         starts: name that with `--server`"
    )]
    IsProxy {
        /// Where it answers.
        server: String,
    },
    /// There is no CA to work with; exit 3.
    #[error(transparent)]
    Ca(#[from] squall_proxy::tls::CaError),
    /// The data plane could not start; exit 3.
    #[error(transparent)]
    Proxy(#[from] squall_proxy::StartError),
    /// The store cannot be used; exit 3.
    #[error(transparent)]
    Store(#[from] squall_control_api::store::StoreError),
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
            Self::NotPassed => 1,
            Self::Inconclusive => 4,
            Self::Usage(_)
            | Self::Config(_)
            | Self::Reported
            | Self::Proxy(squall_proxy::StartError::Config(_)) => 2,
            Self::Refused(problem) if problem.status < 500 => 2,
            Self::Refused(_)
            | Self::Unreachable { .. }
            | Self::Foreign { .. }
            | Self::IsProxy { .. }
            | Self::Ca(_)
            | Self::Proxy(_)
            | Self::Store(_)
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
            Self::Program(_)
                | Self::NotPassed
                | Self::Inconclusive
                | Self::Reported
                | Self::ReaderGone
                | Self::Interrupted
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_codes_of_the_docs_are_those_of_the_help() {
        let docs = include_str!("../../docs/commands.md");
        let rows = docs
            .lines()
            .skip_while(|line| *line != "| exit code | meaning |")
            .skip(2)
            .map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let documented: Vec<_> = rows.filter_map(|row| row.split_once(" | ")).collect();
        assert_eq!(documented, EXIT_CODES);
    }

    #[test]
    fn every_exit_code_is_in_the_list() {
        let listed = |code: ExitCode| {
            let codes = EXIT_CODES.iter().flat_map(|(codes, _)| codes.split(", "));
            let mut codes = codes.filter_map(|code| code.parse::<u8>().ok());
            codes.any(|listed| ExitCode::from(listed) == code)
        };
        let not_started = |code| Failure::NotStarted {
            code,
            message: String::new(),
        };
        for failure in [
            Failure::Usage(String::new()),
            Failure::CouldNotRun(String::new()),
            Failure::ReaderGone,
            Failure::Inconclusive,
            Failure::Interrupted,
            not_started(126),
            not_started(127),
        ] {
            assert!(listed(failure.exit_code()), "{failure:?}");
        }
    }
}
