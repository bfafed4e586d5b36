//! Verdict and coverage, side by side; the components of the score; warnings.

use crate::report::markup::Markup;
use crate::report::story::Wire;
use crate::report::{Report, words};

pub(super) fn write(section: &mut Markup, report: &Report, _: &Wire<'_>) {
    let run = &report.run;
    section
        .element("div")
        .with("class", "cards")
        .holding(|cards| {
            cards
                .element("div")
                .with("class", "card")
                .holding(|card| score(card, report));
            cards
                .element("div")
                .with("class", "card")
                .holding(|card| coverage(card, report));
            let components = words::components(&run.scores);
            if !components.is_empty() {
                cards.element("div").with("class", "card").holding(|card| {
                    card.with_text("h3", "Made up of");
                    card.element("dl").holding(|list| {
                        for (name, score) in components {
                            list.with_text("dt", name);
                            list.element("dd")
                                .with("class", "figure")
                                .text(&words::score(score));
                        }
                    });
                });
            }
        });
    for warning in &run.warnings {
        section
            .element("div")
            .with("class", "warn")
            .holding(|warn| {
                warn.element("p").holding(|p| {
                    p.with_text("strong", "Mind: ");
                    p.prose(warning);
                });
            });
    }
}

fn score(card: &mut Markup, report: &Report) {
    let run = &report.run;
    card.with_text("h3", "Score");
    card.element("p").with("class", "big").holding(|big| {
        big.element("span")
            .with("class", "figure")
            .text(&words::score_or_none(run.score));
        if run.score.is_some() {
            big.with_text("small", " of 100");
        } else {
            big.with_text("small", " not scored");
        }
    });
    if let Some(score) = run.score {
        let class = match run.passed {
            Some(true) => "passed",
            Some(false) => "failed",
            // A number that nothing is proved by is neither good nor bad.
            None => "",
        };
        meter(card, score, class, run.min_score);
    }
    let asked = match run.min_score {
        Some(least) => format!("{least} required."),
        None => "No minimum score set.".to_owned(),
    };
    card.element("p").with("class", "soft").text(&asked);
}

fn coverage(card: &mut Markup, report: &Report) {
    let run = &report.run;
    let coverage = &run.coverage;
    card.with_text("h3", "Coverage");
    card.element("p").with("class", "big").holding(|big| {
        big.element("span")
            .with("class", "figure")
            .text(&coverage.exercised.to_string());
        let of = words::counted(
            coverage.chaos_cells,
            "cell under chaos",
            "cells under chaos",
        );
        big.with_text("small", &format!(" of {of} exercised"));
    });
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    let share = match coverage.chaos_cells {
        0 => 0.0,
        all => coverage.exercised as f64 / all as f64 * 100.0,
    };
    meter(card, share, "", None);
    let did = format!(
        "{}, {} of the agent.",
        words::counted(coverage.rules_applied, "fault applied", "faults applied"),
        words::counted(coverage.agent_invocations, "invocation", "invocations")
    );
    card.element("p").with("class", "soft").text(&did);
}

/// A bar of 0 to 100, with a mark where it should reach to. The number stands beside it.
fn meter(card: &mut Markup, share: f64, class: &str, least: Option<f64>) {
    let svg = card
        .element("svg")
        .with("class", "meter")
        .with("viewBox", "0 0 100 8");
    let svg = svg
        .with("preserveAspectRatio", "none")
        .with("aria-hidden", "true");
    svg.holding(|svg| {
        let bar = |svg: &mut Markup, class: &str, width: f64| {
            let bar = svg
                .element("rect")
                .with("class", class)
                .number("width", width);
            bar.with("height", "8").with("rx", "1").empty();
        };
        bar(svg, "track", 100.0);
        bar(
            svg,
            format!("fill {class}").trim_end(),
            share.clamp(0.0, 100.0),
        );
        if let Some(least) = least {
            let at = least.clamp(0.5, 99.5);
            let line = svg
                .element("line")
                .with("class", "least")
                .number("x1", at)
                .number("x2", at);
            let line = line.with("y1", "0").with("y2", "8");
            line.with("vector-effect", "non-scaling-stroke").empty();
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::report::Format;
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
            let page = report.render(Format::Html);
            let bar = page.split("class=\"meter\"").nth(1).expect("the score's");
            assert!(bar.contains(&format!("<rect class=\"{class}\"")), "{bar}");
        }
    }
}
