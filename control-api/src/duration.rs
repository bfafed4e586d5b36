//! Durations as people write them: `500ms`, `1h30m`.

use std::time::Duration;

/// Units with their nanoseconds; `ms` stands before `m`, which it begins with.
const UNITS: [(&str, u128); 5] = [
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Reads numbers with a unit (`ms`, `s`, `m`, `h`, `d`), put together as in `1m30s`, with at most
/// nine decimals; `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut nanos = 0_u128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let (unit, factor) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        nanos = nanos.checked_add(part(number, *factor)?)?;
        rest = &after[unit.len()..];
    }
    Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
}

/// `number` × `factor`, exact to the nanosecond.
fn part(number: &str, factor: u128) -> Option<u128> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if decimals.is_empty() || decimals.len() > 9 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(decimals.len()).ok()?);
    // Units are at most 10^14 nanoseconds: this many digits cannot overflow.
    let (whole, decimals): (u64, u64) = (whole.parse().ok()?, decimals.parse().ok()?);
    Some(u128::from(whole) * factor + u128::from(decimals) * factor / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_with_units_are_durations() {
        for (text, millis) in [
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("1.5s", Some(1500)),
            ("1m30s", Some(90_000)),
            ("1h", Some(3_600_000)),
            ("2d", Some(172_800_000)),
            ("0s", Some(0)),
            ("10", None),
            ("", None),
            ("s", None),
            ("1.s", None),
            (".5s", None),
            ("-1s", None),
            ("1 h", None),
            ("1w", None),
            ("99999999999999999999d", None),
            ("18446744073709551615d", None),
        ] {
            assert_eq!(parse(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
