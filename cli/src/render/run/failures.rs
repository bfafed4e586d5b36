//! The failures of a run by cause, and the cells that show nothing.

use squall_harness::count::count;
use squall_harness::report::{FailureGroup, exercised, failure_groups, severity_rank, shrunk};
use squall_harness::run::{CellRecord, CellState, RunRecord};

use crate::render::clean;
use crate::render::paint::Paint;
use crate::render::table::wrap;

/// Most groups, and most cells of each kind, that are shown.
const MOST_SHOWN: usize = 5;

/// Longest line.
const WIDTH: usize = 96;

/// Most characters of a prompt or an answer.
const MOST_TEXT: usize = 300;

/// Failed invocations in groups, cells that could not be judged, and cells of invariants that were exercised in no
/// scenario.
pub(super) fn render(run: &RunRecord, paint: Paint) -> Vec<String> {
    let mut lines = groups(run, paint);
    let of = |state: CellState| {
        let cells = run.cells.iter().filter(|cell| cell.state == state);
        let mut found: Vec<_> = cells.collect();
        found.sort_by_key(|cell| severity_rank(&cell.severity).unwrap_or(usize::MAX));
        found
    };
    let mut part = |what: &str, found: &[&CellRecord]| {
        if found.is_empty() {
            return;
        }
        let heading = format!("{} {what}", count(found.len(), "cell"));
        lines.extend(headed(&heading, found.len(), "worst", paint));
        let shown = found.iter().take(MOST_SHOWN);
        lines.extend(shown.flat_map(|cell| briefly(cell, paint)));
    };
    part("could not be judged", &of(CellState::Error));
    let mut idle = of(CellState::NotExercised);
    let exercised = exercised(run);
    idle.retain(|cell| !exercised.contains(cell.invariant.as_str()));
    part(
        "not exercised, of invariants that were exercised in no scenario",
        &idle,
    );
    lines
}

/// An empty line and a heading, with the number of omitted items.
fn headed(heading: &str, all: usize, first: &str, paint: Paint) -> [String; 2] {
    let rest = match all.saturating_sub(MOST_SHOWN) {
        0 => String::new(),
        more => format!("; the {first} {MOST_SHOWN}, {more} more in the report"),
    };
    [String::new(), paint.strong(format!("{heading}{rest}:"))]
}

fn groups(run: &RunRecord, paint: Paint) -> Vec<String> {
    let groups = failure_groups(run);
    if groups.is_empty() {
        return Vec::new();
    }
    let failed = groups.iter().map(|group| group.invocations).sum::<u64>();
    let heading = format!("{} by cause", count(failed, "failure"));
    let mut lines = headed(&heading, groups.len(), "largest", paint).to_vec();
    let shown = groups.iter().take(MOST_SHOWN);
    lines.extend(shown.flat_map(|group| at_length(group, paint)));
    let shrunk = shrunk(run);
    if !shrunk.is_empty() {
        lines.extend([String::new(), paint.strong("Faults that are enough:")]);
        let shrunk = shrunk
            .iter()
            .flat_map(|line| wrap(&clean(line, 4 * MOST_TEXT), WIDTH));
        lines.extend(shrunk.map(|line| format!("  {line}")));
    }
    lines
}

fn briefly(cell: &CellRecord, paint: Paint) -> Vec<String> {
    let mut lines = vec![head(cell, paint)];
    lines.extend(indented(cell.reason.as_deref().unwrap_or_default()));
    lines
}

fn at_length(group: &FailureGroup, paint: Paint) -> Vec<String> {
    let example = &group.example;
    let scenarios = group.scenarios.join(", ");
    let mut lines = vec![format!(
        "  {} × {} ({}): {}, under {}",
        group.invocations,
        paint.name(clean(&group.invariant, WIDTH)),
        group.severity,
        clean(&group.cause(), WIDTH),
        clean(&scenarios, WIDTH)
    )];
    lines.extend(indented(group.reason()));
    let answer = example.answer.as_deref().unwrap_or("none");
    let lineage = example.mutant.as_ref();
    let lineage = lineage.map(|mutant| ("mutation", mutant.lineage.join(", ")));
    let texts = lineage.iter().map(|(word, text)| (*word, &**text));
    for (word, text) in texts.chain([("prompt", &*example.prompt), ("answer", answer)]) {
        let text = wrap(&format!("{word}: {}", clean(text, MOST_TEXT)), WIDTH);
        let text = text.into_iter();
        lines.extend(text.map(|line| paint.faint(format!("    {line}"))));
    }
    let telling = example.telling.as_ref().or(example.exchanges.first());
    if let Some(exchange) = telling {
        let command = format!("squall explain {}", clean(exchange, 40));
        lines.push(format!("    {}", paint.name(command)));
    }
    lines
}

fn head(cell: &CellRecord, paint: Paint) -> String {
    format!(
        "  {} under {} ({})",
        paint.name(clean(&cell.invariant, WIDTH)),
        clean(&cell.scenario, WIDTH),
        cell.severity
    )
}

fn indented(text: &str) -> Vec<String> {
    let lines = wrap(&clean(text, MOST_TEXT), WIDTH);
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("    {line}")).collect()
}
