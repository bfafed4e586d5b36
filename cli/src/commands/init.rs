//! `squall init`: writes a first suite.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use serde_json::json;
use squall_harness::report::shell_word;
use squall_journal::redact::Redactor;

use crate::args::{DEFAULT_SUITE, InitArgs};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;

/// The suite without its agent.
const SUITE: &str = include_str!("init/suite.yaml");

/// The place of the agent in it.
const HERE: &str = "{agent}";

/// The agent, if no program is given.
const ENDPOINT: &str = include_str!("init/endpoint.yaml");

pub(super) fn run(init: &InitArgs) -> Result<(), Failure> {
    if is_json(&init.file) {
        return Err(Failure::Usage(format!(
            "{} would be JSON, but the suite is YAML with comments; pass a file name that ends in `.yaml`",
            init.file.display()
        )));
    }
    let (text, keys) = suite(&init.command)?;
    write(&init.file, &text, init.force)?;
    for key in keys {
        output::report_line(&format!(
            "the command contains a secret key; {} has `${{{key}}}` instead, so set that variable",
            init.file.display()
        ));
    }
    output::print(&next(init, Paint::stdout()))
}

/// The suite with the program as its agent, and the variables that replace keys in the command.
fn suite(command: &[OsString]) -> Result<(String, Vec<String>), Failure> {
    let mut keys = Vec::new();
    if command.is_empty() {
        return Ok((SUITE.replace(HERE, ENDPOINT.trim_end()), keys));
    }
    let words = command.iter().map(|word| {
        let text = word.to_str().ok_or_else(|| {
            let word = word.to_string_lossy();
            Failure::Usage(format!("`{word}` is not UTF-8, and a suite must be"))
        })?;
        // JSON is YAML.
        Ok(json!(without_keys(text, &mut keys)).to_string())
    });
    let words = words.collect::<Result<Vec<_>, Failure>>()?.join(", ");
    let agent = format!(
        "# Started for each prompt, which it reads on stdin; stdout is its answer. docs/agents.md has other kinds.\n\
         agent:\n  type: command\n  command: [{words}]\n  timeout: 60000                       # milliseconds for one answer"
    );
    Ok((SUITE.replace(HERE, &agent), keys))
}

/// A word of the command with each key replaced by a variable; `${` in the word would be a variable too.
fn without_keys(word: &str, keys: &mut Vec<String>) -> String {
    let plain = |text: &str| text.replace("${", "$${");
    let (mut written, mut from) = (String::new(), 0);
    for key in Redactor::default().find(word) {
        let name = match keys.len() {
            0 => "AGENT_KEY".to_owned(),
            others => format!("AGENT_KEY_{}", others + 1),
        };
        written.push_str(&plain(&word[from..key.range.start]));
        let _ = write!(written, "${{{name}}}");
        keys.push(name);
        from = key.range.end;
    }
    written + &plain(&word[from..])
}

fn write(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let failed = |error: std::io::Error| {
        let file = file.display();
        if error.kind() == ErrorKind::AlreadyExists {
            return Failure::Usage(format!(
                "{file} exists already; pass another file name, or `--force` to overwrite it"
            ));
        }
        Failure::could_not(file, error)
    };
    let mut file = options.open(file).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

fn is_json(file: &Path) -> bool {
    let ending = file.extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

/// What to do next; the file's name is quoted for a shell.
fn next(init: &InitArgs, paint: Paint) -> String {
    let file = init.file.display().to_string();
    let option = match &*file {
        DEFAULT_SUITE => String::new(),
        other => format!(" -c {}", shell_word(other)),
    };
    let missing = if init.command.is_empty() {
        "your agent and its prompts"
    } else {
        "your agent's prompts"
    };
    format!(
        "wrote {file}. Fill in {missing}, then run:\n\n  {}   {}\n  {}       {}\n",
        paint.name(format!("squall verify{option}")),
        paint.faint("checks that the agent and its traffic are ready"),
        paint.name(format!("squall ci{option}")),
        paint.faint("runs the contract, writes reports and prints a score"),
    )
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;
    use squall_harness::agents::settings::Way;

    use super::*;

    fn init(file: &Path, command: &[&str]) -> InitArgs {
        InitArgs {
            file: file.to_owned(),
            force: false,
            command: command.iter().map(OsString::from).collect(),
        }
    }

    #[test]
    fn the_printed_commands_are_quoted_for_a_shell() {
        for (file, words) in [
            ("suite.yaml", "squall ci  "),
            ("dir/suite.yaml", "squall ci -c dir/suite.yaml "),
            ("my suite.yaml", "squall ci -c 'my suite.yaml' "),
            ("it's.yaml", r"squall ci -c 'it'\''s.yaml' "),
        ] {
            let printed = next(&init(Path::new(file), &[]), Paint::plain());
            assert!(printed.contains(words), "{printed}");
        }
        insta::assert_snapshot!(next(&init(Path::new("suite.yaml"), &[]), Paint::plain()));
    }

    #[test]
    fn init_writes_no_json_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("suite.JSON");
        assert!(matches!(run(&init(&file, &[])), Err(Failure::Usage(_))));
        assert!(!file.exists());
    }

    #[test]
    fn the_first_suite_is_valid_and_has_no_warnings() {
        let none = |_: &str| Err(squall_documents::VariableError::NotSet);
        for command in [
            &[][..],
            &["python", "agent.py", "--name", "it's: #1", "${HOME}", "no"],
        ] {
            let words: Vec<_> = command.iter().map(OsString::from).collect();
            let (text, keys) = suite(&words).expect("a suite");
            assert!(keys.is_empty(), "{keys:?}");
            let read = squall_harness::suite::parse("suite.yaml", &text, Variables::From(&none));
            let read = read.expect("a valid suite");
            let notes: Vec<_> = read.notes.iter().map(ToString::to_string).collect();
            assert!(notes.is_empty(), "{notes:#?}");
            if let Way::Command(words) = read.agent.way {
                assert_eq!(words, command);
            }
        }
    }

    #[test]
    fn a_key_of_the_command_is_a_variable_in_the_suite() {
        let key = format!("sk-{}", "aB3dE5gH7jK9".repeat(4));
        let words = [
            "agent".to_owned(),
            "--api-key".to_owned(),
            key.clone(),
            format!("--other=${{X}}{key}"),
        ];
        let words = words.map(OsString::from);
        let (text, keys) = suite(&words).expect("a suite");
        assert!(!text.contains(&key), "{text}");
        assert_eq!(keys, ["AGENT_KEY", "AGENT_KEY_2"]);
        let set = |name: &str| Ok(format!("<{name}>"));
        let read = squall_harness::suite::parse("suite.yaml", &text, Variables::From(&set));
        let Way::Command(read) = read.expect("a valid suite").agent.way else {
            panic!("a command");
        };
        assert_eq!(
            read[1..],
            ["--api-key", "<AGENT_KEY>", "--other=${X}<AGENT_KEY_2>"]
        );
    }

    #[test]
    fn an_existing_file_is_only_overwritten_with_force() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("suite.yaml");
        write(&file, "new", false).expect("written");
        std::fs::write(&file, "mine").expect("written");
        assert!(write(&file, "new", false).is_err());
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "mine");
        write(&file, "new", true).expect("written");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "new");
    }
}
