//! `squall explain`: why each rule did or did not fire on one exchange.

use std::fmt::Write;

use serde_json::Value;
use squall_harness::report::milliseconds;
use squall_journal::record::{
    CanaryRecord, ExchangeRecord, ExplainedRecord, RuleOutcome, RuleRecord, SpentRecord,
};

use crate::args::ExplainArgs;
use crate::client::{Client, path};
use crate::failure::Failure;
use crate::host;
use crate::render::paint::Paint;
use crate::render::table::Table;
use crate::render::{exchange, output};

pub(super) async fn run(explain: ExplainArgs) -> Result<(), Failure> {
    let ExplainArgs { exchange, read } = &explain;
    let path = path(&["/v1/exchanges", exchange], &[]);
    let show = async |client: &Client| {
        if read.json {
            return output::json(&client.get::<Value>(&path).await?);
        }
        output::print(&text(&client.get(&path).await?, Paint::stdout()))
    };
    host::read(&read.store, Some(("exchange", exchange)), show).await
}

fn text(explained: &ExplainedRecord, paint: Paint) -> String {
    let record = &explained.exchange;
    let misses = explained.nearest_misses.as_deref().unwrap_or_default();
    let mut text = format!(
        "{}\n{}",
        exchange::line(record, paint),
        circumstances(record, paint)
    );
    for canary in &record.canaries {
        let _ = writeln!(text, "  {}", origin(canary));
    }
    let mut table = Table::default();
    for rule in &record.rules {
        table.row([
            verdict(rule.outcome, paint),
            name(&rule.rule, &rule.mode, paint),
            why(rule),
        ]);
    }
    for miss in misses {
        let why = format!("{} [{}]", miss.why, miss.profile);
        table.row([
            paint.faint("  missed"),
            name(&miss.rule, &miss.mode, paint),
            why,
        ]);
    }
    text.push_str(&table.render());
    if record.rules_more > 0 {
        let _ = writeln!(
            text,
            "  … and {} more that were not drawn",
            record.rules_more
        );
    }
    if explained.nearest_misses.is_none() {
        text.push_str(
            "  the rules of that time are no longer active, so it is unknown which of them missed\n",
        );
    } else if record.rules.is_empty() && misses.is_empty() {
        text.push_str(
            "  no rule matched, and none nearly did; `squall status` shows the active profiles\n",
        );
    }
    text
}

/// Scope, seed and attempt, which decide the draws.
fn circumstances(record: &ExchangeRecord, paint: Paint) -> String {
    let mut parts = vec![
        format!("scope {}", record.scope),
        format!("seed {}", record.seed),
    ];
    if let Some(fingerprint) = &record.fingerprint {
        parts.push(format!("fingerprint {fingerprint}"));
    }
    if let Some(attempt) = record.attempt {
        parts.push(format!("attempt {attempt}"));
    }
    if record.upstream_status != record.status {
        parts.push(match record.upstream_status {
            Some(status) => format!("the upstream returned {status}"),
            None => "no request was sent to the upstream".to_owned(),
        });
    }
    if record.injected_ms > 0.0 {
        parts.push(format!(
            "{} of it injected delay",
            milliseconds(record.injected_ms)
        ));
    }
    format!("  {}\n", paint.faint(parts.join(", ")))
}

/// The event of a canary, and the rule that injected it.
fn origin(canary: &CanaryRecord) -> String {
    let what = exchange::canary_event(canary);
    let rule = &canary.rule;
    let payload = exchange::payload(canary);
    match canary.encoding {
        None => format!("{what} by rule {rule}{payload}"),
        Some(encoding) => format!(
            "{what} ({}); rule {rule} injected it in {}{payload}",
            encoding.as_str(),
            canary.planted_by
        ),
    }
}

fn verdict(outcome: RuleOutcome, paint: Paint) -> String {
    match outcome {
        RuleOutcome::Applied => paint.notable("  applied"),
        RuleOutcome::Bypassed => paint.bad("  bypassed"),
        RuleOutcome::NotDrawn => "  not drawn".to_owned(),
    }
}

fn name(rule: &str, mode: &str, paint: Paint) -> String {
    if rule.starts_with(mode) {
        paint.name(rule)
    } else {
        format!("{} ({mode})", paint.name(rule))
    }
}

