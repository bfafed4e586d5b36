//! Verdict, coverage, components of the score, and warnings.

use maud::{Markup, html};

use super::{prose, soft};
use crate::count::count;
use crate::report::words;
use crate::run::{RunRecord, RunState};

pub(super) fn part(run: &RunRecord) -> Markup {
    let components = words::components(&run.scores);
    html! {
        div class="cards" {
            div class="card" { (score(run)) }
            div class="card" { (coverage(run)) }
            @if !components.is_empty() {
                div class="card" {
                    h3 { "Component scores" }
                    dl {
                        @for (name, score) in components {
                            dt { (name) }
                            dd class="figure" { (words::score(score)) }
                        }
                    }
                }
            }
        }
        @for warning in &run.warnings {
            div class="warn" { p { strong { "Warning: " } (prose(warning)) } }
        }
    }
}

fn score(run: &RunRecord) -> Markup {
    let class = match run.passed {
        Some(true) => "passed",
        Some(false) => "failed",
        // The score of an inconclusive run is neither good nor bad.
        None => "",
    };
    let about = match (run.score, run.state) {
        (None, _) => " not scored",
        (Some(_), RunState::Inconclusive) => " of 100, of what was judged: no verdict",
        (Some(_), _) => " of 100",
    };
    let asked = match run.min_score {
        Some(least) => format!("{least} required."),
        None => "No minimum score set.".to_owned(),
    };
    html! {
        h3 { "Score" }
        p class="big" { span class="figure" { (words::score_or_none(run.score)) } small { (about) } }
        @if let Some(score) = run.score { (meter(score, class, run.min_score)) }
        (soft(&asked))
    }
}

fn coverage(run: &RunRecord) -> Markup {
    let coverage = &run.coverage;
    let cells = count(coverage.chaos_cells, "cell");
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    let share = match coverage.chaos_cells {
        0 => 0.0,
        all => coverage.exercised as f64 / all as f64 * 100.0,
    };
    let did = format!(
        "{} applied, {} of the agent.",
        count(coverage.rules_applied, "fault"),
        count(coverage.agent_invocations, "invocation")
    );
    html! {
        h3 { "Coverage" }
        p class="big" {
            span class="figure" { (coverage.exercised) }
            small { " of " (cells) " under chaos exercised" }
        }
        (meter(share, "", None))
        (soft(&did))
    }
}

/// A bar from 0 to 100 with a mark for the minimum. The number is in the text beside it.
fn meter(share: f64, class: &str, least: Option<f64>) -> Markup {
    let class = format!("fill {class}");
    let least = least.map(|least| rounded(least.clamp(0.5, 99.5)));
    html! {
        svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect class="track" width="100" height="8" rx="1" {}
            rect class=(class.trim_end()) width=(rounded(share.clamp(0.0, 100.0))) height="8" rx="1" {}
            @if let Some(least) = least {
                line class="least" x1=(least) x2=(least) y1="0" y2="8" vector-effect="non-scaling-stroke" {}
            }
        }
    }
}

/// A coordinate, rounded to a hundredth.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use crate::report::ReportFormat;
    use crate::report::testing::fixture;

    #[test]
    fn a_score_that_proves_nothing_looks_neither_good_nor_bad() {
        for (passed, class) in [
            (Some(true), "fill passed"),
            (Some(false), "fill failed"),
            (None, "fill"),
        ] {
            let mut report = fixture();
            report.run.passed = passed;
            let page = report.render(ReportFormat::Html);
            let bar = page.split("class=\"meter\"").nth(1).expect("the score's");
            assert!(bar.contains(&format!("<rect class=\"{class}\"")), "{bar}");
        }
    }
}
