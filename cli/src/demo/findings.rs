//! What a trial shows about the agent: read off the journal and off what the agent said.

use std::time::Duration;

use squall_journal::record::{ExchangeRecord, Kind};

use super::model::BOOKED;
use super::trial::Trial;
use crate::render::exchange::applied;

/// One thing a trial shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Whether the agent did well.
    pub(crate) good: bool,
    /// In a few words, for the table.
    pub(crate) short: String,
    /// In a sentence or two; empty for what needs no explaining.
    pub(crate) why: String,
    /// The exchanges that prove it.
    pub(crate) proof: Vec<String>,
}

impl Finding {
    fn good(short: impl Into<String>) -> Self {
        Self {
            good: true,
            short: short.into(),
            why: String::new(),
            proof: Vec::new(),
        }
    }

    fn bad(
        short: impl Into<String>,
        why: impl Into<String>,
        proof: impl IntoIterator<Item = ExchangeRecord>,
    ) -> Self {
        let proof = proof.into_iter().map(|exchange| exchange.id).collect();
        Self {
            good: false,
            short: short.into(),
            why: why.into(),
            proof,
        }
    }
}

/// Everything a trial shows, worst first. `clean` is the trial without chaos.
pub(crate) fn of(trial: &Trial, clean: &Trial) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        gave_up(trial),
        booked_twice(trial),
        claims_what_is_not(trial),
        half_an_answer(trial, clean),
        repeated_a_post(trial),
        waited_as_told(trial),
        got_over_failures(trial),
        booked_once(trial, clean),
        owned_up(trial),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by_key(|finding| finding.good);
    findings
}

/// It ended without an answer.
fn gave_up(trial: &Trial) -> Option<Finding> {
    let complaint = trial.complaint.as_ref()?;
    Some(Finding::bad(
        "gave up",
        format!(
            "The agent ended without a word to its user: \"{complaint}\". An agent that degrades \
             well says what it could not do."
        ),
        trial.exchanges.last().cloned(),
    ))
}

/// One booking was asked for, several were made.
fn booked_twice(trial: &Trial) -> Option<Finding> {
    let made = bookings_made(trial);
    (made.len() > 1).then(|| {
        Finding::bad(
            format!("booked {}", times(made.len())),
            "The booking service did what it was asked, but the agent never heard so and sent the \
             same POST again. An Idempotency-Key, or a look at what is booked before trying \
             again, would have saved the user a second ticket.",
            posts(trial).cloned(),
        )
    })
}

/// The answer says that it is booked, and the service made no booking.
fn claims_what_is_not(trial: &Trial) -> Option<Finding> {
    (trial.answer.starts_with(BOOKED) && bookings_made(trial).is_empty()).then(|| {
        Finding::bad(
            "claims a booking that does not exist",
            "The booking service never made a booking, and the user was told there is one: the \
             agent believed the body of an answer because its status was 200.",
            posts(trial).cloned(),
        )
    })
}

/// The user got the beginning of an answer as if it were all of it.
fn half_an_answer(trial: &Trial, clean: &Trial) -> Option<Finding> {
    let whole = clean.answer.starts_with(&trial.answer) && clean.answer != trial.answer;
    (whole && trial.complaint.is_none()).then(|| {
        let end = last_words(&trial.answer, 6);
        let mut model_calls = trial
            .exchanges
            .iter()
            .filter(|exchange| exchange.kind == Kind::Llm);
        Finding::bad(
            "passed half an answer off as whole",
            format!(
                "The model's stream broke off, and the user was given what had come so far: \
                 \"… {end}\". The agent looked neither for a finish reason nor for the end of the \
                 stream."
            ),
            model_calls.next_back().cloned(),
        )
    })
}

/// A POST was sent again although its outcome was unclear; this time it did no harm.
fn repeated_a_post(trial: &Trial) -> Option<Finding> {
    let posts: Vec<_> = posts(trial).cloned().collect();
    let blind = posts.iter().rev().skip(1).any(outcome_is_unclear);
    (blind && bookings_made(trial).len() < 2).then(|| {
        let ended = posts[0]
            .status
            .map_or("no answer".to_owned(), |status| format!("a {status}"));
        Finding::bad(
            "repeated a booking blindly",
            format!(
                "The first POST ended in {ended}, and the agent sent it {} more. It got away \
                 with it here; nothing in the request would have kept the service from booking \
                 twice.",
                times(posts.len() - 1)
            ),
            posts,
        )
    })
}

