//! Writing to stdout, when whoever reads may have gone.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Writes text to stdout as it is, at once.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
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

/// Writes a line to stdout.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Writes a JSON document to stdout.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::could_not("the document", error))?;
    line(&text)
}
