//! Messages with a delayed end.

use std::time::Duration;

use http_body_util::BodyExt as _;

use crate::abort::Abort;
use crate::body::AgentBody;
use crate::body::scripted::FrameSink;
use crate::faults::VerdictReport;
use crate::faults::hold::hold;

/// Delays the end of a body, including its trailers. hyper gets no length, or it would end the
/// message with the last byte.
pub(super) async fn slow_close(
    mut body: AgentBody,
    wait: Duration,
    mut report: VerdictReport,
    out: FrameSink,
) -> Result<(), Abort> {
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => match frame.into_data() {
                Ok(data) => out.data(data, false).await,
                Err(frame) => {
                    trailers = frame.into_trailers().ok();
                    break;
                }
            },
            Err(broken) => {
                report.bypassed("the body broke off before its end");
                return Err(broken);
            }
        }
    }
    report.applied();
    hold(wait, report.ledger()).await;
    if let Some(trailers) = trailers {
        out.trailers(trailers).await;
    }
    Ok(())
}