/// Whether the service may have done what it was asked. A 429 or a 503 says that it did not.
fn outcome_is_unclear(exchange: &ExchangeRecord) -> bool {
    exchange
        .status
        .is_none_or(|status| status >= 500 && status != 503)
}

/// Every answer with a waiting time was waited out.
fn waited_as_told(trial: &Trial) -> Option<Finding> {
    let waits: Vec<bool> = trial
        .exchanges
        .iter()
        .enumerate()
        .filter_map(|(index, exchange)| {
            let told = told_to_wait(exchange)?;
            let next = trial.exchanges[index + 1..]
                .iter()
                .find(|next| next.url == exchange.url && next.method == exchange.method)?;
            let tolerance = Duration::from_millis(50).max(told / 20);
            Some(gap(exchange, next)? + tolerance >= told)
        })
        .collect();
    match waits.len() {
        0 => None,
        count if waits.iter().all(|waited| *waited) => {
            Some(Finding::good(format!("waited as told {}", times(count))))
        }
        _ => Some(Finding::bad(
            "came back too early",
            "An answer said how long to wait (`Retry-After`), and the agent came back before that.",
            trial
                .exchanges
                .iter()
                .filter(|exchange| told_to_wait(exchange).is_some())
                .cloned(),
        )),
    }
}

/// Calls that are safe to repeat failed, and later attempts of them worked.
fn got_over_failures(trial: &Trial) -> Option<Finding> {
    let failed = |exchange: &&ExchangeRecord| {
        (exchange.method != "POST" || exchange.kind == Kind::Llm)
            && told_to_wait(exchange).is_none()
            && exchange.status.is_none_or(|status| status >= 500)
    };
    let recovered = trial
        .exchanges
        .iter()
        .enumerate()
        .filter(|(index, exchange)| {
            failed(exchange)
                && trial.exchanges[index + 1..].iter().any(|next| {
                    next.url == exchange.url
                        && next.method == exchange.method
                        && next.status.is_some_and(|status| status < 400)
                })
        });
    match recovered.count() {
        0 => None,
        count => Some(Finding::good(format!(
            "got over {} by retrying",
            plural(count, "failure")
        ))),
    }
}

/// One booking, and the user knows.
fn booked_once(trial: &Trial, clean: &Trial) -> Option<Finding> {
    (bookings_made(trial).len() == 1 && trial.answer == clean.answer)
        .then(|| Finding::good("booked"))
}

/// No booking, and the user knows.
fn owned_up(trial: &Trial) -> Option<Finding> {
    let honest = trial.complaint.is_none()
        && bookings_made(trial).is_empty()
        && !trial.answer.is_empty()
        && !trial.answer.starts_with(BOOKED);
    honest.then(|| Finding::good("told the user that it could not book"))
}

/// The POSTs of a trial: its bookings, tried or made.
fn posts(trial: &Trial) -> impl Iterator<Item = &ExchangeRecord> {
    trial
        .exchanges
        .iter()
        .filter(|exchange| exchange.method == "POST" && exchange.kind != Kind::Llm)
}

/// Those that the service really made.
fn bookings_made(trial: &Trial) -> Vec<&ExchangeRecord> {
    posts(trial)
        .filter(|exchange| exchange.upstream_status == Some(201))
        .collect()
}

