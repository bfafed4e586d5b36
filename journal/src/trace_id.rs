//! Trace ids of `traceparent` headers (W3C Trace Context, level 1).

use std::fmt;

/// A trace id: 16 bytes, not all of them zero. It prints as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(u128);

impl TraceId {
    /// The id with these bits; `None` for zero, which is not valid.
    pub fn new(bits: u128) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }

    /// The id in the value of a `traceparent` header: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
    /// Later versions are read by the same format, and their additional fields are ignored.
    pub fn of_traceparent(value: &str) -> Option<Self> {
        let mut parts = value.trim().split('-');
        let mut hex = |length: usize| {
            let part = parts.next()?;
            let is_hex = part.len() == length
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
            is_hex.then_some(part)
        };
        let (version, trace, span) = (hex(2)?, hex(32)?, hex(16)?);
        if version == "ff" || span.bytes().all(|byte| byte == b'0') {
            return None;
        }
        hex(2)?;
        Self::new(u128::from_str_radix(trace, 16).ok()?)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_read_from_what_the_standard_allows_and_from_nothing_else() {
        const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        for (value, is_read) in [
            (format!("00-{TRACE}-00f067aa0ba902b7-01"), true),
            (format!("00-{TRACE}-00f067aa0ba902b7-00"), true),
            (format!("cc-{TRACE}-00f067aa0ba902b7-01-what-comes"), true),
            (format!("ff-{TRACE}-00f067aa0ba902b7-01"), false),
            (format!("00-{TRACE}-0000000000000000-01"), false),
            (format!("00-{TRACE}-00f067aa0ba902b7"), false),
            (
                format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
                false,
            ),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), false),
            (format!("00-+{}-00f067aa0ba902b7-01", &TRACE[1..]), false),
            (TRACE.to_owned(), false),
            (String::new(), false),
        ] {
            let read = TraceId::of_traceparent(&value).map(|trace| trace.to_string());
            assert_eq!(read.as_deref(), is_read.then_some(TRACE), "{value}");
        }
    }
}
