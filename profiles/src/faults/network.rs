//! Faults of the transport, for any exchange: a file each.

mod bandwidth;
mod dns_failure;
mod latency;
mod limit_data;
mod refuse;
mod reset_peer;
mod slicer;
mod slow_close;
pub(super) mod timeout;
mod tls_failure;

use super::mode::family;

family! {
    /// One way a connection can go wrong.
    NetworkFault of Network:
    latency::Latency,
    bandwidth::Bandwidth,
    slicer::Slicer,
    slow_close::SlowClose,
    timeout::Timeout,
    reset_peer::ResetPeer,
    limit_data::LimitData,
    refuse::Refuse,
    dns_failure::DnsFailure,
    tls_failure::TlsFailure,
}