/// The reason, with the numbers that decided.
fn why(rule: &RuleRecord) -> String {
    let mut parts = Vec::new();
    // 0: the rule was not compared with the exchange.
    if rule.ordinal > 0 {
        parts.push(format!("matching call {}", rule.ordinal));
    }
    if rule.outcome == RuleOutcome::Applied
        && let Some(spent) = &rule.spent
    {
        parts.push(used_up(spent));
    }
    // The reason of a rule that was not drawn names the draw itself.
    if rule.outcome != RuleOutcome::NotDrawn
        && let Some(drawn) = rule.drawn
    {
        parts.push(format!("drew {drawn:.6}"));
    }
    parts.extend(rule.reason.clone());
    if !rule.told_of.is_empty() {
        let tools = rule.told_of.join(", ");
        parts.push(format!(
            "changed the tool results of {tools} in the model's input"
        ));
    }
    if rule.outcome == RuleOutcome::Applied
        && let Value::Object(parameters) = &rule.parameters
        && !parameters.is_empty()
    {
        let list = parameters
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        parts.push(format!("{{{}}}", list.collect::<Vec<_>>().join(", ")));
    }
    format!("{} [{}]", parts.join("; "), rule.profile)
}

/// The consumption that used up a budget.
fn used_up(spent: &SpentRecord) -> String {
    let tokens = spent.input_tokens + spent.output_tokens;
    let estimated = match spent.estimated_tokens {
        0 => String::new(),
        estimated => format!(" ({estimated} of them estimated)"),
    };
    let money = spent.usd.map(|usd| format!(", ${usd}"));
    format!(
        "{tokens} tokens used up{estimated}{}",
        money.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use squall_journal::record::{CanaryEvent, Encoding, NearMissRecord, Place};

    use super::*;
    use crate::render::exchange::tests::exchange;

    #[test]
    fn every_rule_has_its_reason() {
        let mut record = exchange(
            1.0,
            "POST http://model.test/v1/chat/completions",
            Some(429),
            None,
            Some(("rate_limit", json!({ "retry_after": 1 }))),
        );
        record.rules.push(RuleRecord {
            outcome: RuleOutcome::NotDrawn,
            reason: Some("drew 0.83, fires below 0.1".into()),
            drawn: Some(0.83),
            rule: "slow-start".into(),
            mode: "latency".into(),
            ..record.rules[0].clone()
        });
        record.rules.push(RuleRecord {
            rule: "budget".into(),
            mode: "quota_exhausted".into(),
            parameters: json!({ "after_tokens": 500 }),
            spent: Some(SpentRecord {
                calls: 2,
                input_tokens: 480,
                output_tokens: 40,
                estimated_tokens: 40,
                usd: Some(0.0016),
            }),
            ..record.rules[0].clone()
        });
        record.rules.push(RuleRecord {
            rule: "inside".into(),
            mode: "error".into(),
            family: "tool_faults".into(),
            parameters: json!({ "at": "model_input" }),
            told_of: vec!["search".into(), "clock".into()],
            ..record.rules[0].clone()
        });
        let planted = CanaryRecord {
            canary: "sq-0123456789ab".into(),
            event: CanaryEvent::Planted,
            place: None,
            encoding: None,
            planted_by: "x1".into(),
            rule: "attack".into(),
            payload: Some("payloads[1]".into()),
            category: None,
        };
        record.canaries = vec![
            planted.clone(),
            CanaryRecord {
                canary: "sq-ba9876543210".into(),
                event: CanaryEvent::Egress,
                place: Some(Place::Url),
                encoding: Some(Encoding::Base64),
                planted_by: "x0".into(),
                payload: Some("role-two-voices".into()),
                category: Some("role_play".into()),
                ..planted
            },
        ];
        record.attempt = Some(2);
        record.fingerprint = Some("00aa11bb22cc33dd".into());
        let miss = NearMissRecord {
            profile: "p".into(),
            rule: "error-1".into(),
            family: "tool_faults".into(),
            mode: "error".into(),
            why: "the method is POST, the rule wants GET".into(),
        };
        let explained = ExplainedRecord {
            exchange: record,
            nearest_misses: Some(vec![miss]),
        };
        insta::assert_snapshot!(text(&explained, Paint::plain()));
    }
}
