//! Shapes the transfer of a body: bandwidth, slices, delayed end, early end.
//!
//! ```text
//! body ─▶ Sliced ─▶ Paced ─▶ Cut ─▶ SlowClose ─▶ hyper
//! ```
//!
//! The cut comes after slices and bandwidth, so it counts what the agent gets. None of them changes
//! a byte. The framing stays as in the head, except for a delayed end (see [`apply`]).

mod cut;
mod slice;
mod slow_close;
mod throttle;

use http::{Response, header};
use http_body::{Body, SizeHint};
use squall_profiles::plan::Shape;

use self::cut::cut;
use self::slice::sliced;
use self::slow_close::slow_close;
use self::throttle::throttled;
use super::{FaultContext, VerdictReport, has_body};
use crate::body::scripted::Scripted;
use crate::body::{self, AgentBody};
use crate::headers::declared_length;
use crate::upstream::Outgoing;

/// Shapes a response on its way to the agent.
///
/// - `down`: the body takes at least its length divided by the rate.
/// - `slices`: the pieces depend on the exchange's draw alone, not on the upstream's writes.
/// - `cut`: exactly this many encoded body bytes, then the ending at once. The head keeps its
///   framing. A body known to be no longer than that is not cut.
/// - `slow_close`: a delay before the end of the message. On HTTP/1.x chunks replace
///   `content-length`, because a body with a length ends with its last byte.
pub(crate) fn apply(
    shape: &Shape,
    response: Response<AgentBody>,
    context: &FaultContext,
) -> Response<AgentBody> {
    if shape.down.is_none()
        && shape.slices.is_none()
        && shape.cut.is_none()
        && shape.slow_close.is_none()
    {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let has_body = has_body(&context.method, head.status);
    if !has_body || body.is_end_stream() {
        let why = if has_body {
            "the body is empty"
        } else {
            "the answer has no body"
        };
        bypass_all(shape, context, why);
        return Response::from_parts(head, body);
    }
    let length = declared_length(&head.headers).or_else(|| body.size_hint().exact());
    if shape.slow_close.is_some() {
        // A client with `content-length` would finish at the last byte and not wait for the end.
        head.headers.remove(header::CONTENT_LENGTH);
    }
    Response::from_parts(head, shaped(shape, body, length, context))
}

/// Shapes bytes on their way to the agent, of this length if it is known.
pub(crate) fn shaped(
    shape: &Shape,
    mut body: AgentBody,
    length: Option<u64>,
    context: &FaultContext,
) -> AgentBody {
    if let Some((verdict, slices)) = shape.slices {
        let report = VerdictReport::new(context, verdict);
        let (length, seed) = (body.size_hint(), context.seed);
        let script = |out| sliced(body, slices, seed, report, out);
        body = body::boxed(Scripted::new(length, script));
    }
    if let Some((verdict, throttle)) = shape.down {
        let (length, report) = (body.size_hint(), VerdictReport::new(context, verdict));
        let script = |out| throttled(body, throttle, report, out);
        body = body::boxed(Scripted::new(length, script));
    }
    if let Some((verdict, limit)) = shape.cut {
        let mut report = VerdictReport::new(context, verdict);
        match length {
            Some(length) if length <= limit.after_bytes => {
                report.bypassed(cut::ended_after(length));
            }
            _ => {
                // The uncut body's length, which the head still announces.
                let (length, agent) = (body.size_hint(), context.agent.clone());
                let script = |out| cut(body, limit, agent, report, out);
                body = body::boxed(Scripted::new(length, script));
            }
        }
    }
    if let Some((verdict, wait)) = shape.slow_close {
        let report = VerdictReport::new(context, verdict);
        let script = |out| slow_close(body, wait, report, out);
        body = body::boxed(Scripted::new(SizeHint::new(), script));
    }
    body
}

/// Limits the bandwidth of a request's body (`up`) on its way to the upstream.
///
/// If one rule throttles both directions, only the response's direction reports a bypass.
pub(crate) fn upload(shape: &Shape, body: Outgoing, context: &FaultContext) -> Outgoing {
    let Some((verdict, throttle)) = shape.up else {
        return body;
    };
    let mut report = VerdictReport::new(context, verdict);
    let both_ways = shape.down.is_some_and(|(down, _)| down == verdict);
    if both_ways {
        report = report.without_bypass();
    }
    if body.is_end_stream() {
        report.bypassed("the request has no body");
        return body;
    }
    let length = body.size_hint();
    Box::pin(Scripted::new(length, |out| {
        throttled(body, throttle, report, out)
    }))
}

fn bypass_all(shape: &Shape, context: &FaultContext, why: &str) {
    let verdicts = [
        shape.slices.map(|(verdict, _)| verdict),
        shape.down.map(|(verdict, _)| verdict),
        shape.cut.map(|(verdict, _)| verdict),
        shape.slow_close.map(|(verdict, _)| verdict),
    ];
    for verdict in verdicts.into_iter().flatten() {
        VerdictReport::new(context, verdict).bypassed(why);
    }
}

#[cfg(test)]
mod tests;
