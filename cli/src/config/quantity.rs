//! Amounts as people write them: `8MiB`, `10s`, `1m30s`, `none`.

use std::time::Duration;

const SIZE_UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Reads a size: bytes, or a whole or decimal number with a unit from `B` to `TiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let not_a_size =
        || format!("`{text}` is not a size; write bytes (`65536`) or `8MiB`, `256KiB`, `1GB`");
    let text = text.trim();
    if let Ok(bytes) = text.parse() {
        return Ok(bytes);
    }
    let (number, factor) = SIZE_UNITS
        .iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, *factor)))
        .ok_or_else(not_a_size)?;
    decimal(number.trim_end(), factor).ok_or_else(not_a_size)
}

const TIME_UNITS: [(&str, u64); 7] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Reads a duration: numbers with a unit (`us`, `ms`, `s`, `m`, `h`, `d`), put together as in
/// `1m30s`; a bare `0` is no time at all.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let not_a_duration = || {
        let hint = match text.trim().parse::<f64>() {
            Ok(_) => format!("give it a unit: `{}s` or `{}ms`", text.trim(), text.trim()),
            Err(_) => "write `500ms`, `10s`, `10m`, `1h` or `1m30s`".to_owned(),
        };
        format!("`{text}` is not a duration; {hint}")
    };
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(not_a_duration());
    }
    let mut nanoseconds = 0_u64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(not_a_duration)?;
        let (number, after) = rest.split_at(digits);
        // The longest unit first: `ms` also begins with `m`.
        let (unit, factor) = TIME_UNITS
            .iter()
            .find(|(unit, _)| after.starts_with(unit))
            .ok_or_else(not_a_duration)?;
        let part = decimal(number, *factor).ok_or_else(not_a_duration)?;
        nanoseconds = nanoseconds.checked_add(part).ok_or_else(not_a_duration)?;
        rest = &after[unit.len()..];
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// `number` × `factor`, exactly; `None` unless it is a plain decimal number that fits.
fn decimal(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    if !whole
        .bytes()
        .chain(fraction.bytes())
        .all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let mut part = 0;
    if !fraction.is_empty() {
        let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        let share = fraction.parse::<u128>().ok()? * u128::from(factor) / scale;
        part = u64::try_from(share).ok()?;
    }
    whole.checked_mul(factor)?.checked_add(part)
}

/// Reads `true` or `false`, and nothing that merely looks like them.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("`{other}` is neither `true` nor `false`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_carry_a_unit() {
        for (written, bytes) in [
            ("0", Some(0)),
            ("65536", Some(65_536)),
            ("8MiB", Some(8 << 20)),
            ("256 KiB", Some(256 << 10)),
            ("1.5GiB", Some(3 << 29)),
            ("1MB", Some(1_000_000)),
            ("10B", Some(10)),
            ("8M", None),
            ("MiB", None),
            ("-1MiB", None),
            ("1.MiB", None),
            ("99999999999TiB", None),
        ] {
            assert_eq!(size(written).ok(), bytes, "{written}");
        }
    }

    #[test]
    fn durations_carry_a_unit() {
        for (written, expected) in [
            ("0", Some(Duration::ZERO)),
            ("500ms", Some(Duration::from_millis(500))),
            ("10s", Some(Duration::from_secs(10))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("10m", Some(Duration::from_mins(10))),
            ("1m30s", Some(Duration::from_secs(90))),
            ("7d", Some(Duration::from_hours(168))),
            ("250us", Some(Duration::from_micros(250))),
            ("10", None),
            ("s", None),
            ("ten seconds", None),
            ("-1s", None),
            ("1m30", None),
            ("", None),
        ] {
            assert_eq!(duration(written).ok(), expected, "{written}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_told_which_units_there_are() {
        assert_eq!(
            duration("10").expect_err("no unit"),
            "`10` is not a duration; give it a unit: `10s` or `10ms`"
        );
    }
}
