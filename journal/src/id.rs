//! Ids of exchanges: unique in a daemon, sorted by start.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The id of an exchange: 24 hex digits that sort by start as text and as value.
///
/// Twelve digits are milliseconds since 1970, eight are a counter within the daemon, and four identify the
/// daemon, because daemons may share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    started_ms: u64,
    counter: u32,
    daemon: u16,
}

/// Greatest milliseconds in twelve hex digits: the year 10889.
const MILLIS: u64 = (1 << 48) - 1;

impl ExchangeId {
    /// The id of exchange number `counter` of a daemon. Milliseconds are truncated to 48 bits.
    pub fn new(started_ms: u64, counter: u32, daemon: u16) -> Self {
        Self {
            started_ms: started_ms & MILLIS,
            counter,
            daemon,
        }
    }

    /// Start of the exchange, milliseconds since 1970.
    pub fn started_ms(self) -> u64 {
        self.started_ms
    }
}

impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:012x}{:08x}{:04x}",
            self.started_ms, self.counter, self.daemon
        )
    }
}

/// A text that is not an exchange id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{given}` is not the id of an exchange; ids are 24 hex digits")]
pub struct NotAnId {
    given: String,
}

impl FromStr for ExchangeId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let error = || NotAnId {
            given: text.chars().take(40).collect(),
        };
        let hex = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| error());
        let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 24 || !text.bytes().all(lower) {
            return Err(error());
        }
        Ok(Self {
            started_ms: hex(&text[..12])?,
            counter: u32::try_from(hex(&text[12..20])?).map_err(|_| error())?,
            daemon: u16::try_from(hex(&text[20..])?).map_err(|_| error())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_24_lower_case_hex_digits_are_an_id() {
        for (text, is_id) in [
            ("019300000000000000010002", true),
            ("019300000000000000010002a", false),
            ("01930000000000000001000", false),
            ("+19300000000000000010002", false),
            ("01930000000000000001000G", false),
            ("01930000000000000001000A", false), // another spelling of one id would be another key
            ("", false),
            ("é19300000000000000010002", false),
        ] {
            assert_eq!(text.parse::<ExchangeId>().is_ok(), is_id, "{text}");
        }
    }

    proptest! {
        #[test]
        fn ids_sort_as_text_as_they_sort_as_values(
            a in (0..=MILLIS, any::<u32>(), any::<u16>()),
            b in (0..=MILLIS, any::<u32>(), any::<u16>()),
        ) {
            let [a, b] = [a, b].map(|(ms, counter, daemon)| ExchangeId::new(ms, counter, daemon));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            prop_assert_eq!(a.to_string().parse(), Ok(a));
        }
    }
}
