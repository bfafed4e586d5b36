//! Bodies that end before their time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use squall_profiles::plan::{Cut, Ending};

use crate::broken::Broken;
use crate::carry_out::Report;
use crate::carry_out::body::AgentBody;
use crate::carry_out::flush::{AgentSide, Break};

/// A body that breaks off after so many bytes, as soon as the last of them has left.
///
/// It does not wait to see whether more would have come: a body of unknown length that would have
/// ended just there is cut too, for its end is missing.
pub(super) struct Cutting {
    body: AgentBody,
    cut: Cut,
    passed: u64,
    agent: AgentSide,
    breaking: Option<Break>,
    report: Report,
}

impl Cutting {
    pub(super) fn new(body: AgentBody, cut: Cut, agent: AgentSide, report: Report) -> Self {
        let mut cutting = Self {
            body,
            cut,
            passed: 0,
            agent,
            breaking: None,
            report,
        };
        if cut.after_bytes == 0 {
            cutting.breaking = Some(Break::new(cutting.agent.clone(), cutting.broken()));
        }
        cutting
    }

    fn broken(&self) -> Broken {
        let after = self.cut.after_bytes;
        match self.cut.ending {
            Ending::Close => {
                Broken::close(format!("closed after {after} body bytes by a rule")).by_rule()
            }
            Ending::Reset => {
                Broken::reset(format!("reset after {after} body bytes by a rule")).by_rule()
            }
        }
    }

    /// What may pass of `data`.
    fn pass(&mut self, mut data: Bytes) -> Bytes {
        let left = self.cut.after_bytes - self.passed;
        if (data.len() as u64) < left {
            self.passed += data.len() as u64;
            self.note_end();
            return data;
        }
        self.passed = self.cut.after_bytes;
        let last = data.split_to(usize::try_from(left).unwrap_or(data.len()));
        let (breaking, last) = Break::after(self.agent.clone(), self.broken(), last);
        self.breaking = Some(breaking);
        last
    }

    fn note_end(&mut self) {
        if self.body.is_end_stream() {
            self.report.bypassed(ended_after(self.passed));
        }
    }
}

/// Why a body was not cut.
pub(super) fn ended_after(bytes: u64) -> String {
    format!("the body ended after {bytes} bytes")
}

impl Body for Cutting {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        if let Some(breaking) = &mut this.breaking {
            let broken = ready!(breaking.poll(cx));
            this.report.applied();
            return Poll::Ready(broken.map(Err));
        }
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => Some(Ok(Frame::data(this.pass(data)))),
                Err(trailers) => {
                    this.report.bypassed(ended_after(this.passed));
                    Some(Ok(trailers))
                }
            },
            None => {
                this.report.bypassed(ended_after(this.passed));
                None
            }
            Some(Err(broken)) => {
                let passed = this.passed;
                this.report
                    .bypassed(format!("the upstream broke off after {passed} bytes"));
                Some(Err(broken))
            }
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.breaking.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // Of the body as it would have been: the head keeps announcing that.
        self.body.size_hint()
    }
}
