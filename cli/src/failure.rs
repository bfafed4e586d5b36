//! Why a command failed, and its exit code.

use std::process::ExitCode;

use thiserror::Error;

use crate::problem::ProblemResponse;

/// The exit codes of all commands, in the help and word for word in `docs/commands.md`. `run` also passes on the exit
/// code of its program.
pub(crate) const EXIT_CODES: [(&str, &str); 7] = [
    ("0", "success; a run passed"),
    ("1", "a run failed, or a check did not pass"),
    (
        "2",
        "wrong usage, an invalid file, or a request that the API rejects",
    ),
    (
        "3",
        "could not run: agent, daemon or model unreachable, or an error of the daemon",
    ),
    (
        "4",
        "inconclusive: no fault was applied, or the agent's traffic was not seen",
    ),
    (
        "126, 127",
        "`run`: the program cannot be executed, or was not found",
    ),
    ("130", "interrupted"),
];

/// Every way in which a command can fail.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Wrong usage, or an invalid file; exit 2.
    #[error("{0}")]
    Usage(String),
    /// A file is invalid, and its errors are printed already; exit 2.
    #[error("invalid")]
    Reported,
    /// A run or a check failed, and the reason is printed already; exit 1.
    #[error("failed")]
    NotPassed,
    /// A run was inconclusive, and the reason is printed already; exit 4.
    #[error("inconclusive")]
    Inconclusive,
    /// The control API rejected the request; exit 2, or 3 for a status of 500 and above.
    #[error("{0}")]
    Refused(#[from] ProblemResponse),
    /// The daemon cannot be reached; exit 3.
    #[error(
        "no daemon answers at {server}: {cause}; start one with `squall serve`, or pass its address with `--server`"
    )]
    Unreachable {
        /// The address.
        server: String,
        /// Why the connection failed.
        cause: String,
    },
    /// Something the command needs failed; exit 3.
    #[error("{0}")]
    CouldNotRun(String),
    /// The program of `run` cannot be started; 126 or 127, as in shells.
    #[error("{message}")]
    NotStarted {
        /// The exit code.
        code: u8,
        /// The reason.
        message: String,
    },
    /// The program of `run` ended with this exit code, which becomes ours.
    #[error("the program exited with {0}")]
    Program(u8),
    /// The reader of our stdout closed it, as `head` does; exit 0.
    #[error("stdout was closed")]
    ReaderGone,
    /// Ctrl-C; exit 130.
    #[error("interrupted")]
    Interrupted,
}

impl From<squall_proxy::tls::CaError> for Failure {
    fn from(error: squall_proxy::tls::CaError) -> Self {
        Self::CouldNotRun(error.to_string())
    }
}

impl From<squall_control_api::store::StoreError> for Failure {
    fn from(error: squall_control_api::store::StoreError) -> Self {
        Self::CouldNotRun(error.to_string())
    }
}

impl From<squall_proxy::StartError> for Failure {
    fn from(error: squall_proxy::StartError) -> Self {
        match error {
            squall_proxy::StartError::Config(_) => Self::Usage(error.to_string()),
            error => Self::CouldNotRun(error.to_string()),
        }
    }
}

impl Failure {
    /// `what`: `cause`, exit 3.
    pub(crate) fn could_not(what: impl std::fmt::Display, cause: impl std::fmt::Display) -> Self {
        Self::CouldNotRun(format!("{what}: {cause}"))
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NotPassed => 1,
            Self::Inconclusive => 4,
            Self::Usage(_) | Self::Reported => 2,
            Self::Refused(problem) if problem.status < 500 => 2,
            Self::Refused(_) | Self::Unreachable { .. } | Self::CouldNotRun(_) => 3,
            Self::NotStarted { code, .. } | Self::Program(code) => *code,
            Self::ReaderGone => 0,
            Self::Interrupted => 130,
        })
    }

    /// Whether no message is printed: there was one already, or none is needed.
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
}
