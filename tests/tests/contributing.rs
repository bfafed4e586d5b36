//! The worked examples of `CONTRIBUTING.md`, carried out on a copy of the workspace: compiled, and tested
//! by the tests that they bring.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What of the workspace is copied.
const COPIED: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "rustfmt.toml",
    "CHANGELOG.md",
    "docs",
    "dialects",
    "profiles",
    "journal",
    "proxy",
    "harness",
    "control-api",
    "cli",
    "tests",
    "fuzz",
];

/// What of these is not: what was installed or built.
const LEFT_OUT: &[&str] = &[
    "node_modules",
    "target",
    ".venv",
    "__pycache__",
    "artifacts",
];

/// The examples' own tests, by crate.
const TESTS: [(&str, &[&str]); 3] = [
    ("squall-dialects", &["--test", "corpus"]),
    ("squall-profiles", &["--test", "decisions", "answers"]),
    ("squall-harness", &["--lib", "turns_are_counted"]),
];

#[test]
fn the_worked_examples_compile_and_pass_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contributing");
    let mut files = BTreeMap::new();
    for name in COPIED {
        gather(&root.join(name), &mut files);
    }
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let parts = parts(&text);
    let new = parts.iter().filter(|part| part.is_new).count();
    assert!(new >= 7 && parts.len() > new, "{parts:#?}");
    for part in &parts {
        carry_out(part, &mut files, root);
    }
    let mut earlier = BTreeMap::new();
    if copy.exists() {
        gather(&copy, &mut earlier);
    }
    for file in earlier.keys() {
        let name = file.strip_prefix(&copy).expect("below the copy");
        if !files.contains_key(&root.join(name)) {
            fs::remove_file(file).expect("one that is gone");
        }
    }
    // What is as it was is not touched, so that only what changed is compiled again.
    for (file, bytes) in &files {
        let file = copy.join(file.strip_prefix(root).expect("below the workspace"));
        if fs::read(&file).ok().as_ref() != Some(bytes) {
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, bytes).expect("a copy");
        }
    }
    cargo(&copy, &["check", "--tests", "-p", "squall-tests"]);
    for (of, arguments) in TESTS {
        let told = cargo(&copy, &[&["test", "-p", of], arguments].concat());
        assert!(!told.contains("running 0 tests"), "{of}: {told}");
    }
}

fn gather(path: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if LEFT_OUT.contains(&&*name) || path.is_symlink() {
        return;
    }
    if path.is_file() {
        files.insert(path.to_owned(), fs::read(path).expect("a file"));
        return;
    }
    for entry in fs::read_dir(path).expect("a folder") {
        gather(&entry.expect("an entry").path(), files);
    }
}

/// Runs cargo there, with this workspace's builds of what others wrote.
fn cargo(copy: &Path, arguments: &[&str]) -> String {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .arg("--locked")
        .current_dir(copy)
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR"))
                .parent()
                .expect("target"),
        )
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output()
        .expect("cargo");
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (told(&output.stdout), told(&output.stderr));
    assert!(output.status.success(), "{arguments:?}\n{out}\n{err}");
    out
}

/// What an example does to one file.
#[derive(Debug, PartialEq)]
struct Part {
    file: String,
    is_new: bool,
    /// Each with its first character: `+`, `-`, or a space.
    lines: Vec<String>,
}

/// The blocks that name files.
fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let block = lines.by_ref().take_while(|line| line.trim() != "```");
        let block: Vec<_> = block
            .map(|line| line.get(indent..).unwrap_or_default())
            .collect();
        if let Some(file) = language.strip_prefix("rust ") {
            let lines = block.iter().map(|line| format!("+{line}"));
            parts.push(Part {
                file: file.to_owned(),
                is_new: true,
                lines: lines.collect(),
            });
        } else if language == "diff" {
            parts.extend(changes(&block));
        }
    }
    parts
}

fn changes(block: &[&str]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in block {
        let named = ["+++ ", "--- "].map(|mark| line.strip_prefix(mark));
        match (named, parts.last_mut()) {
            ([Some(file), _] | [_, Some(file)], _) => parts.push(Part {
                file: file.to_owned(),
                is_new: named[0].is_some(),
                lines: Vec::new(),
            }),
            (_, Some(part)) => part.lines.push((*line).to_owned()),
            // A line for users, in a file that the text names.
            (_, None) => {}
        }
    }
    parts
}

/// Puts what is added behind the line that it follows, or at the end where none is given.
fn carry_out(part: &Part, files: &mut BTreeMap<PathBuf, Vec<u8>>, root: &Path) {
    let file = root.join(&part.file);
    assert_eq!(files.contains_key(&file), !part.is_new, "{}", part.file);
    let was = files.remove(&file).unwrap_or_default();
    let was = String::from_utf8(was).expect("text");
    let mut lines: Vec<_> = was.lines().map(str::to_owned).collect();
    let mut at = lines.len();
    let mut found = 0;
    for line in &part.lines {
        let (mark, text) = line.split_at(line.len().min(1));
        if mark == "+" {
            lines.insert(at, text.to_owned());
            at += 1;
            continue;
        }
        let place = lines[found..].iter().position(|other| other == text);
        let place = found
            + place
                .unwrap_or_else(|| panic!("CONTRIBUTING.md: {} has no line {text:?}", part.file));
        if mark == "-" {
            lines.remove(place);
            at = place;
        } else {
            at = place + 1;
        }
        found = at;
    }
    files.insert(file, (lines.join("\n") + "\n").into_bytes());
}
