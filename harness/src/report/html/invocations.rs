//! One invocation of the agent: what it was asked and answered, what was injected where, what went over the wire.

use squall_journal::run::{CellRecord, EvidenceRecord};

use super::{headings, scrolled, timeline};
use crate::report::advice::deciding_first;
use crate::report::markup::Markup;
use crate::report::shown;
use crate::report::shown::cut;
use crate::report::story::{Story, got};
use crate::report::words;

/// Most invocations told of a cell.
const MOST: usize = 5;

/// Most characters of a prompt or an answer.
const MOST_TEXT: usize = 4_000;

/// Most calls of a table.
const MOST_CALLS: usize = 200;

/// The invocations of a cell that are `told`, with their stories.
pub(super) fn write(
    article: &mut Markup,
    id: &str,
    told: &[&EvidenceRecord],
    stories: &[Story<'_>],
    cell: &CellRecord,
) {
    for (number, (invocation, story)) in told.iter().zip(stories).take(MOST).enumerate() {
        let id = format!("{id}-{number}");
        article
            .element("div")
            .with("class", "invocation")
            .holding(|inner| one(inner, &id, invocation, cell.reason.as_ref(), story));
    }
    let more = told.len().saturating_sub(MOST);
    let others = cell.evidence.len().saturating_sub(told.len());
    let mut said = Vec::new();
    if more > 0 {
        let invocations = words::counted(more as u64, "invocation", "invocations");
        said.push(format!(
            "{invocations} more had the same result; the JSON form lists them."
        ));
    }
    if others > 0 {
        let prompts = words::counted(others as u64, "other invocation", "other invocations");
        said.push(format!("{prompts} of this cell went otherwise."));
    }
    if !said.is_empty() {
        article
            .element("p")
            .with("class", "soft")
            .text(&said.join(" "));
    }
}

fn one(
    inner: &mut Markup,
    id: &str,
    invocation: &EvidenceRecord,
    known: Option<&String>,
    story: &Story<'_>,
) {
    inner.element("div").with("class", "said").holding(|said| {
        said.element("div").holding(|side| {
            side.with_text("h4", &words::prompt_of(invocation));
            long(side, "Prompt", &invocation.prompt);
        });
        said.element("div").holding(|side| {
            side.with_text(
                "h4",
                &format!(
                    "Answer, after {}",
                    words::milliseconds(invocation.latency_ms)
                ),
            );
            match &invocation.answer {
                Some(answer) => long(side, "Answer", answer),
                None => side.with_text("p", "None."),
            }
        });
    });
    // Of the cell it is said already.
    if let Some(reason) = invocation
        .reason
        .as_ref()
        .filter(|reason| Some(*reason) != known)
    {
        inner.with_text("h4", "Reason");
        inner.element("p").prose(reason);
    }
    injected(inner, story);
    if story.calls.is_empty() {
        let nothing = match story.missing {
            0 => "No call of this invocation was seen on the wire.".to_owned(),
            missing => {
                let calls = words::counted(missing as u64, "call", "calls");
                format!("Not in this report any more: {calls} of this invocation.")
            }
        };
        inner.element("p").with("class", "soft").text(&nothing);
        return;
    }
    inner.with_text("h4", "On the wire");
    scrolled(inner, "Timeline of calls", |region| {
        timeline::write(region, id, story);
    });
    if story.missing > 0 {
        let calls = words::counted(story.missing as u64, "further call", "further calls");
        let missing = format!("Not in this report any more: {calls} of this invocation.");
        inner.element("p").with("class", "soft").text(&missing);
    }
    inner.element("details").holding(|details| {
        details.with_text("summary", "The same as a table");
        table(details, story);
    });
}

fn injected(inner: &mut Markup, story: &Story<'_>) {
    let injections = story.injections();
    if injections.is_empty() {
        return;
    }
    inner.with_text("h4", "Injected faults");
    inner.element("ul").with("class", "plain").holding(|list| {
        for injection in &injections {
            let rule = injection.rule;
            list.element("li").holding(|item| {
                item.with_text("strong", &rule.mode);
                item.text(" into ");
                item.with_text("code", &injection.on);
                let times = words::counted(injection.times as u64, "time", "times");
                item.text(&format!(", {times}: the agent got "));
                item.with_text("strong", &injection.got);
                let origin = format!(" (rule {} of {}, {})", rule.rule, rule.profile, rule.family);
                item.element("span").with("class", "soft").text(&origin);
            });
        }
    });
}

/// A text that may be long: cut, scrolled, reachable by keyboard.
fn long(inner: &mut Markup, label: &str, text: &str) {
    let visible = shown(text);
    let (kept, left) = cut(&visible, MOST_TEXT);
    let pre = inner
        .element("pre")
        .with("tabindex", "0")
        .with("role", "group");
    // In HTML the first line break of a `pre` is not shown; one is spent on it.
    pre.with("aria-label", label).text(&format!("\n{kept}"));
    if left > 0 {
        let more = format!("{left} bytes more in the JSON form of this report.");
        inner.element("p").with("class", "soft").text(&more);
    }
}

fn table(details: &mut Markup, story: &Story<'_>) {
    scrolled(details, "Calls of this invocation", |region| {
        region.element("table").holding(|table| {
            headings(
                table,
                &["After", "Call", "Got", "Took", "Injected", "Exchange"],
            );
            table.element("tbody").holding(|tbody| {
                for call in story.calls.iter().take(MOST_CALLS) {
                    let exchange = call.exchange;
                    let rules: Vec<_> = deciding_first(exchange)
                        .into_iter()
                        .map(|rule| format!("{} ({})", rule.rule, rule.mode))
                        .collect();
                    let took = exchange
                        .duration_ms
                        .map_or_else(|| "–".to_owned(), words::milliseconds);
                    tbody.element("tr").holding(|row| {
                        let number = |row: &mut Markup, text: &str| {
                            row.element("td").with("class", "number").text(text);
                        };
                        number(row, &format!("{} ms", call.at_ms));
                        row.with_text("td", &format!("{} {}", exchange.method, exchange.url));
                        let error = exchange.error.as_ref();
                        let error = error.map_or_else(String::new, |error| format!(": {error}"));
                        row.element("td").holding(|td| {
                            td.element("span")
                                .with("class", "figure")
                                .text(&got(exchange));
                            td.text(&error);
                        });
                        number(row, &took);
                        row.with_text("td", &rules.join(", "));
                        row.element("td")
                            .holding(|td| td.with_text("code", &exchange.id));
                    });
                }
            });
        });
    });
    if let Some(left @ 1..) = story.calls.len().checked_sub(MOST_CALLS) {
        details.with_text(
            "p",
            &format!("{left} more calls in the JSON form of this report."),
        );
    }
}
