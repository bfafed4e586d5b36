//! The replayed sessions: their results, and the calls in which the agent differs from them.

use maud::{Markup, html};

use super::{headings, left_out, scrolled};
use crate::report::words;
use crate::run::{DivergenceState, ReplayRecord, RunRecord};

/// Maximum number of calls of a session.
const MOST: usize = 100;

pub(super) fn part(run: &RunRecord) -> Option<Markup> {
    (!run.replays.is_empty()).then(|| html! { @for replay in &run.replays { (session(replay)) } })
}

fn session(replay: &ReplayRecord) -> Markup {
    let calls = replay.calls.iter();
    let calls: Vec<_> = calls
        .filter(|call| call.state != DivergenceState::Same)
        .collect();
    let table = html! {
        table {
            (headings(&["State", "Call", "Argument", "Recorded", "Made"]))
            tbody {
                @for call in calls.iter().take(MOST) {
                    @if call.changes.is_empty() {
                        tr { td { (call.state.as_str()) } td { (call.call) } td {} td {} td {} }
                    }
                    @for change in &call.changes {
                        tr {
                            td { (call.state.as_str()) }
                            td { (call.call) }
                            td { code { (change.pointer) } }
                            td { (change.recorded.as_deref().unwrap_or("–")) }
                            td { (change.made.as_deref().unwrap_or("–")) }
                        }
                    }
                }
            }
        }
    };
    html! {
        p {
            @if let Some(name) = &replay.name { (name) " – " }
            (words::replayed(replay))
        }
        @if !calls.is_empty() {
            (scrolled(&format!("Calls of {}", replay.session), &table))
            (left_out(calls.len(), MOST, "calls"))
        }
    }
}
