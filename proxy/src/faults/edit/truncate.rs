//! Truncates bodies; the framing stays valid.

use http::Response;
use http_body::{Body as _, SizeHint};
use http_body_util::BodyExt as _;
use squall_profiles::changes::Amount;

use super::correct_length;
use crate::abort::Abort;
use crate::body::scripted::{FrameSink, Scripted};
use crate::body::{self, AgentBody};
use crate::faults::{FaultContext, VerdictReport};
use crate::headers::declared_length;

pub(super) async fn apply(
    amount: Amount,
    response: Response<AgentBody>,
    mut report: VerdictReport,
    context: &FaultContext,
) -> Response<AgentBody> {
    let (mut head, mut body) = response.into_parts();
    let mut length = declared_length(&head.headers).or_else(|| body.size_hint().exact());
    if let (Amount::Share(_), None) = (amount, length) {
        match context.collect(body).await {
            Ok(whole) => {
                length = Some(whole.bytes().len() as u64);
                body = whole.unchanged();
            }
            Err((body, why)) => {
                report.bypassed(why.to_string());
                return Response::from_parts(head, body);
            }
        }
    }
    let kept = match (amount, length) {
        (Amount::Bytes(bytes), _) => bytes,
        (Amount::Share(millionths), length) => share(length.unwrap_or_default(), millionths),
    };
    if length.is_some_and(|length| length <= kept) {
        report.bypassed(not_longer(length.unwrap_or_default()));
        return Response::from_parts(head, body);
    }
    correct_length(&mut head.headers, kept);
    let known = length.is_some();
    if known && kept == 0 {
        // hyper does not poll a body that is empty according to the head.
        report.applied();
        return Response::from_parts(head, body::empty());
    }
    let length = if known {
        SizeHint::with_exact(kept)
    } else {
        SizeHint::new()
    };
    let script = |out| truncated(body, kept, known, report, out);
    Response::from_parts(head, body::boxed(Scripted::new(length, script)))
}

/// A share of a length in parts per million, rounded down.
fn share(length: u64, millionths: u32) -> u64 {
    let share = u128::from(length) * u128::from(millionths) / 1_000_000;
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn not_longer(length: u64) -> String {
    format!("the body ended after {length} bytes")
}

/// Sends the start of a body with a regular end. `known`: the body is longer than that.
async fn truncated(
    mut body: AgentBody,
    kept: u64,
    known: bool,
    mut report: VerdictReport,
    out: FrameSink,
) -> Result<(), Abort> {
    let mut left = kept;
    // Without a known length, one further byte must arrive to show that some are missing.
    while let Some(frame) = body.frame().await {
        let frame = frame.inspect_err(|broken| {
            report.bypassed(format!("the upstream broke off: {broken}"));
        })?;
        let mut data = match frame.into_data() {
            Ok(data) => data,
            Err(trailers) => {
                report.bypassed(not_longer(kept - left));
                out.pass(trailers, &body).await;
                continue;
            }
        };
        let is_longer = data.len() as u64 > left;
        data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= data.len() as u64;
        if is_longer || (known && left == 0) {
            report.applied();
            // The rest is not read from the upstream.
            drop(body);
            if !data.is_empty() {
                out.data(data, true).await;
            }
            return Ok(());
        }
        if !data.is_empty() {
            out.data(data, false).await;
        }
    }
    report.bypassed(not_longer(kept - left));
    Ok(())
}
