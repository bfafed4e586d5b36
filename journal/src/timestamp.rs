//! Times in the journal, as text.

use thiserror::Error;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Milliseconds since 1970 as RFC 3339 with three decimals, in UTC: `2026-11-21T23:01:40.120Z`.
///
/// Times after the year 9999 become its last millisecond.
pub fn rfc3339(ms: u64) -> String {
    const LAST: i64 = 253_402_300_799_999;
    let ms = i64::try_from(ms).unwrap_or(LAST).min(LAST);
    let at = OffsetDateTime::UNIX_EPOCH + Duration::milliseconds(ms);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    )
}

/// A text that is not an RFC 3339 time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{given}` is not a point in time; write RFC 3339, like 2026-11-21T23:01:40Z")]
pub struct NotATime {
    given: String,
}

/// Milliseconds since 1970 of an RFC 3339 text with any offset; times before 1970 become 0.
pub fn parse(text: &str) -> Result<u64, NotATime> {
    let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| NotATime {
        given: text.chars().take(40).collect(),
    })?;
    Ok(u64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn offsets_and_decimals_are_understood() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:59:59Z", Some(0)),
            ("2026-11-21T23:01:40.120Z", Some(1_795_302_100_120)),
            ("2026-11-22T00:01:40.12+01:00", Some(1_795_302_100_120)),
            ("2026-11-21", None),
            ("yesterday", None),
        ] {
            assert_eq!(parse(text).ok(), ms, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0_u64..=253_402_300_799_999) {
            prop_assert_eq!(parse(&rfc3339(ms)), Ok(ms));
        }
    }

    #[test]
    fn the_far_future_is_the_last_millisecond_of_9999() {
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
