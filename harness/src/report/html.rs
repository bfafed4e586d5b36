//! The HTML page: one self-contained, printable file without scripts.
//!
//! Its content security policy allows only its own style sheet, identified by digest. Injected content of an answer
//! could therefore neither run nor load anything.

mod cells;
mod crew;
mod exploration;
mod facts;
mod groups;
mod invocations;
mod matrix;
mod replays;
mod summary;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use super::story::Wire;
use super::{Report, next_step, shown, words};
use crate::run::RunRecord;

const STYLE: &str = concat!(
    include_str!("html/colours.css"),
    include_str!("html/style.css")
);

/// The style sheets of [`sections`] and [`lead`]: custom properties of the root, and rules.
pub const STYLES: [&str; 2] = [
    include_str!("html/colours.css"),
    include_str!("html/style.css"),
];

/// The content security policy of all pages, without the style sheet.
const POLICY: &str = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'";

/// The content security policy for serving the page: the page's own, and no framing and no scripts in any browser.
pub fn page_policy() -> String {
    format!("{}; frame-ancestors 'none'; sandbox", policy(STYLE))
}

/// The report as an HTML page.
pub(super) fn document(report: &Report) -> String {
    let run = &report.run;
    let title = format!("{}: {} · Squall", run.name, words::verdict(run));
    page(&title, STYLE, &body(report))
}

/// An HTML page.
pub(super) fn page(title: &str, style: &'static str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(style));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                // Without an icon, browsers request one from the server.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    };
    page.into_string() + "\n"
}

/// The policy of a page with this style sheet.
fn policy(style: &str) -> String {
    let digest = STANDARD.encode(digest(&SHA256, style.as_bytes()));
    format!("{POLICY}; style-src 'sha256-{digest}'")
}

/// The non-empty sections of the page: anchor, heading, content.
fn parts(report: &Report) -> Vec<(&'static str, &'static str, Markup)> {
    let (run, wire) = (&report.run, &Wire::of(report));
    let mut parts = vec![
        ("summary", "Summary", Some(summary::part(run))),
        ("heat", "Heat map", exploration::part(run)),
        ("load", "Load", facts::load(run)),
        ("matrix", "Matrix", matrix::part(run, &cells::shown(run))),
        ("crew", "Crew", crew::part(run)),
        ("replays", "Replays", replays::part(run)),
        ("causes", "Failures by cause", groups::part(report)),
    ];
    for (id, heading, about, cells) in cells::sections(run) {
        parts.push((id, heading, cells::articles(about, &cells, wire)));
    }
    parts.extend([
        ("demands", "Invariants and scenarios", facts::demands(run)),
        (
            "recovery",
            "Recovery, stability and search",
            facts::recovery(run),
        ),
        ("distributions", "Distributions", facts::distributions(run)),
        (
            "comparison",
            "Compared with the earlier run",
            facts::comparison(run),
        ),
        ("origin", "Sources", Some(facts::origin(report))),
    ]);
    let there = parts.into_iter();
    there
        .filter_map(|(id, heading, part)| Some((id, heading, part?)))
        .collect()
}

/// The non-empty sections of the page, for another page: anchor, heading, content.
pub fn sections(report: &Report) -> Vec<(&'static str, &'static str, Markup)> {
    let parts = parts(report).into_iter();
    parts
        .map(|(id, heading, part)| (id, heading, visible(&part)))
        .collect()
}

/// The verdict on a run, why, and what to do next.
pub fn lead(run: &RunRecord) -> Markup {
    visible(&verdict(run))
}

/// The matrix or the heat map of a run that is not over. It refers to no other part.
pub fn so_far(run: &RunRecord) -> Markup {
    let part = exploration::part(run).or_else(|| matrix::part(run, &BTreeSet::new()));
    visible(&part.unwrap_or_default())
}

/// A run's comparison with an earlier one.
pub fn compared(run: &RunRecord) -> Markup {
    visible(&facts::comparison(run).unwrap_or_default())
}

/// Makes control characters visible. The texts in `markup` are escaped already.
fn visible(markup: &Markup) -> Markup {
    PreEscaped(shown(&markup.0).into_owned())
}

fn verdict(run: &RunRecord) -> Markup {
    html! {
        p class="lead" {
            (tag(run.state.as_str(), &words::verdict(run), "verdict")) " " (prose(&words::why(run)))
            @if let Some(step) = next_step(run) { " " (prose(step)) }
        }
    }
}

fn body(report: &Report) -> Markup {
    let (run, parts) = (&report.run, parts(report));
    html! {
        a class="skip" href="#main" { "Skip to the result" }
        header {
            p class="eyebrow" { "Squall · " (run.kind.as_str()) ": " (words::kind(run.kind)) }
            h1 { (run.name) " " (tag(run.state.as_str(), &words::verdict(run), "verdict")) }
            p class="lead" {
                (prose(&words::why(run)))
                @if let Some(step) = next_step(run) { " " (prose(step)) }
            }
        }
        nav aria-label="Parts of this report" {
            ul { @for (id, heading, _) in &parts { li { a href={ "#" (id) } { (heading) } } } }
        }
        main id="main" tabindex="-1" {
            @for (id, heading, part) in &parts {
                section aria-labelledby=(id) { h2 id=(id) { (heading) } (part) }
            }
        }
        footer {
            p {
                "Made by Squall " (report.squall_version) " at " (report.made_at) "."
                @if !report.stands_alone {
                    " The same document in other forms: squall report " (run.id) " --format json, junit or markdown."
                }
            }
        }
    }
}

/// A text with code in backticks.
fn prose(text: &str) -> Markup {
    let code = |text: &str| {
        let (before, rest) = text.split_once('`')?;
        let (code, after) = rest.split_once('`')?;
        Some((before.to_owned(), code.to_owned(), after.to_owned()))
    };
    html! {
        @if let Some((before, code, after)) = code(text) {
            (before) code { (code) } (prose(&after))
        } @else {
            (text)
        }
    }
}

/// A coloured label.
fn tag(state: &str, text: &str, more: &str) -> Markup {
    let class = format!("tag {state} {more}");
    html! { span class=(class.trim_end()) { (text) } }
}

/// A de-emphasised paragraph.
fn soft(text: &str) -> Markup {
    html! { p class="soft" { (text) } }
}

/// The number of omitted items.
fn left_out(all: usize, most: usize, what: &str) -> Markup {
    html! {
        @if let Some(left @ 1..) = all.checked_sub(most) {
            (soft(&format!("{left} more {what} in the JSON form of this report.")))
        }
    }
}

/// A table or picture that may be wider than the screen, scrollable by keyboard.
fn scrolled(label: &str, inner: &Markup) -> Markup {
    html! { div class="scroll" role="group" aria-label=(label) tabindex="0" { (inner) } }
}

/// The row of a table's headings.
fn headings(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}

#[cfg(test)]
mod tests {
    use super::prose;

    #[test]
    fn what_stands_in_backticks_is_code_and_stays_text() {
        for (text, expected) in [
            (
                "`a<b>` failed in `c`.",
                "<code>a&lt;b&gt;</code> failed in <code>c</code>.",
            ),
            ("``", "<code></code>"),
            ("one ` alone", "one ` alone"),
            ("`a` and ` alone", "<code>a</code> and ` alone"),
            ("none", "none"),
        ] {
            assert_eq!(prose(text).into_string(), expected, "{text}");
        }
    }
}