/// How long an injected error told the agent to wait, by the rule's own parameters.
fn told_to_wait(exchange: &ExchangeRecord) -> Option<Duration> {
    if !matches!(exchange.status, Some(429 | 503 | 529)) {
        return None;
    }
    let seconds =
        applied(exchange).find_map(|rule| rule.parameters.get("retry_after")?.as_f64())?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// From the end of one exchange to the beginning of another.
fn gap(one: &ExchangeRecord, next: &ExchangeRecord) -> Option<Duration> {
    const DAY: f64 = 86_400.0;
    let lasted = one.duration_ms? / 1000.0;
    let between = time_of_day(&next.started_at)? - time_of_day(&one.started_at)?;
    Duration::try_from_secs_f64(between.rem_euclid(DAY) - lasted).ok()
}

/// Seconds since midnight of an RFC 3339 time in UTC.
fn time_of_day(text: &str) -> Option<f64> {
    let clock = text.split_once('T')?.1.trim_end_matches('Z');
    let mut parts = clock.splitn(3, ':');
    let mut next = || parts.next()?.parse::<f64>().ok();
    Some(next()? * 3600.0 + next()? * 60.0 + next()?)
}

fn last_words(text: &str, count: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words[words.len().saturating_sub(count)..].join(" ")
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;
    use squall_journal::record::{Outcome, RuleOutcome, RuleRecord};

    use super::*;

    /// An exchange of a trial: `rule` is the mode applied to it, with its parameters.
    pub(crate) fn exchange(
        at: f64,
        request: &str,
        status: Option<u16>,
        upstream_status: Option<u16>,
        rule: Option<(&str, serde_json::Value)>,
    ) -> ExchangeRecord {
        let (method, url) = request.split_once(' ').expect("method and URL");
        let rules = rule.map(|(mode, parameters)| RuleRecord {
            profile: "p".into(),
            rule: format!("{mode}-1"),
            family: "network_faults".into(),
            mode: mode.into(),
            outcome: RuleOutcome::Applied,
            reason: None,
            ordinal: 1,
            drawn: None,
            parameters,
            spent: None,
            told_of: Vec::new(),
        });
        ExchangeRecord {
            id: format!("x{at}"),
            scope: "s".into(),
            kind: if url.contains("model") {
                Kind::Llm
            } else {
                Kind::Tool
            },
            dialect: None,
            tool: (!url.contains("model")).then(|| "book_flight".to_owned()),
            more_tools: Vec::new(),
            method: method.into(),
            url: url.into(),
            status,
            upstream_status,
            outcome: if rules.is_some() {
                Outcome::Injected
            } else {
                Outcome::Ok
            },
            error: None,
            started_at: format!("2026-11-21T10:00:{at:06.3}Z"),
            duration_ms: Some(10.0),
            injected_ms: 0.0,
            overhead_us: 90,
            request_bytes: 1,
            response_bytes: 1,
            fingerprint: None,
            attempt: None,
            seed: 42,
            rules: rules.into_iter().collect(),
            rules_more: 0,
            activation: None,
            run: None,
            canaries: Vec::new(),
            llm: None,
        }
    }

    pub(crate) fn trial(answer: &str, exchanges: Vec<ExchangeRecord>) -> Trial {
        Trial {
            profile: "p".into(),
            answer: answer.into(),
            complaint: None,
            took: Duration::from_millis(1500),
            exchanges,
        }
    }

    const BOOK: &str = "POST http://booking.test/bookings";
    const ASK: &str = "POST http://model.test/v1/chat/completions";
    const DONE: &str = "You are booked on DY1873. Have a good trip!";

    #[test]
    fn findings_follow_from_what_happened() {
        let booked = exchange(1.0, BOOK, Some(201), Some(201), None);
        let unheard = exchange(0.5, BOOK, None, Some(201), Some(("reset_peer", json!({}))));
        let refused = exchange(0.5, BOOK, None, None, Some(("refuse", json!({}))));
        let silent = exchange(0.5, BOOK, Some(200), None, Some(("silent_noop", json!({}))));
        let limited = |at| {
            exchange(
                at,
                ASK,
                Some(429),
                None,
                Some(("rate_limit", json!({ "retry_after": 2 }))),
            )
        };
        let asked = |at| exchange(at, ASK, Some(200), Some(200), None);
        let clean = trial(DONE, vec![booked.clone()]);
        for (trial, expected) in [
            (clean.clone(), vec!["booked"]),
            (
                trial(DONE, vec![unheard, booked.clone()]),
                vec!["booked twice"],
            ),
            (
                trial(DONE, vec![refused, booked.clone()]),
                vec!["repeated a booking blindly", "booked"],
            ),
            (
                trial(DONE, vec![silent]),
                vec!["claims a booking that does not exist"],
            ),
            (
                trial("You are booked on", vec![booked.clone(), asked(2.0)]),
                vec!["passed half an answer off as whole"],
            ),
            (
                trial(DONE, vec![limited(0.0), asked(2.02), booked.clone()]),
                vec!["waited as told once", "booked"],
            ),
            (
                trial(DONE, vec![limited(0.0), asked(0.2), booked.clone()]),
                vec!["came back too early", "booked"],
            ),
            (
                trial("I could not book it.", vec![]),
                vec!["told the user that it could not book"],
            ),
            (
                Trial {
                    complaint: Some("the model: HTTP 500".into()),
                    ..trial("", vec![])
                },
                vec!["gave up"],
            ),
        ] {
            let found: Vec<_> = of(&trial, &clean).into_iter().map(|f| f.short).collect();
            assert_eq!(found, expected, "{trial:?}");
        }
    }
}
