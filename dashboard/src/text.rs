//! Numbers, times and durations as a person reads them.

use std::time::SystemTime;

use maud::{Markup, html};
use squall_journal::timestamp;

/// `1,234,567`.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 exchange`, `2 exchanges`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", number(count))
}

/// `0.4 ms`, `12 ms`, `1.25 s`.
pub(crate) fn milliseconds(ms: f64) -> String {
    match ms {
        _ if ms < 9.95 => format!("{ms:.1} ms"),
        _ if ms < 1_000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.2} s", ms / 1_000.0),
    }
}

/// A text whose parts between backticks are code.
pub(crate) fn marked(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The time of day of an RFC 3339 time.
pub(crate) fn time_of_day(at: &str) -> &str {
    at.get(11..23).unwrap_or(at)
}

/// `9 min 41 s left`; `None` for no valid time.
pub(crate) fn time_left(expires_at: &str) -> Option<String> {
    let left = timestamp::parse(expires_at).ok()?.saturating_sub(now()) / 1_000;
    Some(match left {
        0..60 => format!("{left} s left"),
        60..3_600 => format!("{} min {} s left", left / 60, left % 60),
        _ => format!("{} h {} min left", left / 3_600, left / 60 % 60),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "shows how much of a wall-clock time is left"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations_are_written_for_people() {
        for (given, written) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(number(given), written);
        }
        for (given, written) in [
            (0.0, "0.0 ms"),
            (9.96, "10 ms"),
            (812.4, "812 ms"),
            (1_250.0, "1.25 s"),
        ] {
            assert_eq!(milliseconds(given), written);
        }
        assert_eq!(time_of_day("2026-11-21T23:01:40.120Z"), "23:01:40.120");
        assert_eq!(time_of_day("é"), "é");
    }
}
