//! The pages for contributors name files that exist, and quote code as it is in these files.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 5] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/extending/dialect.md",
    "docs/extending/fault.md",
    "docs/extending/invariant.md",
];

/// Text in backticks that begins with one of these is a path.
const FOLDERS: [&str; 11] = [
    "bench/",
    "cli/",
    "control-api/",
    "dialects/",
    "docs/",
    "fuzz/",
    "harness/",
    "journal/",
    "profiles/",
    "proxy/",
    "tests/",
];

fn in_workspace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(in_workspace(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The blocks of Rust that name a file, each with this file.
fn quotes(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("```rust ").skip(1);
    blocks
        .map(|block| {
            let (file, rest) = block.split_once('\n').expect("a block");
            let (code, _) = rest.split_once("```").expect("the end of a block");
            (file, code)
        })
        .collect()
}

/// The paths in backticks; `NAME` stands for a file of the reader's own.
fn paths(page: &str) -> Vec<&str> {
    let texts = page.split('`').skip(1).step_by(2);
    texts
        .filter(|text| FOLDERS.iter().any(|folder| text.starts_with(folder)))
        .filter(|text| !text.contains("NAME") && !text.contains(char::is_whitespace))
        .collect()
}

#[test]
fn quoted_code_is_in_the_file_that_is_named() {
    let mut quoted = 0;
    for name in PAGES {
        let page = read(name);
        for (file, code) in quotes(&page) {
            assert!(read(file).contains(code), "{name}: {file} has no\n{code}");
            quoted += 1;
        }
    }
    assert!(quoted >= 5, "{quoted} quotes");
}

#[test]
fn named_files_exist() {
    for name in PAGES {
        let page = read(name);
        let paths = paths(&page);
        assert!(!paths.is_empty(), "{name}");
        for path in paths {
            assert!(in_workspace(path).exists(), "{name}: {path}");
        }
    }
}
