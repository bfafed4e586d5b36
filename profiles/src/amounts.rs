//! Amounts in rules: times, counts, shares.

use std::time::Duration;

use http::StatusCode;
use squall_documents::{Fields, duration};

use crate::dice::MILLION;

/// Longest wait, a day; a longer one is probably an error in units.
const LONGEST_MS: f64 = 86_400_000.0;

/// A wait in milliseconds, fractions allowed, 0 to a day.
pub(crate) fn millis(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
) -> Option<Duration> {
    let ms = fields.real(name, about, 0.0..=LONGEST_MS, " milliseconds")?;
    Some(Duration::from_micros(whole(ms * 1000.0)))
}

/// `retry_after`: a wait in seconds, fractions allowed, 0 to a day.
pub(crate) fn retry_after(fields: &mut Fields<'_, '_>) -> Option<Duration> {
    let about = "Seconds that `Retry-After` announces.";
    let seconds = fields.real("retry_after", about, 0.0..=86_400.0, " seconds")?;
    Some(Duration::from_micros(whole(seconds * 1_000_000.0)))
}

/// A whole number of at least `least`.
pub(crate) fn count(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    least: u64,
) -> Option<u64> {
    fields.whole(name, about, least..=MOST, "")
}

/// Largest count: integers up to it are exact in a double.
pub(crate) const MOST: u64 = 1 << 53;

/// A share between 0 and 1, in parts per million.
pub(crate) fn share(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> Option<u32> {
    let share = fields.real(name, about, 0.0..=1.0, "")?;
    let millionths = whole((share * f64::from(MILLION)).round());
    Some(u32::try_from(millionths).expect("at most a million"))
}

/// A number above 0, fractions allowed.
pub(crate) fn positive(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
) -> Option<f64> {
    let number = fields.real(name, about, 0.0..=1e9, "")?;
    if number <= 0.0 {
        fields.misplaced(name, "a number above 0");
        return None;
    }
    Some(number)
}

/// `error_code`: a response status, from `least` to 599.
pub(crate) fn status(fields: &mut Fields<'_, '_>, about: &str, least: u64) -> Option<StatusCode> {
    let code = fields.whole("error_code", about, least..=599, "")?;
    StatusCode::from_u16(u16::try_from(code).ok()?).ok()
}

/// A duration with its unit: `500ms`, `30s`, `5m`, `1h30m`.
pub(crate) fn duration(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
) -> Option<Duration> {
    fields.parsed(name, about, |text| {
        duration::parse(text).ok_or_else(|| {
            format!("`{text}` is no duration; write a number and its unit: 500ms, 30s, 5m or 1h30m")
        })
    })
}

/// A non-negative number that is exact in a double.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers have checked the range"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}
