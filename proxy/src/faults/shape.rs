//! What the transport does to a body: pace, slices, a late end, an end before its time.
//!
//! ```text
//! body ─▶ Sliced ─▶ Paced ─▶ Cut ─▶ SlowClose ─▶ hyper
//! ```
//!
//! The cut counts behind slices and pace, so it counts what the agent really gets. None of them
//! changes a byte; framing stays what the head says, but for a late end (see [`apply`]).

mod cut;
mod pace;
mod slice;
mod slow_close;

use http::{Response, header};
use http_body::{Body, SizeHint};
use squall_profiles::plan::Shape;

use self::cut::cut;
use self::pace::paced;
use self::slice::sliced;
use self::slow_close::slow_close;
use super::{FaultContext, VerdictReport, declared_length, has_body};
use crate::body::scripted::Scripted;
use crate::body::{self, AgentBody};
use crate::upstream::Outgoing;

/// Shapes an answer on its way to the agent.
///
/// - `down`: the body takes at least its length divided by the rate.
/// - `slices`: cut at places that hang on the exchange's draw alone, not on how the upstream wrote.
/// - `cut`: exactly that many encoded body bytes, then the end that was asked for, at once. The
///   head keeps its framing. A body that is known to be no longer than that is not cut.
/// - `slow_close`: a wait before the end of the message. On HTTP/1.x a body's last byte would be
///   that end if its length were announced, so there `content-length` gives way to chunks.
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
    let (mut head, mut body) = response.into_parts();
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
    if let Some((verdict, slices)) = shape.slices {
        let report = VerdictReport::new(context, verdict);
        let (length, seed) = (body.size_hint(), context.seed);
        let script = |out| sliced(body, slices, seed, report, out);
        body = body::boxed(Scripted::new(length, script));
    }
    if let Some((verdict, throttle)) = shape.down {
        let (length, report) = (body.size_hint(), VerdictReport::new(context, verdict));
        let script = |out| paced(body, throttle, report, out);
        body = body::boxed(Scripted::new(length, script));
    }
    if let Some((verdict, limit)) = shape.cut {
        let mut report = VerdictReport::new(context, verdict);
        let length = declared_length(&head.headers).or_else(|| body.size_hint().exact());
        match length {
            Some(length) if length <= limit.after_bytes => {
                report.bypassed(cut::ended_after(length));
            }
            _ => {
                // Of the body as it would have been: the head keeps announcing that.
                let (length, agent) = (body.size_hint(), context.agent.clone());
                let script = |out| cut(body, limit, agent, report, out);
                body = body::boxed(Scripted::new(length, script));
            }
        }
    }
    if let Some((verdict, wait)) = shape.slow_close {
        // Whoever counts would be through with the last byte, and never wait for the end.
        head.headers.remove(header::CONTENT_LENGTH);
        let report = VerdictReport::new(context, verdict);
        let script = |out| slow_close(body, wait, report, out);
        body = body::boxed(Scripted::new(SizeHint::new(), script));
    }
    Response::from_parts(head, body)
}

/// Shapes a request's body on its way to the upstream: `up`, a bandwidth, and nothing else.
///
/// When one rule throttles both ways, only the answer's way reports it bypassed.
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
        paced(body, throttle, report, out)
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
