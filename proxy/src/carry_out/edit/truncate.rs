//! Bodies cut short with valid framing.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use squall_profiles::plan::Amount;

use super::correct_length;
use crate::broken::Broken;
use crate::carry_out::body::AgentBody;
use crate::carry_out::flush::Breaking;
use crate::carry_out::whole::Collected;
use crate::carry_out::{self as carry, Report, declared_length};

pub(super) async fn apply(
    amount: Amount,
    response: Response<AgentBody>,
    mut report: Report,
    context: &carry::Context,
) -> Response<AgentBody> {
    let (mut head, mut body) = response.into_parts();
    let mut length = declared_length(&head.headers).or_else(|| body.size_hint().exact());
    if let (Amount::Share(_), None) = (amount, length) {
        match context.collect(body).await {
            Collected::Whole(whole) => {
                length = Some(whole.bytes().len() as u64);
                body = AgentBody::boxed(whole.unchanged());
            }
            Collected::Partly(rejoined, why) => {
                report.bypassed(why.to_string());
                let body = AgentBody::boxed(Breaking::new(rejoined, context.agent.clone()));
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
        // Nobody asks for a body that the head says is empty.
        report.applied();
        return Response::from_parts(head, AgentBody::empty());
    }
    let truncated = Truncated {
        body: Some(body),
        kept,
        passed: 0,
        known,
        report,
    };
    Response::from_parts(head, AgentBody::boxed(truncated))
}

/// That many millionths of a length, rounded down.
fn share(length: u64, millionths: u32) -> u64 {
    let share = u128::from(length) * u128::from(millionths) / 1_000_000;
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn not_longer(length: u64) -> String {
    format!("the body ended after {length} bytes")
}

/// The beginning of a body, ended as if it were all of it.
struct Truncated {
    /// Gone once enough of it has passed; what is left upstream is not read.
    body: Option<AgentBody>,
    kept: u64,
    passed: u64,
    /// The body is known to be longer than what is kept.
    known: bool,
    report: Report,
}

impl Truncated {
    fn pass(&mut self, mut data: Bytes) -> Option<Bytes> {
        let left = self.kept - self.passed;
        let length = data.len() as u64;
        if length > left {
            self.report.applied();
            self.body = None;
            data.truncate(usize::try_from(left).unwrap_or(data.len()));
        }
        self.passed += length.min(left);
        if self.known && self.passed == self.kept {
            self.report.applied();
            self.body = None;
        }
        (!data.is_empty()).then_some(data)
    }
}

impl Body for Truncated {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        // Where the length is unknown, one byte more must be seen to know that some are missing.
        while let Some(body) = &mut this.body {
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        if let Some(data) = this.pass(data) {
                            return Poll::Ready(Some(Ok(Frame::data(data))));
                        }
                    }
                    Err(trailers) => {
                        this.report.bypassed(not_longer(this.passed));
                        return Poll::Ready(Some(Ok(trailers)));
                    }
                },
                None => {
                    this.report.bypassed(not_longer(this.passed));
                    this.body = None;
                }
                Some(Err(broken)) => {
                    this.report
                        .bypassed(format!("the upstream broke off: {broken}"));
                    return Poll::Ready(Some(Err(broken)));
                }
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.known {
            return SizeHint::with_exact(self.kept - self.passed);
        }
        SizeHint::new()
    }
}
