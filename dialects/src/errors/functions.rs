//! Random figures and waits, in the formats of providers.

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Credential;

/// The first place of letters.
const LETTERS: u64 = 16;

/// The random figure at `place`, derived from `draw` (`SplitMix64`).
pub(super) fn irregular(draw: u64, place: u64) -> u64 {
    let mut z = draw.wrapping_add((place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A random UUID (RFC 9562, version 4) from the figures at `place` and `place + 1`.
pub(super) fn uuid(draw: u64, place: u64) -> String {
    let (high, low) = (irregular(draw, place), irregular(draw, place + 1));
    let high = (high & !0xf000) | 0x4000;
    let low = (low & (u64::MAX >> 2)) | (1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// `count` letters of an alphabet.
pub(super) fn letters(draw: u64, alphabet: &str, count: u64) -> Option<String> {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let letter = |place| {
        let index = irregular(draw, LETTERS + place).checked_rem(alphabet.len() as u64)?;
        alphabet.get(usize::try_from(index).ok()?)
    };
    (0..count).map(letter).collect()
}

/// The key as OpenAI masks it: the first eight and the last four letters are visible.
pub(super) fn masked(credential: Credential<'_>) -> String {
    let (Credential::Bearer(key) | Credential::Key(key)) = credential;
    let letters = key.chars().count();
    let shown = |at: usize| letters > 12 && (at < 8 || at >= letters - 4);
    let letters = key.chars().enumerate();
    letters
        .map(|(at, letter)| if shown(at) { letter } else { '*' })
        .collect()
}

pub(super) fn thousands(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        more => format!("{},{:03}", thousands(more), number % 1000),
    }
}

/// The wait until `limit` per minute is available again, when `left` remains.
pub(super) fn refill(limit: u64, left: u64) -> Duration {
    let millis = limit.saturating_sub(left).saturating_mul(60_000);
    Duration::from_millis(millis / limit.max(1))
}

/// A wait in whole seconds, rounded up.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

/// A wait in whole milliseconds, rounded up.
pub(super) fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A fraction of a second as digits after a decimal point, without trailing zeros.
fn with_fraction(whole: u64, rest: u32, digits: usize) -> String {
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// Go's format: `12ms`, `1.5s`, `6m0s`, `19h4m45s`.
pub(super) fn go_duration(wait: Duration) -> String {
    let (seconds, nanos) = (wait.as_secs(), wait.subsec_nanos());
    let last = with_fraction(seconds % 60, nanos, 9);
    match (seconds / 3600, seconds / 60 % 60) {
        _ if seconds == 0 && nanos > 0 => {
            let millis = with_fraction(u64::from(nanos / 1_000_000), nanos % 1_000_000, 6);
            format!("{millis}ms")
        }
        (0, 0) => format!("{last}s"),
        (0, minutes) => format!("{minutes}m{last}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{last}s"),
    }
}

/// Protocol buffers' format with zero, three, six or nine decimals: `2s`, `1.426s`, `0.500s`.
pub(super) fn protobuf_duration(wait: Duration) -> String {
    let (seconds, nanos) = (wait.as_secs(), wait.subsec_nanos());
    match nanos {
        0 => format!("{seconds}s"),
        _ if nanos % 1_000_000 == 0 => format!("{seconds}.{:03}s", nanos / 1_000_000),
        _ if nanos % 1000 == 0 => format!("{seconds}.{:06}s", nanos / 1000),
        _ => format!("{seconds}.{nanos:09}s"),
    }
}

/// A time since 1970 in RFC 3339 format, in whole seconds: `2026-11-22T04:00:00Z`.
pub(super) fn date(since_1970: Duration) -> Option<String> {
    let seconds = i64::try_from(since_1970.as_secs()).ok()?;
    let date = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    date.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_announced_shorter_than_it_is() {
        for (nanos, seconds, millis) in [
            (0, 0, 0),
            (1, 1, 1),
            (500_000_000, 1, 500),
            (1_425_600_000, 2, 1426),
            (2_000_000_000, 2, 2000),
        ] {
            let wait = Duration::from_nanos(nanos);
            assert_eq!((whole_seconds(wait), whole_millis(wait)), (seconds, millis));
        }
    }
}
