//! The checks of `squall verify`.

use squall_harness::run::{CheckRecord, CheckState};

use super::super::clean;
use super::super::paint::Paint;
use super::super::table::wrap;

/// Longest line.
const WIDTH: usize = 90;

/// Most characters of what was found.
const FOUND: usize = 600;

/// A check, and what to change if it did not pass; `place` resolves a pointer into the suite.
pub(crate) fn render(
    check: &CheckRecord,
    place: impl Fn(&str) -> String,
    paint: Paint,
) -> Vec<String> {
    let state = match check.state {
        CheckState::Passed => paint.good("ok     "),
        CheckState::Warned => paint.notable("warning"),
        CheckState::Failed => paint.bad("failed "),
        CheckState::Skipped => paint.faint("skipped"),
    };
    let mut found = wrap(&clean(&check.found, FOUND), WIDTH).into_iter();
    let first = found.next().unwrap_or_default();
    let name = clean(&check.name, 20);
    let mut lines = vec![format!(
        "{state}  {}  {first}",
        paint.name(format!("{name:<9}"))
    )];
    let indented = |line: String| format!("                    {line}");
    lines.extend(found.map(indented));
    if check.state == CheckState::Passed || check.state == CheckState::Skipped {
        return lines;
    }
    let place = check.pointer.as_deref().map(place);
    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
    if let Some(advice) = &check.advice {
        let advice = wrap(&format!("{place}{}", clean(advice, FOUND)), WIDTH);
        let advice = advice.into_iter().map(|line| indented(paint.strong(line)));
        lines.extend(advice);
    }
    lines
}
