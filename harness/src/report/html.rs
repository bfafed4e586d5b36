//! The page: one file that needs nothing from elsewhere, runs nothing, and can be printed.
//!
//! It has no script. Its policy allows its own style sheet, known by its digest, and nothing else: not even
//! what an answer might smuggle in would run or be asked for.

mod cells;
mod facts;
mod invocations;
mod matrix;
mod summary;
mod timeline;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use super::markup::Markup;
use super::story::Wire;
use super::{Report, next_step, words};

const STYLE: &str = include_str!("html/style.css");

/// What every page of ours is allowed, but for its style sheet.
const POLICY: &str = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'";

/// The content security policy for whoever serves the page: the page's own, and that nobody frames it and
/// nothing in it runs, whatever a browser makes of the rest.
pub fn page_policy() -> String {
    format!("{}; frame-ancestors 'none'; sandbox", policy(STYLE))
}

/// The report as a page.
pub(super) fn document(report: &Report) -> String {
    let mut page = Markup::beginning("<!DOCTYPE html>\n");
    page.element("html").with("lang", "en").holding(|html| {
        html.element("head")
            .holding(|head| self::head(head, report));
        html.element("body")
            .holding(|body| self::body(body, report));
    });
    page.written() + "\n"
}

/// The policy of a page with this style sheet.
pub(super) fn policy(style: &str) -> String {
    let digest = STANDARD.encode(digest(&SHA256, style.as_bytes()));
    format!("{POLICY}; style-src 'sha256-{digest}'")
}

/// What stands in the head of every page of ours.
pub(super) fn head_of(head: &mut Markup, title: &str, style: &'static str) {
    head.element("meta").with("charset", "utf-8").empty();
    let policy = policy(style);
    let meta = |head: &mut Markup, name, content: &str| {
        head.element("meta")
            .with("name", name)
            .with("content", content)
            .empty();
    };
    let element = head
        .element("meta")
        .with("http-equiv", "Content-Security-Policy");
    element.with("content", policy).empty();
    meta(head, "viewport", "width=device-width, initial-scale=1");
    meta(head, "color-scheme", "light dark");
    meta(head, "referrer", "no-referrer");
    // Without one a browser asks the server for it.
    head.element("link")
        .with("rel", "icon")
        .with("href", "data:,")
        .empty();
    head.with_text("title", title);
    head.element("style").literally(style);
}

fn head(head: &mut Markup, report: &Report) {
    let run = &report.run;
    let title = format!("{}: {} · Squall", run.name, words::verdict(run));
    head_of(head, &title, STYLE);
}

/// A part of the page: its anchor, its heading, and whether there is anything in it.
type Part = (
    &'static str,
    &'static str,
    fn(&mut Markup, &Report, &Wire<'_>),
    bool,
);

fn parts(report: &Report) -> Vec<Part> {
    let run = &report.run;
    let has = |found: usize| found > 0;
    let parts: [Part; 10] = [
        ("summary", "Summary", summary::write, true),
        ("matrix", "Matrix", matrix::write, has(run.cells.len())),
        (
            "failures",
            "What failed",
            cells::failures,
            has(cells::failed(run).len()),
        ),
        (
            "errors",
            "Errors",
            cells::errors,
            has(cells::in_error(run).len()),
        ),
        (
            "baseline",
            "Failed without chaos too",
            cells::baseline,
            has(cells::of_the_baseline(run).len()),
        ),
        (
            "unproved",
            "Not exercised",
            cells::unproved,
            has(cells::not_exercised(run).len()),
        ),
        (
            "demands",
            "Invariants and scenarios",
            facts::demands,
            !run.demands.is_empty() || run.scenarios.iter().any(|one| !one.rules.is_empty()),
        ),
        (
            "recovery",
            "Recovery and stability",
            facts::recovery,
            facts::has_recovery(run),
        ),
        (
            "comparison",
            "Compared with the earlier run",
            facts::comparison,
            run.comparison.is_some(),
        ),
        ("origin", "Sources", facts::origin, true),
    ];
    parts
        .into_iter()
        .filter(|(_, _, _, there)| *there)
        .collect()
}

fn body(body: &mut Markup, report: &Report) {
    let (run, parts) = (&report.run, parts(report));
    let wire = Wire::of(report);
    body.element("a")
        .with("class", "skip")
        .with("href", "#main")
        .text("Skip to the result");
    body.element("header").holding(|header| {
        let eyebrow = format!("Squall · {}: {}", run.kind.as_str(), words::kind(run.kind));
        header.element("p").with("class", "eyebrow").text(&eyebrow);
        header.element("h1").holding(|h1| {
            h1.text(&run.name);
            h1.text(" ");
            tag(h1, run.state.as_str(), words::verdict(run), "verdict");
        });
        header.element("p").with("class", "lead").holding(|lead| {
            lead.prose(&words::why(run));
            if let Some(step) = next_step(run) {
                lead.text(" ");
                lead.prose(&step);
            }
        });
    });
    body.element("nav")
        .with("aria-label", "Parts of this report")
        .holding(|nav| {
            nav.element("ul").holding(|list| {
                for (id, heading, _, _) in &parts {
                    list.element("li").holding(|item| {
                        item.element("a")
                            .with("href", format!("#{id}"))
                            .text(heading);
                    });
                }
            });
        });
    body.element("main")
        .with("id", "main")
        .with("tabindex", "-1")
        .holding(|main| {
            for (id, heading, write, _) in &parts {
                let section = main.element("section").with("aria-labelledby", *id);
                section.holding(|section| {
                    section.element("h2").with("id", *id).text(heading);
                    write(section, report, &wire);
                });
            }
        });
    body.element("footer").holding(|footer| {
        let id = &run.id;
        let others = if report.stands_alone {
            String::new()
        } else {
            format!(" The same document in other forms: squall report {id} --format json, junit or markdown.")
        };
        let (version, at) = (&report.squall_version, &report.made_at);
        let made = format!("Made by Squall {version} at {at}.{others}");
        footer.with_text("p", &made);
    });
}

/// A word on a coloured ground.
fn tag(inner: &mut Markup, state: &str, text: &str, more: &str) {
    let class = format!("tag {state} {more}");
    inner
        .element("span")
        .with("class", class.trim_end())
        .text(text);
}

/// A picture's words: what it shows, for whoever does not see it.
fn picture(svg: &mut Markup, title: &str) {
    svg.with_text("title", title);
}

/// A table that may be wider than the screen, reachable by keyboard.
fn scrolled(inner: &mut Markup, label: &str, table: impl FnOnce(&mut Markup)) {
    let region = inner
        .element("div")
        .with("class", "scroll")
        .with("role", "group");
    region
        .with("aria-label", label)
        .with("tabindex", "0")
        .holding(table);
}

/// The row of a table's headings.
fn headings(table: &mut Markup, names: &[&str]) {
    table.element("thead").holding(|thead| {
        thead.element("tr").holding(|row| {
            for name in names {
                row.element("th").with("scope", "col").text(name);
            }
        });
    });
}
