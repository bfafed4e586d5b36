//! Rules that an earlier one leaves nothing to do.

use squall_dialects::model::ModelError;

use super::touches_model_calls;
use crate::family::Family;
use crate::matching::{Match, Touches};
use crate::plan::{Plan, PlannedAnswer, Substitute};
use crate::rule::Rule;

/// An earlier rule that always decides the answer of every exchange this one matches.
pub(super) fn shadowed<'a>(rule: &Rule, earlier: impl Iterator<Item = &'a Rule>) -> Option<String> {
    let wants = rule.fault_mode.alone(&rule.fault);
    let mut earlier =
        earlier.filter(|other| other.trigger.is_unconditional() && other.fault.allowed.is_none());
    let by = earlier.find(|other| {
        leaves_nothing_for(&other.fault_mode.alone(&other.fault), &wants)
            && families_cover(other, rule)
            && covers(&other.matching, &rule.matching)
    })?;
    let (file, line) = (&by.origin.file, by.origin.position.line);
    let place = if *file == rule.origin.file {
        format!("on line {line}")
    } else {
        format!("in {file}:{line}")
    };
    Some(format!(
        "has no effect: rule `{}` {place} always decides the response first",
        by.id
    ))
}

/// Whether a rule that has decided the answer leaves the other nothing to do.
fn leaves_nothing_for(decided: &Plan, wants: &Plan) -> bool {
    let needs_the_answer =
        wants.instead.is_some() || wants.afterwards.is_some() || !wants.edits.is_empty();
    // These are for some of the exchanges that they match: an agent's handshake, a session of MCP, a call
    // that takes events, that continues another or is on a WebSocket.
    let decided_instead = decided.instead.as_ref().filter(|(_, answer)| {
        !matches!(
            answer,
            PlannedAnswer::Tls(_)
                | PlannedAnswer::SessionExpired
                | PlannedAnswer::EndlessProgress(_)
                | PlannedAnswer::ModelError(
                    ModelError::PreviousResponse | ModelError::ConnectionLimit
                )
        )
    });
    match (decided_instead, &decided.afterwards) {
        (Some(_), _) => {
            needs_the_answer || !wants.wait_after.is_empty() || !wants.request_edits.is_empty()
        }
        (None, Some((_, Substitute::Answer(_) | Substitute::Reset))) => needs_the_answer,
        // With nothing to reuse these two give way.
        (None, Some((_, Substitute::Stale | Substitute::Swapped)) | None) => false,
    }
}

/// Whether the kinds of exchange that `rule` touches are among those of `by`.
fn families_cover(by: &Rule, rule: &Rule) -> bool {
    match by.family() {
        Family::Network => true,
        Family::Tool if !by.matching.urls.is_empty() => true,
        // Without a URL a tool's rule touches tools only; so does one of the same form.
        Family::Tool => {
            rule.family() == Family::Tool
                && rule.matching.urls.is_empty()
                && !rule.matching.touches.in_results()
        }
        Family::Llm => {
            let at_connect = |rule: &Rule| rule.matching.touches == Touches::Upgrades;
            touches_model_calls(rule) && at_connect(by) == at_connect(rule)
        }
        Family::Context => rule.family() == by.family(),
    }
}

/// Whether every exchange that meets `narrow` meets `wide` too, as far as that can be told from the
/// conditions alone.
fn covers(wide: &Match, narrow: &Match) -> bool {
    // A glob that matches another one's text, its stars taken for letters, matches all it matches.
    let urls = wide.urls.is_empty()
        || (!narrow.urls.is_empty()
            && narrow.urls.alternatives().iter().all(|narrow| {
                wide.urls
                    .alternatives()
                    .iter()
                    .any(|wide| crate::glob::matches(wide, narrow, 0))
            }));
    let tool = match (&wide.tool, &narrow.tool) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => wide.name == narrow.name || wide.name.is_everything(),
        (Some(wide), None) => wide.name.is_everything() && narrow.urls.is_empty(),
    };
    let methods = wide.methods.as_ref().is_none_or(|wide| {
        narrow
            .methods
            .as_ref()
            .is_some_and(|narrow| narrow.iter().all(|one| wide.contains(one)))
    });
    urls && tool && methods && wide.status.is_none() && !wide.asks_for_headers_or_body()
}
