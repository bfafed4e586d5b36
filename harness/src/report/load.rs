//! A run under rising concurrency: its levels, and where the agent breaks.

use super::words::{milliseconds, score};
use crate::count::count;
use crate::run::{LoadFailures, LoadLevel, LoadRecord, RunRecord};

/// The headings of [`load_levels`].
pub const LOAD: [&str; 10] = [
    "At once",
    "Succeeded",
    "p50",
    "p95",
    "p99",
    "Max",
    "Calls made / needed",
    "Amplification",
    "429",
    "Tokens in / out",
];

/// The levels of a load run, a row each.
pub fn load_levels(run: &RunRecord) -> Vec<[String; 10]> {
    let row = |level: &LoadLevel| {
        let dash = || "–".to_owned();
        let share = level
            .success
            .map_or_else(dash, |share| format!("{} %", score(share)));
        let latency = level.latency_ms;
        let [p50, p95, p99, max] = latency.map_or_else(
            || [(); 4].map(|()| dash()),
            |latency| [latency.p50, latency.p95, latency.p99, latency.max].map(milliseconds),
        );
        [
            level.concurrency.to_string(),
            format!("{} of {}, {share}", level.succeeded, level.judged()),
            p50,
            p95,
            p99,
            max,
            format!("{} / {}", level.calls, level.calls_needed),
            amplification(level),
            (level.limited_by_squall + level.limited_by_upstream).to_string(),
            format!("{} / {}", level.input_tokens, level.output_tokens),
        ]
    };
    run.load
        .iter()
        .flat_map(|load| &load.levels)
        .map(row)
        .collect()
}

/// Where the agent breaks, how it reacts to rate limits, and what limits the figures, a line each.
pub fn load_lines(run: &RunRecord) -> Vec<String> {
    let Some(load) = &run.load else {
        return Vec::new();
    };
    // The reason of the run is usually the same.
    let breaks = breaking(load).filter(|line| run.reason.as_ref() != Some(line));
    let mut lines: Vec<_> = breaks.into_iter().collect();
    for level in &load.levels {
        let at = level.concurrency;
        if let Some(reaction) = level.reaction {
            lines.push(format!(
                "{at} at once: under the rate limit, the agent {}; {} calls made per call needed; {} limited by Squall, \
                 {} by upstreams",
                reaction.words(),
                amplification(level),
                level.limited_by_squall,
                level.limited_by_upstream,
            ));
        }
        if level.left_out > 0 {
            lines.push(format!(
                "{at} at once: {} did not begin within the level's time",
                count(level.left_out, "invocation")
            ));
        }
    }
    if load.calls_by_level {
        let line = "the agent's calls carry no scope: they are counted for each level, and failures by 429 are among the \
                    other causes";
        lines.push(line.to_owned());
    }
    lines
}

/// Where the agent breaks, and why; `None`: nothing was judged.
pub(crate) fn breaking(load: &LoadRecord) -> Option<String> {
    let lowest = load.lowest()?;
    let limit = load.limit;
    let mut levels = load.levels.iter();
    let broken = levels.find(|level| Some(level.concurrency) == load.breaks_at);
    Some(match broken {
        Some(level) => format!(
            "the agent breaks at {} at once: {} of {} succeeded, {} %, the limit is {limit} %; failed: {}",
            level.concurrency,
            level.succeeded,
            count(level.judged(), "invocation"),
            score(level.success.unwrap_or_default()),
            causes(level.failures)
        ),
        None => format!(
            "the agent does not break up to {} at once: at least {} % succeeded, the limit is {limit} %",
            load.levels.last().map_or(0, |level| level.concurrency),
            score(lowest)
        ),
    })
}

/// The counts above 0.
fn causes(failures: LoadFailures) -> String {
    let causes = [
        (failures.limited, "after 429 responses"),
        (failures.timed_out, "by time-outs"),
        (failures.errors, "by errors of the agent"),
        (failures.wrong_answers, "by failed invariants"),
    ];
    let causes = causes.into_iter().filter(|(number, _)| *number > 0);
    let causes: Vec<_> = causes
        .map(|(number, why)| format!("{number} {why}"))
        .collect();
    causes.join(", ")
}

fn amplification(level: &LoadLevel) -> String {
    let dash = || "–".to_owned();
    level
        .amplification
        .map_or_else(dash, |times| format!("{times:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Report, ReportFormat, testing};
    use crate::run::{LatencyQuantiles, LimitReaction};

    #[test]
    fn every_report_for_people_shows_the_levels_and_where_the_agent_breaks() {
        let mut run = testing::run();
        run.load = Some(LoadRecord {
            limit: 90.0,
            calls_by_level: true,
            breaks_at: Some(2),
            levels: vec![
                LoadLevel {
                    concurrency: 1,
                    succeeded: 10,
                    success: Some(100.0),
                    ..LoadLevel::default()
                },
                LoadLevel {
                    concurrency: 2,
                    succeeded: 5,
                    failures: LoadFailures {
                        limited: 3,
                        errors: 2,
                        ..LoadFailures::default()
                    },
                    success: Some(50.0),
                    latency_ms: Some(LatencyQuantiles {
                        p50: 1.25,
                        p95: 20.0,
                        p99: 30.0,
                        max: 12_000.0,
                    }),
                    calls: 45,
                    calls_needed: 10,
                    amplification: Some(4.5),
                    limited_by_squall: 30,
                    limited_by_upstream: 5,
                    reaction: Some(LimitReaction::Thrashes),
                    left_out: 1,
                    ..LoadLevel::default()
                },
            ],
        });
        assert_eq!(
            load_lines(&run)[..3],
            [
                "the agent breaks at 2 at once: 5 of 10 invocations succeeded, 50 %, the limit is 90 %; failed: 3 after \
                 429 responses, 2 by errors of the agent",
                "2 at once: under the rate limit, the agent thrashes; 4.50 calls made per call needed; 30 limited by \
                 Squall, 5 by upstreams",
                "2 at once: 1 invocation did not begin within the level's time",
            ]
        );
        let row = [
            "2",
            "5 of 10, 50 %",
            "1.2 ms",
            "20 ms",
            "30 ms",
            "12.0 s",
            "45 / 10",
            "4.50",
            "35",
            "0 / 0",
        ];
        assert_eq!(load_levels(&run)[1], row);
        let report = Report {
            run,
            ..testing::fixture()
        };
        for format in [ReportFormat::Html, ReportFormat::Markdown] {
            let text = report.render(format);
            let has_all =
                ["5 of 10, 50 %", "30 ms", "breaks at 2 at once"].map(|part| text.contains(part));
            assert_eq!(has_all, [true; 3], "{text}");
        }
    }
}
