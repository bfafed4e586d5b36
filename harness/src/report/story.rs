//! The calls of one invocation in order, with the faults that were applied to them.

use std::collections::HashMap;

use squall_journal::record::{ExchangeRecord, Kind, Outcome, RuleRecord};
use squall_journal::timestamp;

use super::{Report, next, telling};
use crate::run::{CellRecord, EvidenceRecord};

/// The exchanges of a report by id.
#[derive(Debug)]
pub(super) struct Wire<'r> {
    by_id: HashMap<&'r str, &'r ExchangeRecord>,
    report: &'r Report,
}

/// One invocation with its calls.
#[derive(Debug)]
pub(super) struct Story<'r> {
    pub(super) invocation: &'r EvidenceRecord,
    /// The calls in the report, oldest first.
    pub(super) calls: Vec<StoryCall<'r>>,
    /// Number of calls that are not in the report.
    pub(super) missing: usize,
}

/// One call of the agent.
#[derive(Debug)]
pub(super) struct StoryCall<'r> {
    pub(super) exchange: &'r ExchangeRecord,
    /// Its start, in milliseconds after the first call.
    pub(super) at_ms: u64,
}

/// An applied rule and the calls it was applied to.
#[derive(Debug)]
pub(super) struct InjectedFault<'r> {
    pub(super) rule: &'r RuleRecord,
    /// Name of the call.
    pub(super) on: String,
    /// The response that the agent received to the first call.
    pub(super) got: String,
    /// Number of calls it was applied to.
    pub(super) times: usize,
    /// Number of later calls with the same name.
    pub(super) again: usize,
    /// Whether one of the affected calls is the decisive exchange.
    pub(super) is_decisive: bool,
}

impl<'r> Wire<'r> {
    pub(super) fn of(report: &'r Report) -> Self {
        let exchanges = report.exchanges.iter();
        Self {
            by_id: exchanges.map(|one| (one.id.as_str(), one)).collect(),
            report,
        }
    }

