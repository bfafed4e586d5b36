//! How far a run is, on stderr: a bar on a terminal, plain lines elsewhere.

use serde_json::Value;
use squall_harness::run::{CellState, RunState};

use super::output;
use super::paint::Paint;
use crate::client::Event;

/// Characters of the bar.
const WIDTH: u64 = 24;

/// Plain lines that tell of invocations, at most.
const LINES: u64 = 10;

/// What is known of a run that is under way.
#[derive(Debug)]
pub(crate) struct Progress {
    on_terminal: bool,
    paint: Paint,
    state: Option<RunState>,
    done: u64,
    of: u64,
    passed: u64,
    failed: u64,
    other: u64,
    /// How many tenths were told of.
    told: u64,
}

impl Progress {
    /// Nothing yet.
    pub(crate) fn new(on_terminal: bool, paint: Paint) -> Self {
        Self {
            on_terminal,
            paint,
            state: None,
            done: 0,
            of: 0,
            passed: 0,
            failed: 0,
            other: 0,
            told: 0,
        }
    }

    /// Whether somebody must say yes before it goes on.
    pub(crate) fn waits_for_a_yes(&self) -> bool {
        self.state == Some(RunState::AwaitingApproval)
    }

    /// Tells of an event.
    pub(crate) fn tell(&mut self, event: &Event) {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let line = self.take(&event.name, &data);
        if self.on_terminal {
            if let Some(line) = line.filter(|_| event.name == "state") {
                output::draw_over("");
                output::tell_line(&line);
            }
            output::draw_over(&self.bar());
        } else if let Some(line) = line {
            output::tell_line(&line);
        }
    }

    /// Says something beside.
    pub(crate) fn say(&self, line: &str) {
        if self.on_terminal {
            output::draw_over("");
        }
        output::tell_line(line);
    }

    /// Leaves nothing of the bar.
    pub(crate) fn end(&self) {
        if self.on_terminal {
            output::draw_over("");
        }
    }

    /// Takes an event in; gives the line that tells of it where lines do.
    fn take(&mut self, name: &str, data: &Value) -> Option<String> {
        let text = |member: &str| data[member].as_str().unwrap_or_default();
        let number = |member: &str| data[member].as_u64().unwrap_or_default();
        match name {
            "state" => {
                self.state = RunState::parse(text("state"));
                (self.state? == RunState::AwaitingApproval).then(|| {
                    let id = text("id");
                    format!("waiting for a yes: `squall runs approve {id}`")
                })
            }
            "progress" => {
                (self.done, self.of) = (number("done"), number("of"));
                let tenth = self.done * LINES / self.of.max(1);
                let is_new = tenth > self.told;
                self.told = tenth.max(self.told);
                is_new.then(|| format!("invocation {} of {}", self.done, self.of))
            }
            "cell" => self.cell(data),
            _ => None,
        }
    }

    fn cell(&mut self, data: &Value) -> Option<String> {
        let text = |member: &str| data[member].as_str().unwrap_or_default();
        let state: CellState = serde_json::from_value(data["state"].clone()).ok()?;
        let word = match state {
            CellState::Passed => {
                self.passed += 1;
                return None;
            }
            CellState::Failed => {
                self.failed += 1;
                self.paint.bad("failed")
            }
            CellState::Error => {
                self.other += 1;
                self.paint.bad("not judged")
            }
            CellState::NotExercised | CellState::NotApplicable => {
                self.other += 1;
                return None;
            }
        };
        Some(format!(
            "{word}: {} under {}",
            text("invariant"),
            text("scenario")
        ))
    }

    /// The bar.
    fn bar(&self) -> String {
        let paint = self.paint;
        if self.of == 0 {
            let state = self.state.map_or("requested", RunState::as_str);
            return paint.faint(state.replace('_', " "));
        }
        let full = (self.done * WIDTH / self.of).min(WIDTH);
        let blocks = |count: u64, block: &str| (0..count).map(|_| block).collect::<String>();
        let mut line = format!(
            "{}{} invocation {} of {}",
            blocks(full, "█"),
            paint.faint(blocks(WIDTH - full, "░")),
            self.done,
            self.of,
        );
        let counts = [
            (self.passed, paint.good("passed")),
            (self.failed, paint.bad("failed")),
            (self.other, paint.notable("without a verdict")),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        line.extend(counts.map(|(count, word)| format!(", {count} {word}")));
        line
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_under_way_is_told_in_few_lines_or_in_one() {
        let mut progress = Progress::new(false, Paint::plain());
        let mut lines = vec![progress.bar()];
        let asked = |done: u64| ("progress", json!({ "done": done, "of": 40 }));
        let cell = |state: &str| {
            (
                "cell",
                json!({ "invariant": "completes", "scenario": "outage", "state": state }),
            )
        };
        let mut events = vec![
            (
                "state",
                json!({ "id": "0193", "state": "awaiting_approval" }),
            ),
            ("state", json!({ "id": "0193", "state": "running" })),
        ];
        events.extend((1..=40).map(asked));
        events.extend(["passed", "failed", "not_exercised", "error"].map(cell));
        for (name, data) in events {
            lines.extend(progress.take(name, &data));
        }
        lines.push(progress.bar());
        insta::assert_snapshot!(lines.join("\n"));
    }
}
