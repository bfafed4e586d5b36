//! The delay that a response requests before a retry.
//!
//! Supports `Retry-After` in seconds or as a date (RFC 9110 §10.2.3), providers' headers in milliseconds, and
//! Gemini's `RetryInfo` in the body. If heads were not kept, the applied rule's announced wait is used.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use squall_journal::timestamp;

use crate::reach::{SeenExchange, SeenMessage};

pub(super) fn retry_after(seen: &SeenExchange) -> Option<Duration> {
    match &seen.response {
        Some(answer) => by_header(answer, seen).or_else(|| by_body(answer)),
        None => by_rule(seen),
    }
}

fn by_header(answer: &SeenMessage, seen: &SeenExchange) -> Option<Duration> {
    for name in ["retry-after-ms", "x-amz-retry-after"] {
        if let Some(ms) = answer
            .header(name)
            .and_then(|ms| ms.trim().parse::<f64>().ok())
        {
            return seconds(ms / 1000.0);
        }
    }
    let written = answer.header("retry-after")?.trim();
    if let Ok(number) = written.parse::<f64>() {
        return seconds(number);
    }
    let until = http_date(written)?;
    // `Date` omits fractions of a second.
    if let Some(date) = answer.header("date").and_then(http_date) {
        return Some(until.saturating_sub(date + Duration::from_secs(1)));
    }
    let began = timestamp::parse(&seen.record.started_at).ok()?;
    let took = seen.ended?.saturating_sub(seen.began);
    Some(until.saturating_sub(Duration::from_millis(began) + took))
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// `{"error": {"details": [{"@type": "…RetryInfo", "retryDelay": "8s"}]}}`
fn by_body(answer: &SeenMessage) -> Option<Duration> {
    let document: Value = serde_json::from_slice(&answer.body.as_ref()?.bytes).ok()?;
    let details = document.pointer("/error/details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?.parse().ok()?)
}

fn by_rule(seen: &SeenExchange) -> Option<Duration> {
    let mut applied = seen.record.applied();
    seconds(applied.find_map(|rule| rule.parameters.get("retry_after")?.as_f64())?)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` as the time since 1970.
fn http_date(text: &str) -> Option<Duration> {
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    date.duration_since(SystemTime::UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testing::{Sent, exchange};

    #[test]
    fn every_way_of_invocation_to_wait_is_understood() {
        for (name, value, expected) in [
            ("Retry-After", "2", Some(2000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "250", Some(250)),
            ("x-amz-retry-after", "1500", Some(1500)),
            ("Retry-After", "Sun, 06 Nov 1994 08:49:47 GMT", Some(9000)),
            ("Retry-After", "soon", None),
            ("Retry-After", "-1", None),
        ] {
            let sent = Sent::get("https://a.test/").status(429);
            let sent = sent
                .answer_header(name, value)
                .answer_header("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
            let found = retry_after(&exchange(0, &sent));
            assert_eq!(
                found,
                expected.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
        // Without `Date` the proxy's clock is used: the response ended at 12:00:00.910.
        let mut sent = Sent::get("https://a.test/").status(429);
        sent.record.started_at = "2026-11-22T12:00:00.900Z".into();
        let sent = sent.answer_header("Retry-After", "Sun, 22 Nov 2026 12:00:02 GMT");
        assert_eq!(
            retry_after(&exchange(0, &sent)),
            Some(Duration::from_millis(1090))
        );
        let body =
            r#"{"error":{"details":[{"@type":"x"},{"@type":"RetryInfo","retryDelay":"8.5s"}]}}"#;
        let sent = Sent::get("https://a.test/").status(429).answer_body(body);
        assert_eq!(
            retry_after(&exchange(0, &sent)),
            Some(Duration::from_millis(8500))
        );
    }
}
