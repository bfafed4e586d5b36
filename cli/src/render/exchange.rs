//! One exchange as one line.

use std::fmt::Write;

use squall_harness::report::milliseconds;
use squall_journal::record::{CanaryEvent, CanaryRecord, ExchangeRecord, Outcome, SocketRecord};

use super::paint::Paint;

/// The line of `tail`: time, exchange, destination, outcome and applied faults.
pub(crate) fn line(exchange: &ExchangeRecord, paint: Paint) -> String {
    let clock = exchange
        .started_at
        .get(11..23)
        .unwrap_or(&exchange.started_at);
    let mut line = format!(
        "{} {} {:<4} {} {} {}",
        paint.faint(clock),
        paint.faint(&exchange.id),
        exchange.kind.as_str(),
        exchange.method,
        exchange.url,
        ending(exchange, paint),
    );
    if let Some(duration) = exchange.duration_ms {
        let _ = write!(line, " {}", paint.faint(milliseconds(duration)));
    }
    if exchange.scope != "default" {
        let _ = write!(
            line,
            " {}",
            paint.faint(format!("scope {}", exchange.scope))
        );
    }
    if let Some(messages) = &exchange.messages {
        let _ = write!(line, " {}", paint.faint(carried(messages)));
    }
    for rule in exchange.applied() {
        let _ = write!(line, " {}", paint.notable(format!("⚡{}", rule.mode)));
    }
    for canary in &exchange.canaries {
        let event = canary_event(canary);
        let _ = match canary.event {
            CanaryEvent::Egress => write!(line, " {}", paint.bad(event)),
            CanaryEvent::Planted => write!(line, " {}", paint.notable(event)),
        };
    }
    if let Some(error) = &exchange.error {
        let _ = write!(line, " {}", paint.bad(error));
    }
    line
}

/// The payload of a canary; empty if the rule has only one.
pub(crate) fn payload(canary: &CanaryRecord) -> String {
    match (&canary.payload, &canary.category) {
        (Some(id), Some(category)) => format!(", payload {id} ({category})"),
        (Some(place), None) => format!(", {place}"),
        (None, _) => String::new(),
    }
}

/// A canary, and whether it was injected or leaked.
pub(crate) fn canary_event(canary: &CanaryRecord) -> String {
    let name = &canary.canary;
    match (canary.event, canary.place) {
        (CanaryEvent::Planted, _) => format!("{name} injected"),
        (CanaryEvent::Egress, None) => format!("{name} leaked"),
        (CanaryEvent::Egress, Some(place)) => format!("{name} leaked in its {}", place.as_str()),
    }
}

/// What a WebSocket carried: `2 messages from the agent, 5 to it, closed by the agent with 1000`.
fn carried(messages: &SocketRecord) -> String {
    let (agent, upstream) = (messages.agent.messages, messages.upstream.messages);
    let plural = if agent == 1 { "" } else { "s" };
    let mut text = format!("{agent} message{plural} from the agent, {upstream} to it");
    if let Some(close) = &messages.close {
        let _ = write!(text, ", closed by the {}", close.by.as_str());
        if let Some(code) = close.code {
            let _ = write!(text, " with {code}");
        }
    }
    text
}

/// The status that the agent got, or the outcome.
pub(crate) fn ending(exchange: &ExchangeRecord, paint: Paint) -> String {
    match (exchange.status, exchange.outcome) {
        (_, Outcome::Open) => paint.faint("open"),
        (Some(status), Outcome::Ok) if status < 400 => paint.good(status),
        (Some(status), Outcome::Ok | Outcome::Injected) => paint.notable(status),
        (Some(status), outcome) => paint.bad(format!("{status} {}", words(outcome))),
        (None, outcome) => paint.bad(words(outcome)),
    }
}

/// An outcome in words.
pub(crate) fn words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Open => "open",
        Outcome::Ok => "ok",
        Outcome::Injected => "no response",
        Outcome::UpstreamError => "upstream failed",
        Outcome::ClientGone => "agent disconnected",
        Outcome::ClientRejectedCa => "agent rejected the CA",
        Outcome::Denied => "denied",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use squall_journal::record::{
        CloseRecord, ExchangeRecord, Kind, MessageCounts, Outcome, RuleOutcome, RuleRecord,
        SocketRecord, SocketSide,
    };

    #[test]
    fn a_websocket_s_line_has_its_messages_and_its_close() {
        let counts = |messages| MessageCounts { messages, bytes: 9 };
        let close = |code| CloseRecord {
            by: SocketSide::Upstream,
            code,
            reason: String::new(),
        };
        for (agent, close, expected) in [
            (1, None, "1 message from the agent, 5 to it"),
            (
                2,
                Some(close(Some(1012))),
                "2 messages from the agent, 5 to it, closed by the upstream with 1012",
            ),
            (
                0,
                Some(close(None)),
                "0 messages from the agent, 5 to it, closed by the upstream",
            ),
        ] {
            let mut record = exchange(1.0, "GET http://x/", Some(101), Some(101), None);
            let (agent, upstream) = (counts(agent), counts(5));
            record.messages = Some(SocketRecord {
                agent,
                upstream,
                close,
            });
            let line = super::line(&record, super::Paint::plain());
            assert!(
                line.ends_with(&format!(" 10 ms scope s {expected}")),
                "{line}"
            );
        }
    }

    /// An exchange: `rule` is the mode applied to it, with its parameters.
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
            websocket: None,
            messages: None,
            canaries: Vec::new(),
            llm: None,
            agent: None,
        }
    }
}
