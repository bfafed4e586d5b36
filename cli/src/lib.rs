//! The commands of the `squall` binary. Each has a file under [`commands`], on top of shared modules.
//!
//! ```text
//! args ──▶ commands ──▶ daemon    (serve, run, demo: proxy and API in this process)
//!                   └─▶ client    (everything else: the control API)
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod base_urls;
mod client;
mod commands;
mod config;
mod daemon;
mod demo;
mod failure;
mod home;
mod host;
mod judging;
mod known;
mod output_file;
mod pointing;
mod problem;
mod profile_file;
mod render;
mod reports;
mod sessions;
mod sources;
mod suite;
mod text;
mod variables;

use std::process::ExitCode;

/// Runs the command line.
pub fn run() -> ExitCode {
    let arguments = args::Arguments::read();
    match commands::run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                let paint = render::paint::Paint::stderr();
                for line in failure.to_string().lines() {
                    render::output::report_line(&format!("{} {line}", paint.bad("squall:")));
                }
            }
            failure.exit_code()
        }
    }
}
