//! Quantities in text form: `8MiB`, `10s`, `1m30s`, `none`.

use std::time::Duration;

const SIZE_UNITS: [(&str, u64); 11] = [
    ("", 1),
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

/// Reads a size: bytes, or a whole number with a unit from `B` to `TiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let factor = SIZE_UNITS.iter().find(|(name, _)| *name == unit);
    let bytes = factor.and_then(|(_, factor)| {
        let number: u64 = number.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    });
    bytes.ok_or_else(|| {
        format!("`{text}` is not a size; write bytes (`65536`) or `8MiB`, `256KiB`, `1GB`")
    })
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
            ("1.5GiB", None),
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
    fn the_error_of_a_number_without_a_unit_names_units() {
        assert_eq!(
            duration("10").expect_err("no unit"),
            "`10` is not a duration; give it a unit: `10s` or `10ms`"
        );
    }
}
