//! Progress of a run on stderr: a bar on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use squall_harness::run::{CellState, RunState};

use super::output;
use super::paint::Paint;

/// Most plain lines about invocations.
const LINES: u64 = 10;

/// The progress of one run.
#[derive(Debug)]
pub(crate) struct RunProgress {
    /// Hidden where stderr is not a terminal.
    bar: ProgressBar,
    paint: Paint,
    state: Option<RunState>,
    /// Cells that passed, that failed, and that have no verdict.
    cells: [u64; 3],
    /// How many tenths of the invocations have a line.
    tenths: u64,
}

impl RunProgress {
    /// Of a run that was requested.
    pub(crate) fn new(paint: Paint) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        bar.set_style(style("{msg}"));
        bar.set_message("requested");
        Self {
            bar,
            paint,
            state: None,
            cells: [0; 3],
            tenths: 0,
        }
    }

    /// Whether the run awaits approval.
    pub(crate) fn awaits_approval(&self) -> bool {
        self.state == Some(RunState::AwaitingApproval)
    }

    /// Shows an event of the run.
    pub(crate) fn show(&mut self, name: &str, data: &str) {
        let data: Value = serde_json::from_str(data).unwrap_or_default();
        let line = self.read(name, &data);
        if let Some(line) = line.filter(|_| self.bar.is_hidden() || name == "state") {
            self.print(&line);
        }
        if self.bar.length() == Some(0) {
            let state = self.state.map_or("requested", RunState::as_str);
            return self.bar.set_message(state.replace('_', " "));
        }
        let words = [
            self.paint.good("passed"),
            self.paint.bad("failed"),
            self.paint.notable("without a verdict"),
        ];
        let counts = self.cells.iter().zip(words);
        let counts = counts.filter(|(count, _)| **count > 0);
        let counts: Vec<_> = counts
            .map(|(count, word)| format!(", {count} {word}"))
            .collect();
        self.bar.set_message(counts.concat());
    }

    /// Prints a line above the bar.
    pub(crate) fn print(&self, line: &str) {
        self.bar.suspend(|| output::report_line(line));
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Reads an event; returns its line, if it has one.
    fn read(&mut self, name: &str, data: &Value) -> Option<String> {
        let text = |member: &str| data[member].as_str().unwrap_or_default();
        let number = |member: &str| data[member].as_u64().unwrap_or_default();
        match name {
            "state" => {
                self.state = RunState::parse(text("state"));
                (self.state? == RunState::AwaitingApproval).then(|| {
                    let id = text("id");
                    format!("awaiting approval: `squall runs approve {id}`")
                })
            }
            "progress" => {
                let (done, of) = (number("done"), number("of"));
                self.bar
                    .set_style(style("{bar:24} invocation {pos} of {len}{msg}"));
                self.bar.set_length(of);
                self.bar.set_position(done);
                let tenths = done * LINES / of.max(1);
                let is_new = tenths > self.tenths;
                self.tenths = tenths.max(self.tenths);
                is_new.then(|| format!("invocation {done} of {of}"))
            }
            "cell" => self.read_cell(data),
            _ => None,
        }
    }

    fn read_cell(&mut self, data: &Value) -> Option<String> {
        let text = |member: &str| data[member].as_str().unwrap_or_default();
        let state: CellState = serde_json::from_value(data["state"].clone()).ok()?;
        let (count, word) = match state {
            CellState::Passed => (0, None),
            CellState::Failed => (1, Some(self.paint.bad("failed"))),
            CellState::Error => (2, Some(self.paint.bad("not judged"))),
            CellState::NotExercised | CellState::NotApplicable => (2, None),
        };
        self.cells[count] += 1;
        let word = word?;
        Some(format!(
            "{word}: {} under {}",
            text("invariant"),
            text("scenario")
        ))
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("a valid template");
    style.progress_chars("██░")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_has_ten_lines_of_progress_and_one_for_each_failed_cell() {
        let mut progress = RunProgress::new(Paint::plain());
        let invocation = |done: u64| ("progress", json!({ "done": done, "of": 40 }));
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
        events.extend((1..=40).map(invocation));
        events.extend(["passed", "failed", "not_exercised", "error"].map(cell));
        let lines = events
            .iter()
            .filter_map(|(name, data)| progress.read(name, data));
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    }
}
