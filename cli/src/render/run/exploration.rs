//! The heat map of an exploration: a line for each fault, a column for each call.

use squall_harness::report::{FAILED_PAIRS, exploration_lines, heat_map};
use squall_harness::run::{ExplorationRecord, RunRecord};

use crate::render::clean;
use crate::render::paint::Paint;
use crate::render::table::{Table, wrap};

/// Longest line.
const WIDTH: usize = 100;

/// Most characters of a call.
const CALL: usize = 200;

/// The meaning of the marks.
const MARKS: [(&str, &str); 5] = [
    ("✓", "passed"),
    ("✗", "failed"),
    ("○", "not reached"),
    ("?", "not judged"),
    ("·", "not run"),
];

pub(super) fn render(
    run: &RunRecord,
    exploration: &ExplorationRecord,
    paint: Paint,
) -> Vec<String> {
    let map = heat_map(exploration);
    let numbers = (1..=map.calls.len()).map(|number| number.to_string());
    let mut table = Table::new(["FAULT".to_owned()].into_iter().chain(numbers));
    for (fault, cells) in map.rows {
        let marks = cells.into_iter().map(|cell| {
            let mark = MARKS.iter().find(|(_, word)| Some(*word) == cell);
            match mark.map_or("", |(mark, _)| *mark) {
                "✗" => paint.bad("✗"),
                "✓" => paint.good("✓"),
                other => other.to_owned(),
            }
        });
        table.row([fault].into_iter().chain(marks));
    }
    let calls = (1..).zip(&map.calls);
    let calls =
        calls.flat_map(|(number, call)| wrap(&format!("{number}: {}", clean(call, CALL)), WIDTH));
    let legend = MARKS
        .map(|(mark, word)| format!("{mark} {word}"))
        .join("  ");
    let mut lines: Vec<String> = table.render().lines().map(str::to_owned).collect();
    lines.push(paint.faint(legend));
    lines.extend(calls);
    if !map.failed_pairs.is_empty() {
        lines.push(String::new());
        lines.push(FAILED_PAIRS.to_owned());
        let pairs = map.failed_pairs.iter();
        lines.extend(pairs.flat_map(|pair| wrap(&format!("  {}", clean(pair, CALL)), WIDTH)));
    }
    lines.push(String::new());
    lines.extend(
        exploration_lines(run)
            .iter()
            .flat_map(|line| wrap(line, WIDTH)),
    );
    lines
}
