//! `squall init`: a suite to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::args::Init;
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;

/// A suite that says what each of its lines is for.
const SUITE: &str = include_str!("init/suite.yaml");

pub(super) fn run(init: &Init) -> Result<(), Failure> {
    write(&init.file, init.force)?;
    output::print(&next(&init.file, Paint::stdout()))
}

fn write(file: &Path, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let told = |error: std::io::Error| {
        let file = file.display();
        if error.kind() == ErrorKind::AlreadyExists {
            return Failure::Usage(format!(
                "{file} is there already; name another file, or write over it with `--force`"
            ));
        }
        Failure::could_not(file, error)
    };
    let mut file = options.open(file).map_err(told)?;
    file.write_all(SUITE.as_bytes()).map_err(told)
}

fn next(file: &Path, paint: Paint) -> String {
    let file = file.display();
    let commands = [
        (
            format!("squall contract validate -c {file}"),
            "does it make sense?",
        ),
        (format!("squall verify -c {file}"), "can a run be made?"),
        (format!("squall ci -c {file}"), "how good is the agent?"),
    ];
    let width = commands.iter().map(|(command, _)| command.len()).max();
    let width = width.unwrap_or(0);
    let lines = commands.map(|(command, what)| {
        let space = " ".repeat(width - command.len());
        format!("  {}{space}   {}\n", paint.name(command), paint.faint(what))
    });
    format!(
        "{file} is written; put in where your agent is and what it is asked, then\n\n{}",
        lines.concat()
    )
}

#[cfg(test)]
mod tests {
    use squall_harness::suite;
    use squall_profiles::variables::Variables;

    use super::*;

    #[test]
    fn the_suite_to_begin_with_is_valid_and_nothing_in_it_is_odd() {
        let none = |_: &str| Err(std::env::VarError::NotPresent);
        let read = suite::parse("suite.yaml", SUITE, Variables::From(&none));
        let read = read.expect("a valid suite");
        let notes: Vec<_> = read.notes.iter().map(ToString::to_string).collect();
        assert!(notes.is_empty(), "{notes:#?}");
    }

    #[test]
    fn a_file_that_is_there_is_not_written_over_unasked() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("suite.yaml");
        write(&file, false).expect("written");
        std::fs::write(&file, "mine").expect("written");
        assert!(write(&file, false).is_err());
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "mine");
        write(&file, true).expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), SUITE);
    }

    #[test]
    fn the_next_commands_are_told() {
        insta::assert_snapshot!(next(Path::new("suite.yaml"), Paint::plain()));
    }
}
