//! What was seen: exchange records, redaction, the ring. No I/O.

pub mod record;
