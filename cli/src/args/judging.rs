//! The commands that try an agent: their suite, their daemon, and how it is tried.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::seed;
use crate::config::address;

/// The suite that is meant where none is named.
pub(crate) const DEFAULT_SUITE: &str = "suite.yaml";

/// The suite.
#[derive(Debug, Clone, Args)]
pub(crate) struct SuiteFile {
    /// The suite, YAML or JSON; `squall init` writes one
    #[arg(
        short = 'c',
        long = "suite",
        value_name = "FILE",
        default_value = DEFAULT_SUITE
    )]
    pub(crate) file: PathBuf,
}

/// The daemon that is asked: a running one, or a private one for this command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Site {
    /// Control API of a running daemon [default: a private daemon is started]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Token, where that daemon asks for one
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Configuration of the private daemon [default: squall.yaml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of the private daemon's proxy [default: a free port of loopback]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) proxy: Option<SocketAddr>,
    /// Address of the private daemon's control API [default: a free port of loopback]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) api: Option<SocketAddr>,
}

/// How a suite is tried.
#[derive(Debug, Clone, Args)]
pub(crate) struct Trial {
    #[command(flatten)]
    pub(crate) suite: SuiteFile,
    /// What every draw hangs on [default: the suite's, else 42]
    #[arg(
        long,
        value_name = "N",
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub(crate) seed: Option<u64>,
    /// Invocations of the agent at once, 1 to 100 [default: the suite's, else 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) concurrency: Option<u64>,
    /// A single cell that proves nothing makes the run inconclusive
    #[arg(long)]
    pub(crate) strict: bool,
    /// The score to reach: 0 to 100, or a share up to 1 [default: the suite's, else none]
    #[arg(long, value_name = "X", value_parser = score)]
    pub(crate) min_score: Option<f64>,
    /// How often everything is done, 1 to 100; repeats tell what is flaky [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) repeat: Option<u64>,
    /// Compare with this earlier run: its id, or its report in JSON
    #[arg(long, value_name = "RUN")]
    pub(crate) baseline: Option<String>,
    /// What else makes the command fail
    #[arg(long, value_name = "WHAT", requires = "baseline")]
    pub(crate) fail_on: Option<FailOn>,
    /// Directory of the reports [default: the suite's `output.path`, else ./reports]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) site: Site,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What makes a command fail, beside the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// A cell fails that did not in the baseline, or the score is lower
    Regression,
}

impl FailOn {
    /// As the API has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Regression => "regression",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Chaos {
    /// The profile in force, in the place of the suite's `chaos`: its name or its file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    #[command(flatten)]
    pub(crate) trial: Trial,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Contract {
    /// Try every invariant in every scenario, and show the matrix
    Run(Box<Trial>),
    /// Check a suite as far as it can be told without running it; needs no daemon
    Validate {
        #[command(flatten)]
        suite: SuiteFile,
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// The same as `run`, and print the score alone
    Score(Box<Trial>),
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) suite: SuiteFile,
    #[command(flatten)]
    pub(crate) site: Site,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Id of the run, from `squall runs list`, or a report that was written as JSON
    pub(crate) run: String,
    /// Its form
    #[arg(long, value_name = "FORM", default_value = "html")]
    pub(crate) format: ReportFormat,
    /// Where to; default: stdout
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) site: Site,
}

/// A form of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page for people
    Html,
    /// The document that all forms are drawn from
    Json,
    /// XML for CI systems, a test case for each cell
    Junit,
    /// A comment for a pull request
    Markdown,
}

impl From<ReportFormat> for squall_harness::report::Format {
    fn from(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Html => Self::Html,
            ReportFormat::Json => Self::Json,
            ReportFormat::Junit => Self::Junit,
            ReportFormat::Markdown => Self::Markdown,
        }
    }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Certificate {
    #[command(subcommand)]
    pub(crate) action: Option<CertificateAction>,
    /// Id of the run, from `squall runs list`
    #[arg(required = true)]
    pub(crate) run: Option<String>,
    /// Where to: FILE.html is a page, FILE.pdf a PDF; without an ending the suite's `certificate.output_format`
    /// decides [default: certificate-RUN in that form]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Who says that the run was made [default: the suite's `certificate.tester_name`, else this user's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) tester: Option<String>,
    #[command(flatten)]
    pub(crate) site: Site,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertificateAction {
    /// Check that a file is a certificate as it was signed; exits with 1 if it is none, or a byte of it
    /// was changed
    Verify {
        /// The certificate
        file: PathBuf,
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The file to write
    #[arg(value_name = "FILE", default_value = DEFAULT_SUITE)]
    pub(crate) file: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// The agent: a program that reads a prompt on stdin and answers on stdout
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Reads a score to reach.
fn score(text: &str) -> Result<f64, String> {
    let score = text.trim().parse::<f64>().ok();
    score
        .filter(|score| (0.0..=100.0).contains(score))
        .ok_or_else(|| {
            "a score is a number from 0 to 100; above 0 and up to 1 it is a share, 0.9 is 90"
                .to_owned()
        })
}
