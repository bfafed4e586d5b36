//! Network faults, for any exchange.

mod bandwidth;
mod half_open;
mod limit_data;
mod reset_peer;
mod slicer;
mod tls_failure;
mod websocket_close;

use std::time::Duration;

use serde_json::json;
use squall_documents::Fields;

use super::delay;
use super::fixed::answer;
use super::remedies::{CONNECTION, DELAY, TIME_OUT, TLS};
use crate::changes::Tools;
use crate::family::Family;
use crate::fault::{Fault, FaultMode};
use crate::plan::PlannedAnswer;

/// The table of modes, in the order of reference, help and schema.
pub(super) const MODES: &[FaultMode] = &[
    mode("latency", DELAY, |fields, _| {
        delay::wait(fields, Duration::ZERO)
    })
    .delaying()
    .needing(&["delay_ms", "jitter_ms"]),
    mode("bandwidth", DELAY, bandwidth::read)
        .delaying()
        .needing(&["rate_kbps"]),
    mode("slicer", DELAY, slicer::read)
        .delaying()
        .needing(&["average_size"]),
    mode("slow_close", DELAY, |fields, _| delay::close_slowly(fields)).delaying(),
    mode("timeout", TIME_OUT, |fields, _| delay::hold(fields)),
    mode("reset_peer", CONNECTION, reset_peer::read),
    mode("limit_data", CONNECTION, limit_data::read).needing(&["bytes"]),
    mode("refuse", CONNECTION, |_, _| {
        answer(json!({}), PlannedAnswer::Refuse)
    })
    .of_the_connection(),
    mode("dns_failure", CONNECTION, |_, _| {
        answer(json!({}), PlannedAnswer::DnsFailure)
    })
    .of_the_connection(),
    mode("tls_failure", TLS, tls_failure::read).of_the_connection(),
    mode("half_open", TIME_OUT, half_open::read).needing(&["websocket"]),
    mode("websocket_close", CONNECTION, websocket_close::read).needing(&["websocket"]),
];

const fn mode(
    name: &'static str,
    remedy: &'static str,
    read: fn(&mut Fields<'_, '_>, &Tools) -> Fault,
) -> FaultMode {
    FaultMode::new(Family::Network, name, remedy, read)
}
