//! Ranges of time: `last_7_days`, `last_24_hours`, `7d`, or two points in time.

use std::time::Duration;

use squall_documents::duration;
use squall_journal::timestamp;

/// A range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateRange {
    /// From so long ago until now.
    Last(Duration),
    /// Between two times, milliseconds since 1970.
    Between(u64, u64),
}

/// How ranges are written.
const WRITTEN: &str = "write `last_7_days`, `last_24_hours`, `7d`, or two times: `2026-11-01T00:00:00Z/2026-11-08T00:00:00Z`";

impl DateRange {
    /// Reads a range.
    pub fn parse(text: &str) -> Result<Self, String> {
        let named = text
            .strip_prefix("last_")
            .and_then(|rest| rest.split_once('_'));
        let range = match (named, text.split_once('/')) {
            (Some((number, unit)), _) => last(number, unit),
            (None, Some((from, to))) => {
                let (from, to) = (
                    timestamp::parse(from.trim()).ok(),
                    timestamp::parse(to.trim()).ok(),
                );
                from.zip(to)
                    .filter(|(from, to)| from < to)
                    .map(|(from, to)| Self::Between(from, to))
            }
            (None, None) => match text.strip_suffix('d') {
                Some(days) => last(days, "days"),
                None => duration::parse(text)
                    .filter(|it| !it.is_zero())
                    .map(Self::Last),
            },
        };
        range.ok_or_else(|| format!("`{text}` is not a range of time; {WRITTEN}"))
    }

    /// Its first and last millisecond.
    pub fn bounds(self, now_ms: u64) -> (u64, u64) {
        match self {
            Self::Between(from, to) => (from, to),
            Self::Last(ago) => {
                let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
                (now_ms.saturating_sub(ago), now_ms)
            }
        }
    }
}

fn last(number: &str, unit: &str) -> Option<DateRange> {
    let number: u32 = number.parse().ok().filter(|number| *number > 0)?;
    let hour = Duration::from_hours(1);
    Some(DateRange::Last(match unit {
        "day" | "days" => hour * 24 * number.min(100_000),
        "hour" | "hours" => hour * number.min(2_400_000),
        _ => return None,
    }))
}
