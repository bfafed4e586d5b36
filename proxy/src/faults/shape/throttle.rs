//! Limits the bandwidth of bodies.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use squall_profiles::changes::Throttle;
use tokio::time::Instant;

use crate::body::scripted::FrameSink;
use crate::faults::VerdictReport;
use crate::faults::hold::hold_until;

/// A piece takes a fiftieth of a second, within these bounds. That resembles a slow connection
/// without a wake-up per byte.
const PIECES_PER_SECOND: u64 = 50;
const LARGEST_PIECE: u64 = 64 << 10;

/// Delays of the timer up to this are compensated, so that they do not add up.
const MADE_UP: Duration = Duration::from_millis(5);

/// Sends a body at a bandwidth: every piece waits as long as its transfer would take.
pub(super) async fn throttled<B>(
    mut body: B,
    throttle: Throttle,
    mut report: VerdictReport,
    out: FrameSink,
) -> Result<(), B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let largest = (throttle.bytes_per_second / PIECES_PER_SECOND).clamp(1, LARGEST_PIECE);
    let largest = usize::try_from(largest).unwrap_or(1);
    // When the bytes sent so far were due.
    let mut due: Option<Instant> = None;
    while let Some(frame) = body.frame().await {
        let mut data = match frame?.into_data() {
            Ok(data) => data,
            Err(trailers) => {
                out.pass(trailers, &body).await;
                continue;
            }
        };
        while !data.is_empty() {
            report.applied();
            let piece = data.split_to(data.len().min(largest));
            let now = Instant::now();
            let from = due.filter(|due| *due + MADE_UP > now).unwrap_or(now);
            let next = from + takes(throttle, piece.len());
            due = Some(next);
            hold_until(next, report.ledger()).await;
            out.data(piece, data.is_empty() && body.is_end_stream())
                .await;
        }
    }
    report.bypassed("the body is empty");
    Ok(())
}

fn takes(throttle: Throttle, bytes: usize) -> Duration {
    let rate = u128::from(throttle.bytes_per_second.max(1));
    let nanos = (bytes as u128 * 1_000_000_000).div_ceil(rate);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
