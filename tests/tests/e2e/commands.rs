//! Commands without a daemon, and what a command line alone can say.

use serde_json::Value;

use crate::desk::{Desk, Told, suite_of};

fn run(desk: &Desk, arguments: &[&str]) -> Told {
    Told::from(desk.squall(arguments).output().unwrap())
}

/// The document that a command printed.
fn document(told: &Told) -> Value {
    assert_eq!(told.code, Some(0), "{told:#?}");
    serde_json::from_str(&told.out).unwrap()
}

#[test]
fn profiles_are_shown_without_a_daemon() {
    let desk = Desk::new();
    let directory = desk.directory.path();
    std::fs::create_dir(directory.join("profiles")).unwrap();
    std::fs::write(directory.join("squall.yaml"), "profiles: profiles\n").unwrap();
    let text = "tool_faults: [{ mode: error }]\n";
    std::fs::write(directory.join("profiles/mine.yaml"), text).unwrap();
    let listed = run(&desk, &["profile", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    for (name, source) in [("brownout", "builtin"), ("mine", "file")] {
        let line = listed.out.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {listed:#?}"));
        assert!(line.contains(source), "{line}");
    }
    let listed = document(&run(&desk, &["profile", "list", "--json"]));
    let names = listed["items"].as_array().unwrap().iter();
    assert!(names.clone().any(|one| one["name"] == "mine"), "{listed}");
    assert_eq!(run(&desk, &["profile", "show", "mine"]).out, text);
    let unknown = run(&desk, &["profile", "show", "mien"]);
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
}

#[test]
fn runs_are_shown_without_a_daemon() {
    let desk = Desk::new();
    let none = run(&desk, &["runs", "list"]);
    assert!(none.out.contains("no runs"), "{none:#?}");
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "unavailable"));
    let told = desk.run(&["contract", "run"], &suite);
    let id = told.closing().split("run=").nth(1).expect("the run's id");
    let listed = run(&desk, &["runs", "list"]);
    assert!(listed.out.contains(id), "{id}: {listed:#?}");
    let shown = run(&desk, &["runs", "show", id]);
    assert!(shown.out.contains("says-so"), "{shown:#?}");
    let shown = document(&run(&desk, &["runs", "show", id, "--json"]));
    assert_eq!(
        (&shown["id"], &shown["kind"]),
        (&id.into(), &"contract".into())
    );
}
