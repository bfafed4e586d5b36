//! The format of durations in profiles, in `squall.yaml`, on the command line and in API documents.

use std::time::Duration;

/// Units in nanoseconds. `ms` must come before its prefix `m`.
const UNITS: [(&str, u128); 7] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses numbers with a unit (`us`, `ms`, `s`, `m`, `h`, `d`), which can be combined as in `1m30s`. Each has at
/// most nine decimals, and the maximum is 584 years. `None` for anything else, including numbers without a unit.
pub fn parse(text: &str) -> Option<Duration> {
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
    // A unit is at most 10^14 nanoseconds, so this number of digits cannot overflow.
    let (whole, decimals): (u64, u64) = (whole.parse().ok()?, decimals.parse().ok()?);
    Some(u128::from(whole) * factor + u128::from(decimals) * factor / scale)
}

/// Formats a duration so that [`parse`] accepts it, with microsecond precision: `1h30m`, `250ms`, `0s`.
pub fn format(duration: Duration) -> String {
    let mut rest = duration.as_micros();
    let mut text = String::new();
    for unit in ["d", "h", "m", "s", "ms", "us"] {
        let nanos = UNITS.iter().find(|(name, _)| *name == unit);
        let micros = nanos.map_or(1, |(_, nanos)| nanos / 1000);
        if rest >= micros {
            text.push_str(&(rest / micros).to_string());
            text.push_str(unit);
            rest %= micros;
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_numbers_with_units_are_durations() {
        for (text, micros) in [
            ("500ms", Some(500_000)),
            ("250us", Some(250)),
            ("250µs", Some(250)),
            ("10s", Some(10_000_000)),
            (" 10s ", Some(10_000_000)),
            ("1.5s", Some(1_500_000)),
            ("1m30s", Some(90_000_000)),
            ("1h", Some(3_600_000_000)),
            ("2d", Some(172_800_000_000)),
            ("0s", Some(0)),
            ("10", None),
            ("0", None),
            ("", None),
            ("s", None),
            ("1.s", None),
            (".5s", None),
            ("-1s", None),
            ("1 h", None),
            ("1w", None),
            ("1m30", None),
            ("ten seconds", None),
            ("99999999999999999999d", None),
            ("18446744073709551615d", None),
        ] {
            assert_eq!(parse(text), micros.map(Duration::from_micros), "{text}");
        }
    }

    #[test]
    fn a_duration_is_written_in_its_greatest_units() {
        for (micros, text) in [
            (0, "0s"),
            (250, "250us"),
            (1_500, "1ms500us"),
            (90_000_000, "1m30s"),
            (3_600_000_000, "1h"),
            (129_600_000_000, "1d12h"),
        ] {
            assert_eq!(format(Duration::from_micros(micros)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(micros in 0_u64..1 << 50) {
            let duration = Duration::from_micros(micros);
            prop_assert_eq!(parse(&format(duration)), Some(duration));
        }
    }
}
