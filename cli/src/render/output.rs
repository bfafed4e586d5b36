//! All output to stdout and stderr, the log included.
//!
//! Control characters from outside are made visible, so that they cannot control the terminal. Only Squall's own colours
//! and the progress bar do.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde_json::Value;
use squall_harness::report::{escaped, shown};

use super::paint;
use crate::args::LogFormat;
use crate::failure::Failure;

/// Columns of the terminal; 80 where stdout is not a terminal.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns > 0 { columns } else { 80 }
}

/// Writes text to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(&seen(text))
}

/// Writes one line to stdout; line breaks in it become spaces.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    write(&format!("{}\n", on_a_line(text)))
}

/// Writes a JSON document to stdout.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::could_not("the document", error))?;
    json_line(&text)
}

/// Writes a JSON document with `--json`, else a line.
pub(crate) fn result(as_json: bool, document: &Value, text: &str) -> Result<(), Failure> {
    if as_json { json(document) } else { line(text) }
}

/// Writes JSON text to stdout as a line.
pub(crate) fn json_line(text: &str) -> Result<(), Failure> {
    write(&format!("{}\n", escaped(text)))
}

/// Writes output for other programs to stdout, unchanged unless stdout is a terminal.
pub(crate) fn document(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        print(text)
    } else {
        write(text)
    }
}

/// Writes text to stderr.
#[expect(
    clippy::print_stderr,
    reason = "all output to stderr goes through here"
)]
pub(crate) fn report(text: &str) {
    eprintln!("{}", seen(text));
}

/// Writes errors and warnings to stderr.
pub(crate) fn report_findings(errors: &[String], warnings: &[String]) {
    let paint = paint::Paint::stderr();
    for error in errors {
        report(&format!("{} {error}", paint.bad("error:")));
    }
    for warning in warnings {
        report(&format!("{} {warning}", paint.notable("warning:")));
    }
}

/// Writes one line to stderr; line breaks in it become spaces.
#[expect(
    clippy::print_stderr,
    reason = "all output to stderr goes through here"
)]
pub(crate) fn report_line(text: &str) {
    eprintln!("{}", on_a_line(text));
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(()),
        // As in `squall tail | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::could_not("stdout", error)),
    }
}

/// Text without control characters, except line breaks, tabs and our colours.
fn seen(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, from) = rest.split_at(at);
        seen.push_str(&shown(before));
        let colour = paint::code_at(from);
        match colour {
            Some(code) => seen.push_str(code),
            None => seen.push_str(&shown("\x1b")),
        }
        rest = &from[colour.map_or(1, str::len)..];
    }
    seen.push_str(&shown(rest));
    seen
}

/// The same, with line breaks and tabs as spaces.
pub(super) fn on_a_line(text: &str) -> String {
    seen(text).replace(['\n', '\t'], " ")
}

/// Stderr for the log: each record is one line.
impl Write for LogFormat {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        let line = match self {
            Self::Text => on_a_line(text.trim_end_matches('\n')),
            Self::Json => escaped(text.trim_end_matches('\n')),
        };
        writeln!(io::stderr().lock(), "{line}")?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_colours_reach_the_terminal() {
        for (text, expected) in [
            ("\x1b[32mgood\x1b[0m\n\tnext", "\x1b[32mgood\x1b[0m\n\tnext"),
            ("\x1b]0;title\x07", "␛]0;title␇"),
            ("\x1b[2Jcleared\x1b[8m", "␛[2Jcleared␛[8m"),
            ("\u{202e}evil\u{9b}2J\r\n", "\\u{202e}evil\\u{9b}2J\n"),
            ("\x1b", "␛"),
            ("\x1b\x1b[31m\x1b[31", "␛\x1b[31m␛[31"),
        ] {
            assert_eq!(seen(text), expected, "{text:?}");
        }
        assert_eq!(on_a_line("a\nb\tc\r\n"), "a b c ");
    }
}
