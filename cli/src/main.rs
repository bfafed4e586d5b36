//! The `squall` binary. Each command is a file under [`commands`]; what they share is below it.
//!
//! ```text
//! args ──▶ commands ──▶ daemon    (serve, run, demo: proxy and API in this process)
//!                   └─▶ client    (everything else: the control API)
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod base_urls;
mod baseline;
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
mod profile_file;
mod render;
mod reports;
mod suite;
mod text;
mod variables;

use std::process::ExitCode;

// Every exchange allocates and frees on its own thread what it needs and no more; this allocator is
// made for that, and gives back what many connections took. Linked in, it stands in for `malloc`: asked
// for as Rust's global allocator it would be told an alignment each time, which takes a longer way.
use mimalloc as _;

fn main() -> ExitCode {
    let arguments = args::Arguments::read();
    match commands::run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                let paint = render::paint::Paint::stderr();
                for line in failure.to_string().lines() {
                    render::output::tell_line(&format!("{} {line}", paint.bad("squall:")));
                }
            }
            failure.exit_code()
        }
    }
}
