//! The summary of one `squall run`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use squall_harness::count::count;
use squall_harness::report::milliseconds;
use squall_journal::record::{
    CanaryEvent, Encoding, ExchangeRecord, Outcome, Place, RuleOutcome, RuleRecord,
};

use super::paint::Paint;
use super::table::{Table, wrap};

/// Most lines in the table of destinations.
const MOST: usize = 20;

/// Most leaked canaries, and most failures, named below the table.
const MOST_NAMED: usize = 5;

/// A rule that was in force.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RuleName {
    /// Its id.
    pub(crate) rule: String,
    /// The profile it was written in.
    pub(crate) profile: String,
    /// Its mode.
    pub(crate) mode: String,
}

/// Collects exchanges for the summary.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    exchanges: u64,
    injected_ms: f64,
    destinations: BTreeMap<String, Destination>,
    rules: BTreeMap<RuleName, Fired>,
    rejected_ca: BTreeSet<String>,
    /// Failures without a fault, as in the journal.
    failures: BTreeSet<String>,
    /// Lines about leaked canaries, in order.
    leaked: Vec<String>,
    /// A CONNECT failed without a fault, so its requests were not seen.
    unreached: bool,
}

/// All exchanges with one method, host and path.
#[derive(Debug, Default)]
struct Destination {
    exchanges: usize,
    endings: BTreeMap<String, usize>,
    faults: BTreeMap<String, usize>,
}

/// The outcomes of a rule, counted.
#[derive(Debug, Default)]
struct Fired {
    applied: u64,
    matched: u64,
    /// The latest reason why it was not applied.
    reason: Option<String>,
}

impl Summary {
    /// A summary that will name the active rules if they have no effect.
    pub(crate) fn new(active: impl IntoIterator<Item = RuleName>) -> Self {
        let rules = active
            .into_iter()
            .map(|rule| (rule, Fired::default()))
            .collect();
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Counts an exchange.
    pub(crate) fn add(&mut self, exchange: &ExchangeRecord) {
        self.exchanges += 1;
        self.injected_ms += exchange.injected_ms;
        if exchange.outcome == Outcome::ClientRejectedCa {
            self.rejected_ca.insert(exchange.url.clone());
        }
        if let (Outcome::UpstreamError | Outcome::Denied, Some(error)) =
            (exchange.outcome, &exchange.error)
        {
            self.failures.insert(error.clone());
            self.unreached |= exchange.method == "CONNECT";
        }
        let leaked = exchange
            .canaries
            .iter()
            .filter(|canary| canary.event == CanaryEvent::Egress);
        self.leaked.extend(leaked.map(|canary| {
            format!(
                "canary {} leaked in the {} of {} {} ({}); rule {} injected it{}",
                canary.canary,
                canary.place.map_or("request", Place::as_str),
                exchange.method,
                exchange.url,
                canary.encoding.map_or("raw", Encoding::as_str),
                canary.rule,
                super::exchange::payload(canary),
            )
        }));
        let path = exchange.url.split(['?', '#']).next().unwrap_or_default();
        let destination = self
            .destinations
            .entry(format!("{} {path}", exchange.method))
            .or_default();
        destination.exchanges += 1;
        let ending = exchange.status.map_or_else(
            || super::exchange::words(exchange.outcome).to_owned(),
            |status| status.to_string(),
        );
        *destination.endings.entry(ending).or_default() += 1;
        for rule in exchange.applied() {
            *destination.faults.entry(rule.mode.clone()).or_default() += 1;
        }
        for rule in &exchange.rules {
            self.count(rule);
        }
    }

    fn count(&mut self, record: &RuleRecord) {
        let name = RuleName {
            rule: record.rule.clone(),
            profile: record.profile.clone(),
            mode: record.mode.clone(),
        };
        let fired = self.rules.entry(name).or_default();
        fired.matched += 1;
        match record.outcome {
            RuleOutcome::Applied => fired.applied += 1,
            RuleOutcome::NotDrawn | RuleOutcome::Bypassed => {
                fired.reason.clone_from(&record.reason);
            }
        }
    }

    /// The lines for stderr. `chaos` is the active profile, `unseen` the likely reason for no traffic.
    pub(crate) fn render(&self, chaos: &str, unseen: &str, paint: Paint) -> String {
        let faults: u64 = self.rules.values().map(|fired| fired.applied).sum();
        let mut text = format!(
            "{} {} through the proxy, {} applied ({chaos})\n",
            paint.strong("squall:"),
            count(self.exchanges, "exchange"),
            count(faults, "fault"),
        );
        if self.exchanges == 0 {
            for line in wrap(unseen, 92) {
                let _ = writeln!(text, "  {}", paint.notable(line));
            }
            return text;
        }
        text.push_str(&self.table(paint));
        if self.injected_ms >= 1.0 {
            let delay = milliseconds(self.injected_ms);
            let _ = writeln!(text, "  {delay} of delay added by faults");
        }
        text.push_str(&worst(self.leaked.iter(), "leaked canaries", paint));
        text.push_str(&worst(self.failures.iter(), "failures", paint));
        for url in &self.rejected_ca {
            let _ = writeln!(
                text,
                "  {} {url} was not reached: the program does not trust Squall's CA; configure its TLS \
                 library with the file in SSL_CERT_FILE",
                paint.bad("!"),
            );
        }
        text.push_str(&self.without_effect(paint));
        text
    }

    fn table(&self, paint: Paint) -> String {
        let mut destinations: Vec<_> = self.destinations.iter().collect();
        destinations.sort_by_key(|(_, destination)| std::cmp::Reverse(destination.exchanges));
        let mut table = Table::default();
        for (name, destination) in destinations.iter().take(MOST) {
            table.row([
                format!("  {name}"),
                counted(&destination.endings),
                paint.notable(counted(&destination.faults)),
            ]);
        }
        let mut text = table.render();
        if destinations.len() > MOST {
            let _ = writeln!(text, "  … and {} more", destinations.len() - MOST);
        }
        text
    }

    /// The rules that were never applied, and hints.
    fn without_effect(&self, paint: Paint) -> String {
        let idle: Vec<_> = self
            .rules
            .iter()
            .filter(|(_, fired)| fired.applied == 0)
            .collect();
        let mut text = String::new();
        for (name, fired) in &idle {
            let why = match (&fired.reason, fired.matched) {
                (_, 0) if self.unreached => "no exchange matched it; hosts above were not \
                    reached, and over https Squall dials before it sees a request"
                    .to_owned(),
                (_, 0) => "no exchange matched it".to_owned(),
                (Some(reason), matched) => {
                    format!("{} matched it; {reason}", count(matched, "exchange"))
                }
                (None, matched) => format!("{} matched it", count(matched, "exchange")),
            };
            let line = format!(
                "rule {} ({}, {}) had no effect: {why}",
                name.rule, name.mode, name.profile
            );
            for (index, part) in wrap(&line, 92).iter().enumerate() {
                let indent = if index == 0 { "  " } else { "    " };
                let _ = writeln!(text, "{indent}{}", paint.faint(part));
            }
        }
        if idle.iter().any(|(_, fired)| fired.matched == 0) {
            text.push_str(
                "  compare a rule's match with the list above; `squall profile show NAME` prints it\n",
            );
        }
        text
    }
}

/// The first of these lines, and how many more there are.
fn worst<'a>(lines: impl ExactSizeIterator<Item = &'a String>, what: &str, paint: Paint) -> String {
    let more = lines.len().saturating_sub(MOST_NAMED);
    let mut text = String::new();
    for line in lines.take(MOST_NAMED) {
        let _ = writeln!(text, "  {} {line}", paint.bad("!"));
    }
    if more > 0 {
        let _ = writeln!(text, "  … and {more} more {what}");
    }
    text
}

