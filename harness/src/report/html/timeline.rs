//! The traffic of one invocation as a picture: one lane for each call, with a bar for its duration.
//!
//! ```text
//!                 0        100       200 ms
//! web_search 503  ▇▇
//!   outage: error
//! model m-1  200       ░░░░▇▇▇▇▇▇▇       ░ is delay that was injected
//! ```

use maud::{Markup, html};
use squall_journal::record::{ExchangeRecord, Outcome, RuleRecord};

use super::{rounded, soft};
use crate::report::advice::deciding_first;
use crate::report::shown::cut;
use crate::report::story::{Story, StoryCall, applied, got, name};
use crate::report::words;

/// Width of the picture, in SVG units.
const WIDTH: f64 = 960.0;
/// Start of the bars; names are to the left of it.
const LEFT: f64 = 290.0;
/// Largest end of a bar.
const RIGHT: f64 = 880.0;
/// Height of the scale.
const TOP: f64 = 26.0;
/// Height of a lane.
const LANE: f64 = 38.0;
/// Maximum number of lanes.
const MOST: usize = 40;
/// Longest name, in characters.
const MOST_NAME: usize = 34;
/// Room for the number of omitted faults, in characters.
const MORE: usize = 4;

/// The legend: class, text, position.
const LEGEND: [(&str, &str, f64); 3] = [
    ("ok", "passed on", 0.0),
    ("injected", "fault or break", 78.0),
    ("delay", "added delay", 178.0),
];

pub(super) fn picture(id: &str, story: &Story<'_>) -> Markup {
    let scale = Scale::of(story);
    #[expect(clippy::cast_precision_loss, reason = "at most 40")]
    let top = |lane: usize| TOP + LANE * lane as f64;
    let height = top(story.calls.len().min(MOST)) + 4.0;
    html! {
        svg class="wire" role="img" aria-labelledby={ (id) "-wire" } viewBox={ "0 0 " (WIDTH) " " (height) } {
            title id={ (id) "-wire" } { (told(story, &scale)) }
            @for (class, words, at) in LEGEND {
                rect class=(class) x=(at) y=(TOP - 20.0) width="10" height="10" rx="2" {}
                text class="faint" x=(at + 14.0) y=(TOP - 11.0) { (words) }
            }
            @for at in scale.lines() {
                @let place = rounded(scale.place(at));
                line class="grid" x1=(place) x2=(place) y1=(TOP - 6.0) y2=(height) {}
                text class="faint" x=(place) y=(TOP - 11.0) text-anchor="middle" {
                    (at) @if at <= 0.0 { " ms" }
                }
            }
            @for (number, call) in story.calls.iter().take(MOST).enumerate() {
                (lane(top(number), call, &scale))
            }
        }
        @if let Some(more @ 1..) = story.calls.len().checked_sub(MOST) {
            (soft(&format!("{more} further calls are in the table.")))
        }
    }
}

/// Describes the picture in a sentence.
fn told(story: &Story<'_>, scale: &Scale) -> String {
    let calls = story.calls.iter();
    let hit = calls.filter(|call| applied(call.exchange).next().is_some());
    format!(
        "{} within {}, faults in {} of them",
        words::counted(story.calls.len() as u64, "call", "calls"),
        words::milliseconds(scale.last_ms),
        hit.count()
    )
}

/// Converts milliseconds to positions.
struct Scale {
    /// End of the last call.
    last_ms: f64,
    /// Interval between grid lines.
    step_ms: f64,
}

impl Scale {
    fn of(story: &Story<'_>) -> Self {
        let ends = story
            .calls
            .iter()
            .map(|call| began(call) + call.exchange.duration_ms.unwrap_or(0.0).max(0.0));
        let last_ms = ends.fold(1.0, f64::max);
        // At most eight grid lines, at 1, 2 or 5 times a power of ten.
        let mut step_ms = 1.0;
        for factor in [2.0, 2.5, 2.0].iter().cycle() {
            if last_ms / step_ms <= 8.0 {
                break;
            }
            step_ms *= factor;
        }
        Self { last_ms, step_ms }
    }

