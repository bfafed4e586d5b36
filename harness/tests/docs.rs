//! What the pages of the docs show of suites and sessions can be written down as it stands there.

use std::collections::BTreeSet;
use std::path::Path;

use squall_documents::Variables;
use squall_harness::{session, suite};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(path.join(name)).expect("a page")
}

/// The blocks of YAML on a page.
fn blocks(page: &str) -> Vec<&str> {
    let behind = page.split("```yaml\n").skip(1);
    behind
        .map(|rest| rest.split("```").next().expect("a block"))
        .collect()
}

fn field(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// Lines that say the same field are examples of their own.
fn examples(block: &str) -> Vec<&str> {
    let mut fields = BTreeSet::new();
    let is_apart = block
        .lines()
        .filter_map(field)
        .any(|name| !fields.insert(name));
    if is_apart {
        block.lines().collect()
    } else {
        vec![block]
    }
}

#[test]
fn g61_what_is_shown_of_suites_is_valid() {
    let lookup = |name: &str| Ok(format!("the-{name}"));
    for name in ["suites.md", "agents.md", "invariants.md"] {
        let page = page(name);
        let shown: Vec<_> = blocks(&page).into_iter().flat_map(examples).collect();
        assert!(!shown.is_empty(), "{name}");
        for example in shown {
            let mut whole = example.to_owned() + "\n";
            let said: BTreeSet<_> = example.lines().filter_map(field).collect();
            for (needed, line) in [
                ("agent", "agent: {endpoint: 'http://agent.test/'}\n"),
                ("golden_prompts", "golden_prompts: [hello]\n"),
                ("invariants", "invariants: [{type: completes}]\n"),
            ] {
                if !said.contains(needed) {
                    whole += line;
                }
            }
            let read = suite::parse(name, &whole, Variables::From(&lookup));
            let read = read.unwrap_or_else(|errors| panic!("{whole}\n{errors:?}"));
            // Of a part it cannot be known what the rest makes of it.
            let is_whole = said.contains("agent") && said.contains("golden_prompts");
            assert!(!is_whole || read.notes.is_empty(), "{:?}", read.notes);
        }
    }
}

#[test]
fn g61_what_is_shown_of_sessions_is_valid() {
    let page = page("recordings.md");
    let shown = blocks(&page);
    assert!(!shown.is_empty());
    for example in shown {
        session::parse("recordings.md", example).unwrap_or_else(|errors| panic!("{errors:?}"));
    }
}
