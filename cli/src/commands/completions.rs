//! `squall completions` and `squall man`: what packages install beside the binary.

use std::path::Path;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::render::output;

/// Prints a completion script.
pub(super) fn script(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    let command = &mut Arguments::with_variables();
    clap_complete::generate(shell, command, "squall", &mut script);
    output::document(&String::from_utf8_lossy(&script))
}

/// Writes a man page for each command into a directory.
pub(super) fn man(directory: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::could_not(directory.display(), error);
    if directory.exists() && !directory.is_dir() {
        let directory = directory.display();
        return Err(Failure::Usage(format!(
            "{directory} is not a directory; pass a directory, which is created if it does not exist"
        )));
    }
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Arguments::with_variables(), directory).map_err(failed)
}