    /// The type of a cell's invariant: from the run's list, or else its id, which is the type by default.
    pub(super) fn type_of<'c>(&'c self, cell: &'c CellRecord) -> &'c str {
        let mut demands = self.report.run.demands.iter();
        let demand = demands.find(|one| one.invariant == cell.invariant);
        demand.map_or(&cell.invariant, |one| &one.r#type)
    }

    /// Whether a cell is under chaos.
    pub(super) fn is_under_chaos(&self, cell: &CellRecord) -> bool {
        let mut scenarios = self.report.run.scenarios.iter();
        scenarios.any(|one| one.name == cell.scenario && one.under_chaos)
    }

    /// The commands that replay a cell's first failed invocation.
    pub(super) fn replay_command(&self, cell: &CellRecord) -> Option<String> {
        next::replay_command(self.report, cell)
    }

    /// The decisive invocations of a cell.
    pub(super) fn stories(&self, cell: &'r CellRecord) -> Vec<Story<'r>> {
        telling(cell).map(|one| self.story(one)).collect()
    }

    fn story(&self, invocation: &'r EvidenceRecord) -> Story<'r> {
        let ids = invocation.exchanges.iter();
        let found = ids.filter_map(|id| self.by_id.get(id.as_str()).copied());
        let begun = |exchange: &ExchangeRecord| timestamp::parse(&exchange.started_at).unwrap_or(0);
        let mut found: Vec<_> = found.map(|exchange| (begun(exchange), exchange)).collect();
        found.sort_by_key(|(at, exchange)| (*at, exchange.id.as_str()));
        let first = found.first().map_or(0, |(at, _)| *at);
        let missing = invocation.exchanges.len().saturating_sub(found.len());
        let calls = found.into_iter().map(|(at, exchange)| StoryCall {
            exchange,
            at_ms: at - first,
        });
        Story {
            calls: calls.collect(),
            missing,
            invocation,
        }
    }
}

impl<'r> Story<'r> {
    /// Injected faults by rule and call, in order of first application.
    pub(super) fn injections(&self) -> Vec<InjectedFault<'r>> {
        let mut found: Vec<InjectedFault<'r>> = Vec::new();
        for (place, call) in self.calls.iter().enumerate() {
            let on = call_name(call.exchange);
            let is_decisive = self.invocation.telling.as_ref() == Some(&call.exchange.id);
            for rule in call.exchange.applied() {
                let known = found.iter_mut().find(|injection| {
                    injection.on == on
                        && (&injection.rule.profile, &injection.rule.rule)
                            == (&rule.profile, &rule.rule)
                });
                if let Some(injection) = known {
                    injection.times += 1;
                    injection.is_decisive |= is_decisive;
                    continue;
                }
                let later = self.calls[place + 1..].iter();
                found.push(InjectedFault {
                    rule,
                    on: on.clone(),
                    got: got(call.exchange),
                    times: 1,
                    again: later
                        .filter(|later| call_name(later.exchange) == on)
                        .count(),
                    is_decisive,
                });
            }
        }
        found
    }
}

/// A short name of the call: the tool, the model, or host and path.
pub(crate) fn call_name(exchange: &ExchangeRecord) -> String {
    if let Some(tool) = &exchange.tool {
        return tool.clone();
    }
    let model = exchange.llm.as_ref().and_then(|llm| llm.model.as_ref());
    match (exchange.kind, model) {
        (Kind::Llm, Some(model)) => format!("model {model}"),
        (Kind::Llm, None) => "the model".to_owned(),
        (Kind::Tool | Kind::Mcp | Kind::Agent | Kind::Other, _) => place(&exchange.url),
    }
}

/// What the agent received: a status, and how the response ended if it was incomplete.
pub(super) fn got(exchange: &ExchangeRecord) -> String {
    let status = status(exchange);
    let end = exchange
        .applied()
        .find_map(|rule| broken(&rule.family, &rule.mode));
    match (exchange.status, end) {
        (Some(_), Some(end)) if exchange.response_bytes == 0 => end.to_owned(),
        (Some(_), Some(end)) => format!("{status}, and then {end}"),
        _ => status,
    }
}

/// How a fault ends a response early.
fn broken(family: &str, mode: &str) -> Option<&'static str> {
    match (family, mode) {
        ("network_faults", "reset_peer") => Some("a reset connection"),
        ("network_faults", "limit_data") => Some("a connection that was closed too early"),
        ("network_faults", "half_open") => Some("a connection that stayed silent"),
        ("network_faults", "websocket_close") => Some("a closed WebSocket"),
        ("llm_faults", "stream_cut") => Some("a stream that was cut"),
        _ => None,
    }
}

fn status(exchange: &ExchangeRecord) -> String {
    match (exchange.status, exchange.outcome) {
        (Some(status), _) => status.to_string(),
        (None, Outcome::Open) => "still open".to_owned(),
        (None, Outcome::ClientGone) => "the agent left".to_owned(),
        (None, Outcome::ClientRejectedCa) => "certificate rejected".to_owned(),
        (None, Outcome::Denied) => "denied".to_owned(),
        (None, Outcome::Ok | Outcome::Injected | Outcome::UpstreamError) => "no answer".to_owned(),
    }
}

/// Host, port and path of a URL, with `*` for numbers and for long segments of the path that contain a digit: ids.
pub(crate) fn place(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let mut segments = rest[..end].trim_end_matches('/').split('/');
    let mut place = segments.next().unwrap_or_default().to_owned();
    for segment in segments {
        let digits = segment.bytes().filter(u8::is_ascii_digit).count();
        let is_id = digits > 0 && (digits == segment.len() || segment.len() >= 8);
        place.push('/');
        place.push_str(if is_id { "*" } else { segment });
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::fixture;

    #[test]
    fn an_injection_says_what_the_agent_did_after_it() {
        let report = fixture();
        let wire = Wire::of(&report);
        let failed = &report.run.cells[3].evidence[0];
        let story = wire.story(failed);
        assert_eq!((story.calls.len(), story.missing), (4, 1));
        assert_eq!(story.calls[1].at_ms, 90);
        let told: Vec<_> = story
            .injections()
            .iter()
            .map(|one| {
                let (rule, on) = (one.rule.rule.clone(), one.on.clone());
                (rule, on, one.got.clone(), one.times, one.again)
            })
            .collect();
        let text = str::to_owned;
        assert_eq!(
            told,
            [
                (text("outage"), text("web_search"), text("503"), 2, 1),
                (text("limit"), text("model m-1"), text("429"), 1, 0),
            ]
        );
    }

    #[test]
    #[rustfmt::skip]
    fn an_answer_that_a_fault_breaks_off_is_no_status_alone() {
        let report = fixture();
        let hit = |one: &&ExchangeRecord| one.applied().next().is_some();
        let exchange = report.exchanges.iter().find(hit).expect("one");
        for (family, mode, bytes, expected) in [
            ("network_faults", "reset_peer", 0, "a reset connection"),
            ("network_faults", "reset_peer", 9, "200, and then a reset connection"),
            ("llm_faults", "stream_cut", 9, "200, and then a stream that was cut"),
            ("network_faults", "latency", 9, "200"),
        ] {
            let mut exchange = exchange.clone();
            (exchange.status, exchange.response_bytes) = (Some(200), bytes);
            exchange.rules.truncate(1);
            exchange.rules[0].family = family.to_owned();
            exchange.rules[0].mode = mode.to_owned();
            assert_eq!(got(&exchange), expected, "{mode} {bytes}");
        }
    }

    #[test]
    fn what_was_called_has_a_name() {
        for (url, expected) in [
            ("http://a.test:80/?y", "a.test:80"),
            ("http://a.test/v1/orders/117?y=1", "a.test/v1/orders/*"),
            ("http://a.test/u/3f2a0c1d-9b/pay", "a.test/u/*/pay"),
            ("a.test:443", "a.test:443"),
            ("/only", "/only"),
        ] {
            assert_eq!(place(url), expected);
        }
    }
}
