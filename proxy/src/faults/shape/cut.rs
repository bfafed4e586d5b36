//! Bodies that end early.

use http_body::Body as _;
use http_body_util::BodyExt as _;
use squall_profiles::plan::{Cut, Ending};

use crate::abort::Abort;
use crate::body::AgentBody;
use crate::body::agent::{AgentSide, FlushReceipt};
use crate::body::scripted::FrameSink;
use crate::faults::VerdictReport;

/// Aborts a body after this many bytes, as soon as the last of them is sent.
///
/// It does not wait for further bytes: a body of unknown length that would end exactly there is cut
/// too, because its end is missing.
pub(super) async fn cut(
    mut body: AgentBody,
    cut: Cut,
    agent: AgentSide,
    mut report: VerdictReport,
    out: FrameSink,
) -> Result<(), Abort> {
    let after = cut.after_bytes;
    let mut left = after;
    let mut gone = FlushReceipt::default();
    while left > 0 {
        let frame = match body.frame().await {
            Some(Ok(frame)) => frame,
            Some(Err(broken)) => {
                report.bypassed(format!(
                    "the upstream broke off after {} bytes",
                    after - left
                ));
                return Err(broken);
            }
            None => {
                report.bypassed(ended_after(after - left));
                return Ok(());
            }
        };
        match frame.into_data() {
            Ok(data) if (data.len() as u64) < left => {
                left -= data.len() as u64;
                let is_last = body.is_end_stream();
                if is_last {
                    report.bypassed(ended_after(after - left));
                }
                out.data(data, is_last).await;
            }
            Ok(mut data) => {
                let last = data.split_to(usize::try_from(left).unwrap_or(data.len()));
                left = 0;
                let (watch, last) = agent.watch(last);
                gone = watch;
                out.data(last, false).await;
            }
            Err(trailers) => {
                report.bypassed(ended_after(after - left));
                out.pass(trailers, &body).await;
                return Ok(());
            }
        }
    }
    let broken = match cut.ending {
        Ending::Close => Abort::close(format!("closed after {after} body bytes by a rule")),
        Ending::Reset => Abort::reset(format!("reset after {after} body bytes by a rule")),
    };
    let broken = agent.break_off(broken.by_rule(), gone).await;
    report.applied();
    Err(broken)
}

/// Why a body was not cut.
pub(super) fn ended_after(bytes: u64) -> String {
    format!("the body ended after {bytes} bytes")
}
