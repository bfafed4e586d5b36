//! The one way to the terminal, when whoever reads may have gone.
//!
//! All that commands and the log say passes here: of texts from outside nothing is left that a terminal obeys.
//! Only Squall's own colours are, and what draws the progress bar over.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde_json::Value;
use squall_harness::report::{escaped, shown};

use super::paint;
use crate::failure::Failure;

/// Columns of the terminal that stdout is; 80 where it is none.
pub(crate) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns > 0 { columns } else { 80 }
}

/// Writes text for people to stdout, at once.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    written(&seen(text))
}

/// Writes a line to stdout; what it is made of cannot end it.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    written(&format!("{}\n", on_a_line(text)))
}

/// Writes a JSON document to stdout.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::could_not("the document", error))?;
    json_line(&text)
}

/// Writes what was done: a JSON document where that is wanted, else a line.
pub(crate) fn done(as_json: bool, document: &Value, text: &str) -> Result<(), Failure> {
    if as_json { json(document) } else { line(text) }
}

/// Writes JSON to stdout as it was written elsewhere, and ends the line.
pub(crate) fn json_line(text: &str) -> Result<(), Failure> {
    written(&format!("{}\n", escaped(text)))
}

/// Writes what another program is to read to stdout: byte by byte, but on a terminal.
pub(crate) fn document(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        print(text)
    } else {
        written(text)
    }
}

/// Writes lines for people to stderr.
#[expect(clippy::print_stderr, reason = "this is the one way there")]
pub(crate) fn tell(text: &str) {
    eprintln!("{}", seen(text));
}

/// Writes what was found wrong or odd to stderr.
pub(crate) fn tell_findings(errors: &[String], warnings: &[String]) {
    let paint = paint::Paint::stderr();
    for error in errors {
        tell(&format!("{} {error}", paint.bad("error:")));
    }
    for warning in warnings {
        tell(&format!("{} {warning}", paint.notable("warning:")));
    }
}

/// Writes a line to stderr; what it is made of cannot end it.
#[expect(clippy::print_stderr, reason = "this is the one way there")]
pub(crate) fn tell_line(text: &str) {
    eprintln!("{}", on_a_line(text));
}

/// Draws over the line that the cursor stands on, on a terminal's stderr, and stays there.
#[expect(clippy::print_stderr, reason = "this is the one way there")]
pub(crate) fn draw_over(text: &str) {
    eprint!("\r\x1b[K{}", on_a_line(text));
}

fn written(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(()),
        // `squall tail | head`: the reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::could_not("stdout", error)),
    }
}

/// Text with nothing in it that is obeyed but line breaks, tabs and our colours.
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

/// The same, without line breaks and tabs.
pub(super) fn on_a_line(text: &str) -> String {
    seen(text).replace(['\n', '\t'], " ")
}

/// Stderr for the log: a record is a line, whatever it is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Log {
    /// For people.
    Text,
    /// A document in each line.
    Json,
}

impl Write for Log {
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
    fn only_our_colours_are_obeyed() {
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