    fn place(&self, ms: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ms / self.last_ms).clamp(0.0, 1.0)
    }

    fn lines(&self) -> impl Iterator<Item = f64> {
        let steps = std::iter::successors(Some(0.0), |at| Some(at + self.step_ms));
        steps.take_while(|at| *at <= self.last_ms)
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of an invocation")]
fn began(call: &StoryCall<'_>) -> f64 {
    call.at_ms as f64
}

fn lane(top: f64, call: &StoryCall<'_>, scale: &Scale) -> Markup {
    let (exchange, at_ms) = (call.exchange, began(call));
    let begin = scale.place(at_ms);
    let duration = exchange.duration_ms.unwrap_or(scale.last_ms - at_ms);
    let duration = duration.max(0.0);
    let end = scale.place(at_ms + duration).max(begin + 3.0);
    let delay = scale.place(at_ms + exchange.injected_ms.clamp(0.0, duration));
    let rules = deciding_first(exchange);
    let bar = |class: &str, from: f64, to: f64| {
        let width = rounded((to - from).max(0.0));
        html! { rect class=(class) x=(rounded(from)) y=(top + 5.0) width=(width) height="14" rx="2" {} }
    };
    html! {
        text x="0" y=(top + 15.0) {
            (short(&format!("{} {}", exchange.method, name(exchange))))
            title { (exchange.method) " " (exchange.url) }
        }
        @if !rules.is_empty() { text class="hit" x="0" y=(top + 30.0) { (faults(&rules)) } }
        (bar("lane", LEFT, RIGHT))
        (bar(class(exchange), begin, end))
        @if delay > begin { (bar("delay", begin, delay.min(end))) }
        text class="faint" x=(rounded(end + 6.0)) y=(top + 16.0) { (got(exchange)) }
    }
}

/// The CSS class for the source of the response.
fn class(exchange: &ExchangeRecord) -> &'static str {
    match exchange.outcome {
        Outcome::Ok => "ok",
        Outcome::Injected => "injected",
        Outcome::UpstreamError | Outcome::Denied => "broken",
        Outcome::Open | Outcome::ClientGone | Outcome::ClientRejectedCa => "other",
    }
}

/// The names of as many faults as fit, and the number of omitted ones.
fn faults(rules: &[&RuleRecord]) -> String {
    let length = |text: &str| text.chars().count();
    let mut text = "⚡".to_owned();
    for (told, rule) in rules.iter().enumerate() {
        let begin = if told == 0 { " " } else { ", " };
        let last = told + 1 == rules.len();
        let names = [format!("{}: {}", rule.rule, rule.mode), rule.mode.clone()];
        let room = if last { MOST_NAME } else { MOST_NAME - MORE };
        let fits = |name: &String| length(&text) + length(begin) + length(name) <= room;
        let Some(name) = names.into_iter().find(fits) else {
            return format!("{text} +{}", rules.len() - told);
        };
        text.push_str(begin);
        text.push_str(&name);
    }
    text
}

fn short(text: &str) -> String {
    match cut(text, MOST_NAME) {
        (whole, 0) => whole.to_owned(),
        (kept, _) => format!("{kept}…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::fixture;

    #[test]
    fn faults_are_named_whole_and_what_decided_comes_first() {
        let report = fixture();
        let mut exchanges = report.exchanges.into_iter();
        let mut exchange = exchanges
            .find(|one| applied(one).next().is_some())
            .expect("a fault");
        let mut rule = exchange.rules[0].clone();
        for (rules, expected) in [
            (
                &[("latency", "slow"), ("error", "down")][..],
                "⚡ down: error, slow: latency",
            ),
            (
                &[
                    ("latency", "slow"),
                    ("reset_peer", "a-rather-long-name-of-a-rule"),
                ],
                "⚡ reset_peer, slow: latency",
            ),
            (
                &[
                    ("reset_peer", "one"),
                    ("limit_data", "two"),
                    ("refuse", "three"),
                ],
                "⚡ one: reset_peer, limit_data +1",
            ),
        ] {
            exchange.rules.clear();
            for (mode, name) in rules {
                rule.family = if *mode == "error" {
                    "tool_faults"
                } else {
                    "network_faults"
                }
                .to_owned();
                (rule.mode, rule.rule) = ((*mode).to_owned(), (*name).to_owned());
                exchange.rules.push(rule.clone());
            }
            let found = faults(&deciding_first(&exchange));
            assert_eq!(found, expected);
            assert!(found.chars().count() <= MOST_NAME, "{found}");
        }
    }
}