/// `200 × 6, 429 × 3`.
fn counted(counts: &BTreeMap<String, usize>) -> String {
    let parts = counts.iter().map(|(name, count)| match count {
        1 => name.clone(),
        count => format!("{name} × {count}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::exchange::tests::exchange;

    fn rule(rule: &str, mode: &str) -> RuleName {
        RuleName {
            rule: rule.into(),
            profile: "p".into(),
            mode: mode.into(),
        }
    }

    #[test]
    fn the_summary_names_what_fired_and_what_did_not() {
        let ask = "POST https://api.openai.com/v1/chat/completions";
        let limited = Some(("rate_limit", json!({})));
        let mut undrawn = exchange(3.0, ask, Some(200), Some(200), Some(("timeout", json!({}))));
        undrawn.rules[0].outcome = RuleOutcome::NotDrawn;
        undrawn.rules[0].reason = Some("drew 0.83, fires below 0.1".into());
        let mut untrusted = exchange(4.0, "CONNECT https://pinned.example", None, None, None);
        untrusted.outcome = Outcome::ClientRejectedCa;
        let mut refused = exchange(5.0, "GET http://tools.test/b", Some(502), None, None);
        refused.outcome = Outcome::UpstreamError;
        refused.error = Some("tools.test:80 refused the connection".into());
        let mut obedient = exchange(6.0, "GET http://tools.test/c", Some(200), Some(200), None);
        obedient.canaries = ["url", "header"]
            .map(|place| {
                serde_json::from_value(json!({
                    "canary": "sq-0123456789ab", "event": "egress", "where": place,
                    "encoding": "base64", "planted_by": "x2", "rule": "attack",
                    "payload": "role-two-voices", "category": "role_play",
                }))
                .expect("a record")
            })
            .to_vec();
        let exchanges = [
            obedient,
            refused,
            exchange(0.0, ask, Some(429), None, limited.clone()),
            exchange(1.0, ask, Some(429), None, limited),
            exchange(
                2.0,
                "GET http://tools.test/a?q=1",
                Some(200),
                Some(200),
                None,
            ),
            undrawn,
            untrusted,
        ];
        let mut summary = Summary::new([
            rule("rate_limit-1", "rate_limit"),
            rule("timeout-1", "timeout"),
            rule("reset_peer-9", "reset_peer"),
        ]);
        for exchange in &exchanges {
            summary.add(exchange);
        }
        let unseen = "no traffic: the program sent no request";
        let nothing = Summary::new([]).render("no chaos", unseen, Paint::plain());
        let something = summary.render("profile p, seed 42", unseen, Paint::plain());
        insta::assert_snapshot!(format!("{something}\n{nothing}"));
    }
}
