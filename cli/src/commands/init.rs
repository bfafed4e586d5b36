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
    if is_json(&init.file) {
        return Err(Failure::Usage(format!(
            "{} would be JSON, and the suite to begin with is YAML, with comments; name a file that ends with `.yaml`",
            init.file.display()
        )));
    }
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

fn is_json(file: &Path) -> bool {
    let ending = file.extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

/// A file's name as a shell takes it for one word.
fn in_a_shell(file: &Path) -> String {
    let name = file.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name;
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

fn next(file: &Path, paint: Paint) -> String {
    let word = in_a_shell(file);
    let file = file.display();
    let commands = [
        (
            format!("squall contract validate -c {word}"),
            "does it make sense?",
        ),
        (format!("squall verify -c {word}"), "can a run be made?"),
        (format!("squall ci -c {word}"), "how good is the agent?"),
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
    fn the_commands_can_be_typed_as_they_are_told() {
        for (file, word) in [
            ("dir/suite.yaml", "dir/suite.yaml"),
            ("my suite.yaml", "'my suite.yaml'"),
            ("it's.yaml", r"'it'\''s.yaml'"),
        ] {
            let told = next(Path::new(file), Paint::plain());
            assert!(told.contains(&format!("squall ci -c {word} ")), "{told}");
        }
    }

    #[test]
    fn no_yaml_is_written_where_json_belongs() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("suite.JSON");
        let init = Init {
            file: file.clone(),
            force: true,
        };
        assert!(matches!(run(&init), Err(Failure::Usage(_))));
        assert!(!file.exists());
    }

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
