//! The heat map of an exploration.

use maud::{Markup, html};

use super::{headings, prose, scrolled};
use crate::report::exploration::{FAILED_PAIRS, exploration_lines, heat_map};
use crate::run::RunRecord;

pub(super) fn part(run: &RunRecord) -> Option<Markup> {
    let map = heat_map(run.exploration.as_ref()?);
    let names: Vec<_> = (1..=map.calls.len())
        .map(|number| number.to_string())
        .collect();
    let columns: Vec<_> = ["Fault"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let table = html! {
        table class="heat" {
            caption { "Faults by call." }
            (headings(&columns))
            tbody {
                @for (fault, cells) in &map.rows {
                    tr {
                        th scope="row" { (fault) }
                        @for cell in cells {
                            td { @if let Some(word) = cell { span class={ "cell " (word.replace(' ', "_")) } { (word) } } }
                        }
                    }
                }
            }
        }
    };
    Some(html! {
        @for line in exploration_lines(run) { p { (prose(&line)) } }
        (scrolled("Heat map of faults and calls", &table))
        ol { @for call in &map.calls { li { (call) } } }
        @if !map.failed_pairs.is_empty() {
            p { (FAILED_PAIRS) }
            ul { @for pair in &map.failed_pairs { li { (pair) } } }
        }
    })
}
