//! What a person sees: progress on a terminal, and plain lines where there is none.

use squall_tests::daemon::binary;
use squall_tests::program::{clean, python, script};

use crate::desk::{Desk, suite_of};

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
    assert!(said.contains("\r\x1b[K"), "a bar is drawn over: {said:?}");
    assert!(said.contains(" asked 1 of 3"), "{said:?}");
    // What stays once the bar was drawn over.
    let shown: Vec<_> = (said.lines())
        .map(|line| line.rsplit("\r\x1b[K").next().unwrap_or_default())
        .collect();
    assert!(!shown.join("\n").contains('█'), "{shown:#?}");
    let closing = shown.last().unwrap();
    assert!(
        closing.starts_with("squall contract: passed score=100 "),
        "{shown:#?}"
    );
}
