//! What a person sees: progress on a terminal, and plain lines where there is none.

use serde_json::json;
use squall_tests::Daemon;
use squall_tests::daemon::binary;
use squall_tests::program::{clean, python, script};

use crate::desk::{CommandResult, Desk, suite_of};

#[test]
fn progress_is_a_bar_on_a_terminal_and_nothing_of_it_stays() {
    let desk = Desk::new();
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "unavailable"));
    let mut command = clean(python());
    command.arg(script("on_terminal.py")).arg(binary());
    command.args(["contract", "run", "-c"]).arg(&suite);
    command.env("SQUALL_HOME", desk.home()).env("TERM", "xterm");
    command.current_dir(desk.directory.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\r\x1b[2K"), "a bar is drawn over: {said:?}");
    assert!(said.contains(" invocation 1 of 2"), "{said:?}");
    // What stays once the bar was drawn over.
    let shown: Vec<_> = (said.lines())
        .map(|line| line.rsplit("\x1b[2K").next().unwrap_or_default())
        .collect();
    assert!(!shown.join("\n").contains('█'), "{shown:#?}");
    let closing = shown.last().unwrap();
    assert!(
        closing.starts_with("squall contract: passed score=100 "),
        "{shown:#?}"
    );
}

/// What a name may hold that a terminal obeys: its title, colours, a cleared screen, a line of our own, the
/// direction of what follows.
const OBEYED: &str = "x\u{1b}]0;PWN\u{7}\u{1b}[2J\nfake: passed \u{202e}desrever";

#[test]
fn names_from_outside_move_nothing_on_the_terminal() {
    let desk = Desk::new();
    let mut suite = suite_of(&desk.agent("/json", &[]), "sunny");
    suite["name"] = json!(format!("suite {OBEYED}"));
    suite["contract"]["invariants"][1]["id"] = json!(format!("id {OBEYED}"));
    suite["contract"]["chaos_matrix"][1]["name"] = json!(format!("outage {OBEYED}"));
    let file = desk.write(&suite);
    let judged = desk.run(&["ci"], &file);
    judged.ended(1);
    let id = judged.closing().rsplit("run=").next().unwrap().to_owned();

    let exported = ["replay", "export", "--run", &id, "--output", "kept"];
    let exported = desk.squall(&exported).output().unwrap().into();
    let mut told: Vec<CommandResult> = vec![judged, exported];
    let daemon = Daemon::at_home(desk.home(), &json!({}));
    let server = format!("--server=http://{}", daemon.api.address);
    for arguments in [
        &["runs", "list"][..],
        &["runs", "list", "--json"],
        &["runs", "watch", &id],
        &["runs", "show", &id],
    ] {
        let mut command = desk.squall(arguments);
        told.push(command.arg(&server).output().unwrap().into());
    }
    for (number, told) in told.iter().enumerate() {
        for said in [&told.out, &told.err] {
            let obeyed = |found: char| (found.is_control() && found != '\n') || found == '\u{202e}';
            assert!(!said.contains(obeyed), "{number}: {said:?}");
            let faked = said.lines().any(|line| line.starts_with("fake"));
            assert!(!faked, "{number}: {said}");
        }
        assert!(
            format!("{}{}", told.out, told.err).contains("PWN"),
            "{number}: {told:#?}"
        );
    }
}
