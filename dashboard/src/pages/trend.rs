//! The trend of a suite over its runs: score, coverage, and the share of each invariant's cells that passed.

use axum::response::IntoResponse as _;
use http::StatusCode;
use maud::{Markup, html};
use serde_json::json;
use squall_harness::report::score;
use squall_harness::run::RunRecord;

use super::runs::{path, state, time};
use crate::api::{ApiError, List, with_query};
use crate::visit::{PageContent, PageResult, Visit};

/// Runs that the page shows.
const MOST: &str = "50";

/// Colours of lines in the style sheet.
const COLOURS: usize = 8;

/// A line of a plot, with a value for each run.
struct TrendLine<'r> {
    name: &'r str,
    values: Vec<Option<f64>>,
}

fn percent(part: u64, all: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    let share = 100.0 * part as f64 / all as f64;
    (all > 0).then_some(share)
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let Some(suite) = visit.param("suite") else {
        let detail = "`suite` is missing; name a suite";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, detail));
    };
    let query = with_query("/v1/runs", &[("suite", suite), ("limit", MOST)]);
    let mut runs = visit.api.get::<List<RunRecord>>(&query).await?.items;
    runs.retain(|run| run.state.is_over());
    runs.reverse();
    let lines = invariants(&runs);
    let of = |value: fn(&RunRecord) -> Option<f64>| runs.iter().map(value).collect();
    let whole = [
        TrendLine {
            name: "score",
            values: of(|run| run.score),
        },
        TrendLine {
            name: "coverage, %",
            values: of(|run| percent(run.coverage.exercised, run.coverage.chaos_cells)),
        },
    ];
    let body = html! {
        @if runs.is_empty() {
            p.soft { "No run of this suite is over." }
        } @else {
            h2 { "Score and coverage" }
            (plot(&whole))
            @if !lines.is_empty() {
                h2 { "Cells that passed, %" }
                (plot(&lines))
            }
            h2 { "Runs" }
            div.scroll role="region" aria-label="Runs" tabindex="0" { (table(&runs, &lines)) }
        }
    };
    Ok(PageContent {
        title: format!("Trend of {suite}"),
        nav: "/runs",
        assets: &["uplot.css", "uplot.js", "trend.js"],
        body,
    }
    .into_response())
}

/// The share of passed cells of each invariant.
fn invariants(runs: &[RunRecord]) -> Vec<TrendLine<'_>> {
    let mut lines: Vec<TrendLine<'_>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for counts in &run.invariants {
            let known = lines.iter().position(|line| line.name == counts.invariant);
            let line = known.unwrap_or_else(|| {
                lines.push(TrendLine {
                    name: &counts.invariant,
                    values: vec![None; runs.len()],
                });
                lines.len() - 1
            });
            lines[line].values[at] = percent(counts.passed, counts.judged);
        }
    }
    lines
}

/// A plot with its legend. The script draws what the table below says in numbers.
fn plot(lines: &[TrendLine<'_>]) -> Markup {
    let values: Vec<_> = lines.iter().map(|line| &line.values).collect();
    html! {
        div.plot aria-hidden="true" data-lines=(json!(values)) {}
        ul.legend aria-hidden="true" {
            @for (at, line) in lines.iter().enumerate() { li class={ "line-" (at % COLOURS) } { (line.name) } }
        }
    }
}

fn table(runs: &[RunRecord], lines: &[TrendLine<'_>]) -> Markup {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), score);
    html! {
        table {
            thead {
                tr {
                    th.number scope="col" { "#" } th scope="col" { "Created (UTC)" } th scope="col" { "Kind" }
                    th scope="col" { "Verdict" } th.number scope="col" { "Score" } th.number scope="col" { "Exercised" }
                    @for line in lines { th.number scope="col" { (line.name) ", %" } }
                }
            }
            tbody {
                @for (at, run) in runs.iter().enumerate().rev() {
                    tr {
                        td.number { (at + 1) }
                        td.time { a href=(path(&run.id)) { (time(&run.created_at)) } }
                        td { (run.kind.as_str()) }
                        td { (state(run.state)) }
                        td.number { (number(run.score)) }
                        td.number { (run.coverage.exercised) " of " (run.coverage.chaos_cells) }
                        @for line in lines { td.number { (number(line.values[at])) } }
                    }
                }
            }
        }
    }
}
