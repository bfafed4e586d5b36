//! The wire of one invocation as a picture: a lane for each call, a bar from its begin to its end.
//!
//! ```text
//!                 0        100       200 ms
//! web_search 503  ▇▇
//!   outage: error
//! model m-1  200       ░░░░▇▇▇▇▇▇▇       ░ is delay that was injected
//! ```

use squall_journal::record::{ExchangeRecord, Outcome, RuleRecord};

use super::picture;
use crate::report::advice::deciding_first;
use crate::report::markup::Markup;
use crate::report::shown::cut;
use crate::report::story::{Story, applied, got, name};
use crate::report::words;

/// Width of the picture, in its own units.
const WIDTH: f64 = 960.0;
/// Where bars begin: left of it are names.
const LEFT: f64 = 290.0;
/// Where bars end at the latest.
const RIGHT: f64 = 880.0;
/// Height of the scale.
const TOP: f64 = 26.0;
/// Height of a lane.
const LANE: f64 = 38.0;
/// Most lanes of one picture.
const MOST: usize = 40;
/// Most characters of a name.
const MOST_NAME: usize = 34;
/// Room for how many more faults there are.
const MORE: usize = 4;

pub(super) fn write(inner: &mut Markup, id: &str, story: &Story<'_>) {
    let lanes = story.calls.len().min(MOST);
    let scale = Scale::of(story);
    #[expect(clippy::cast_precision_loss, reason = "at most 40")]
    let height = TOP + LANE * lanes as f64 + 4.0;
    let title = format!("{id}-wire");
    let svg = inner
        .element("svg")
        .with("class", "wire")
        .with("role", "img");
    let svg = svg.with("aria-labelledby", &title);
    svg.with("viewBox", format!("0 0 {WIDTH} {height}"))
        .holding(|svg| {
            svg.element("title")
                .with("id", &title)
                .text(&told(story, &scale));
            legend(svg);
            scale.write(svg, height);
            for (number, call) in story.calls.iter().take(MOST).enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "at most 40")]
                let top = TOP + LANE * number as f64;
                #[expect(clippy::cast_precision_loss, reason = "milliseconds of an invocation")]
                let at_ms = call.at_ms as f64;
                lane(svg, top, at_ms, call.exchange, &scale);
            }
        });
    if story.calls.len() > MOST {
        let more = format!(
            "{} further calls are in the table.",
            story.calls.len() - MOST
        );
        inner.element("p").with("class", "soft").text(&more);
    }
}

/// What the colours mean.
fn legend(svg: &mut Markup) {
    let mut at = 0.0;
    for (class, word, width) in [
        ("ok", "passed on", 78.0),
        ("injected", "fault or break", 100.0),
        ("delay", "added delay", 0.0),
    ] {
        let square = svg.element("rect").with("class", class).number("x", at);
        let square = square.number("y", TOP - 20.0).with("width", "10");
        square.with("height", "10").with("rx", "2").empty();
        let text = svg
            .element("text")
            .with("class", "faint")
            .number("x", at + 14.0);
        text.number("y", TOP - 11.0).text(word);
        at += width;
    }
}

/// The picture in a sentence.
fn told(story: &Story<'_>, scale: &Scale) -> String {
    let hit = story
        .calls
        .iter()
        .filter(|call| applied(call.exchange).next().is_some());
    format!(
        "{} within {}, faults in {} of them",
        words::counted(story.calls.len() as u64, "call", "calls"),
        words::milliseconds(scale.last_ms),
        hit.count()
    )
}

/// From milliseconds to places.
struct Scale {
    /// When the last call was over.
    last_ms: f64,
    /// Milliseconds between two lines.
    step_ms: f64,
}

impl Scale {
    fn of(story: &Story<'_>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of an invocation")]
        let ends = story
            .calls
            .iter()
            .map(|call| call.at_ms as f64 + call.exchange.duration_ms.unwrap_or(0.0).max(0.0));
        let last_ms = ends.fold(1.0, f64::max);
        // At most eight lines, at 1, 2 or 5 times a power of ten.
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

    fn write(&self, svg: &mut Markup, height: f64) {
        let mut at = 0.0;
        while at <= self.last_ms {
            let place = self.place(at);
            let line = svg
                .element("line")
                .with("class", "grid")
                .number("x1", place);
            let line = line.number("x2", place).number("y1", TOP - 6.0);
            line.number("y2", height).empty();
            let text = svg
                .element("text")
                .with("class", "faint")
                .number("x", place);
            let text = text.number("y", TOP - 11.0).with("text-anchor", "middle");
            text.text(&if at > 0.0 {
                format!("{at}")
            } else {
                "0 ms".to_owned()
            });
            at += self.step_ms;
        }
    }
}

fn lane(svg: &mut Markup, top: f64, at_ms: f64, exchange: &ExchangeRecord, scale: &Scale) {
    let begin = scale.place(at_ms);
    let duration = exchange
        .duration_ms
        .unwrap_or(scale.last_ms - at_ms)
        .max(0.0);
    let end = scale.place(at_ms + duration).max(begin + 3.0);
    let delay = scale.place(at_ms + exchange.injected_ms.clamp(0.0, duration));
    let rules = deciding_first(exchange);

    let called = svg.element("text").with("x", "0").number("y", top + 15.0);
    called.holding(|text| {
        text.text(&short(&format!("{} {}", exchange.method, name(exchange))));
        picture(text, &format!("{} {}", exchange.method, exchange.url));
    });
    if !rules.is_empty() {
        let hit = svg
            .element("text")
            .with("class", "hit")
            .with("x", "0")
            .number("y", top + 30.0);
        hit.text(&faults(&rules));
    }
    let bar = |svg: &mut Markup, class: &str, from: f64, to: f64, y: f64, height: f64| {
        let rect = svg
            .element("rect")
            .with("class", class)
            .number("x", from)
            .number("y", y);
        rect.number("width", (to - from).max(0.0))
            .number("height", height)
            .with("rx", "2")
            .empty();
    };
    bar(svg, "lane", LEFT, RIGHT, top + 5.0, 14.0);
    bar(svg, class(exchange), begin, end, top + 5.0, 14.0);
    if delay > begin {
        bar(svg, "delay", begin, delay.min(end), top + 5.0, 14.0);
    }
    let result = svg
        .element("text")
        .with("class", "faint")
        .number("x", end + 6.0);
    result.number("y", top + 16.0).text(&got(exchange));
}

/// Who made of the call what it was.
fn class(exchange: &ExchangeRecord) -> &'static str {
    match exchange.outcome {
        Outcome::Ok => "ok",
        Outcome::Injected => "injected",
        Outcome::UpstreamError | Outcome::Denied => "broken",
        Outcome::Open | Outcome::ClientGone | Outcome::ClientRejectedCa => "other",
    }
}

/// As many faults as there is room for, none cut, and how many more there are.
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
