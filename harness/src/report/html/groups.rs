//! The failed invocations in groups, with an example of each.

use maud::{Markup, html};

use super::{cells, headings, left_out, scrolled};
use crate::report::shown::cut;
use crate::report::{Report, words};

/// Maximum number of groups.
const MOST: usize = 100;

/// Longest prompt and longest reason, in characters.
const MOST_TEXT: usize = 400;

pub(super) fn part(report: &Report) -> Option<Markup> {
    let groups = &report.failure_groups;
    let shown = cells::shown(&report.run);
    let shrunk = words::shrunk(&report.run);
    let table = html! {
        table {
            caption { "Failed invocations with the same invariant, fault and call, the largest group first." }
            (headings(&["Failed", "Invariant", "Cause", "Scenarios", "Example"]))
            tbody {
                @for group in groups.iter().take(MOST) {
                    @let prompt = cut(&group.example.prompt, MOST_TEXT).0;
                    tr {
                        td class="number" { (group.invocations) }
                        th scope="row" { (group.invariant) small { (group.severity) } }
                        td { (group.cause()) }
                        td { (group.scenarios.join(", ")) }
                        td {
                            @if shown.contains(&group.cell) {
                                a href={ "#cell-" (group.cell) } { (prompt) }
                            } @else {
                                (prompt)
                            }
                            p class="soft" { (cut(group.reason(), MOST_TEXT).0) }
                        }
                    }
                }
            }
        }
    };
    (!groups.is_empty()).then(|| {
        html! {
            (scrolled("Failures by cause", &table))
            (left_out(groups.len(), MOST, "groups"))
            @if !shrunk.is_empty() {
                h3 { "Faults that are enough" }
                ul class="plain" { @for line in &shrunk { li { (line) } } }
            }
        }
    })
}
