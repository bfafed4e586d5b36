//! One invocation: prompt, answer, injected faults, and traffic.

use maud::{Markup, html};
use squall_journal::record::ExchangeRecord;

use super::{headings, left_out, prose, scrolled, soft};
use crate::count::{count, times};
use crate::report::shown::cut;
use crate::report::story::{Story, got};
use crate::report::words;
use crate::run::CellRecord;

/// Maximum number of invocations of a cell.
const MOST: usize = 5;

/// Longest prompt or answer, in characters.
const MOST_TEXT: usize = 4_000;

/// Maximum number of calls in a table.
const MOST_CALLS: usize = 200;

/// Invocations of a cell with their calls.
pub(super) fn part(stories: &[Story<'_>], cell: &CellRecord) -> Markup {
    let more = stories.len().saturating_sub(MOST);
    let others = cell.evidence.len().saturating_sub(stories.len());
    let mut said = Vec::new();
    if more > 0 {
        let invocations = count(more, "invocation");
        said.push(format!(
            "{invocations} more had the same result; the JSON form lists them."
        ));
    }
    if others > 0 {
        let prompts = count(others, "other invocation");
        said.push(format!("{prompts} of this cell went otherwise."));
    }
    html! {
        @for story in stories.iter().take(MOST) {
            div class="invocation" { (one(story, cell)) }
        }
        @if !said.is_empty() { (soft(&said.join(" "))) }
    }
}

fn one(story: &Story<'_>, cell: &CellRecord) -> Markup {
    let invocation = story.invocation;
    // The reason is omitted if the cell already shows it.
    let reason = invocation.reason.as_ref();
    let reason = reason.filter(|reason| Some(*reason) != cell.reason.as_ref());
    html! {
        div class="said" {
            div { h4 { (words::prompt_of(invocation)) } (long("Prompt", &invocation.prompt))
                @for line in words::mutation_of(invocation) { (soft(cut(&line, MOST_TEXT).0)) }
            }
            div {
                h4 { "Answer, after " (words::milliseconds(invocation.latency_ms)) }
                @match &invocation.answer {
                    Some(answer) => { (long("Answer", answer)) }
                    None => { p { "None." } }
                }
            }
        }
        @if let Some(reason) = reason { h4 { "Reason" } p { (prose(reason)) } }
        (injected(story, cell))
        @if story.calls.is_empty() && story.missing == 0 {
            (soft("No call of this invocation was seen on the wire."))
        }
        @if !story.calls.is_empty() {
            h4 { "On the wire" }
            (scrolled("Calls of this invocation", &table(story)))
            (left_out(story.calls.len(), MOST_CALLS, "calls"))
        }
        @if story.missing > 0 {
            @let calls = count(story.missing, "call");
            (soft(&format!("Not in this report any more: {calls} of this invocation.")))
        }
    }
}

fn injected(story: &Story<'_>, cell: &CellRecord) -> Markup {
    let injections = story.injections();
    html! {
        @if !injections.is_empty() {
            h4 { "Injected faults" }
            ul class="plain" {
                @for injection in &injections {
                    @let rule = injection.rule;
                    li {
                        strong { (rule.mode) } " into " code { (injection.on) }
                        ", " (times(injection.times)) ": the agent got "
                        strong { (injection.got) }
                        span class="soft" { " (rule " (rule.rule) " of " (words::origin(rule, cell)) ", " (rule.family) ")" }
                    }
                }
            }
        }
    }
}

/// A long text: shortened and scrollable by keyboard.
fn long(label: &str, text: &str) -> Markup {
    let (kept, left) = cut(text, MOST_TEXT);
    html! {
        // HTML ignores the first line break in a `pre`, so an extra one is added.
        pre tabindex="0" role="group" aria-label=(label) { "\n" (kept) }
        @if left > 0 { (soft(&format!("{left} bytes more in the JSON form of this report."))) }
    }
}

fn table(story: &Story<'_>) -> Markup {
    let rules = |exchange: &ExchangeRecord| {
        let rules = exchange
            .applied()
            .map(|rule| format!("{} ({})", rule.rule, rule.mode));
        rules.collect::<Vec<_>>().join(", ")
    };
    let took = |exchange: &ExchangeRecord| {
        let duration = exchange.duration_ms;
        duration.map_or_else(|| "–".to_owned(), words::milliseconds)
    };
    html! {
        table {
            (headings(&["After", "Call", "Got", "Took", "Injected", "Exchange"]))
            tbody {
                @for call in story.calls.iter().take(MOST_CALLS) {
                    @let exchange = call.exchange;
                    tr {
                        td class="number" { (call.at_ms) " ms" }
                        td { (exchange.method) " " (exchange.url) }
                        td {
                            span class="figure" { (got(exchange)) }
                            @if let Some(error) = &exchange.error { ": " (error) }
                        }
                        td class="number" { (took(exchange)) }
                        td { (rules(exchange)) }
                        td { code { (exchange.id) } }
                    }
                }
            }
        }
    }
}
