//! Bodies in small pieces.

use http_body::Body as _;
use http_body_util::BodyExt as _;
use squall_profiles::changes::Slices;
use tokio::task::yield_now;

use crate::abort::Abort;
use crate::body::AgentBody;
use crate::body::scripted::FrameSink;
use crate::faults::VerdictReport;
use crate::faults::hold::hold;

/// Sends a body in pieces with pauses between them.
///
/// It does not wait for a full piece: available bytes are sent, and the rest of the piece follows
/// without a pause.
pub(super) async fn sliced(
    mut body: AgentBody,
    slices: Slices,
    seed: u64,
    mut report: VerdictReport,
    out: FrameSink,
) -> Result<(), Abort> {
    let smallest = slices.average_size.saturating_sub(slices.size_variation);
    let spread = slices.size_variation.saturating_mul(2).saturating_add(1);
    let mut draws = Draws(seed);
    // Missing bytes of the current piece; zero: the next byte starts a piece.
    let mut missing = 0;
    let mut sent: u64 = 0;
    while let Some(frame) = body.frame().await {
        let mut data = match frame?.into_data() {
            Ok(data) => data,
            Err(trailers) => {
                report.bypassed(fits_one(sent));
                out.pass(trailers, &body).await;
                continue;
            }
        };
        while !data.is_empty() {
            if missing == 0 {
                missing = smallest.saturating_add(draws.next() % spread).max(1);
                if sent > 0 {
                    report.applied();
                    hold(slices.delay, report.ledger()).await;
                    // When no data is ready, hyper writes what it has, so the piece is sent
                    // separately.
                    yield_now().await;
                }
            }
            let length = missing.min(data.len() as u64);
            missing -= length;
            sent += length;
            let piece = data.split_to(usize::try_from(length).unwrap_or(data.len()));
            let is_last = data.is_empty() && body.is_end_stream();
            if is_last {
                report.bypassed(fits_one(sent));
            }
            out.data(piece, is_last).await;
        }
    }
    report.bypassed(fits_one(sent));
    Ok(())
}

fn fits_one(bytes: u64) -> String {
    format!("the body of {bytes} bytes fits one slice")
}

/// Draws from a seed: `SplitMix64` (Steele, Lea, Flood 2014).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
