//! Quantities in text form: `8MiB`, `10s`, `1m30s`, `none`.

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

/// Reads a duration: numbers with units (`us`, `ms`, `s`, `m`, `h`, `d`), combined as in `1m30s`, or a bare `0`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    squall_documents::duration::parse(text).ok_or_else(|| {
        let hint = match text.parse::<f64>() {
            Ok(_) => format!("give it a unit: `{text}s` or `{text}ms`"),
            Err(_) => "write `500ms`, `10s`, `10m`, `1h` or `1m30s`".to_owned(),
        };
        format!("`{text}` is not a duration; {hint}")
    })
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
    fn no_time_needs_no_unit() {
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
    }

    #[test]
    fn a_number_without_a_unit_is_told_which_units_there_are() {
        assert_eq!(
            duration("10").expect_err("no unit"),
            "`10` is not a duration; give it a unit: `10s` or `10ms`"
        );
    }
}
