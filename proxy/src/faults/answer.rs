//! Creates synthetic responses.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body::SizeHint;
use squall_dialects::{WireReply, mcp};
use squall_profiles::plan::{Ending, PlannedAnswer, ToolSays, VerdictIndex};

use super::edit::Speaking;
use super::hold::hold;
use super::{FaultContext, Ledger, VerdictReport, has_body};
use crate::abort::Abort;
use crate::body::scripted::Scripted;
use crate::body::{self, AgentBody};
use crate::mcp::RpcCall;
use crate::problem::Problem;

/// The request data that a synthetic response may mention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestInfo<'a> {
    /// The request's URL as the agent wrote it: absolute in forward mode, the path with all
    /// prefixes in reverse mode.
    pub url: &'a str,
    /// The host, for a synthetic DNS failure.
    pub host: &'a str,
    /// The model call, for kind `llm`.
    pub model: Option<Speaking<'a>>,
    /// The MCP call, for kind `mcp`.
    pub mcp: Option<&'a RpcCall<'a>>,
}

impl<'a> RequestInfo<'a> {
    /// The MCP call; an error for a fault that only exists in MCP.
    fn rpc_call(self) -> Result<&'a RpcCall<'a>, String> {
        self.mcp
            .ok_or_else(|| "the exchange is no MCP call".to_owned())
    }
}

/// The result of creating a synthetic response.
pub(crate) enum SyntheticAnswer {
    /// The agent gets this response.
    Response(Response<AgentBody>),
    /// The agent gets no response: this goes to hyper as the service's error.
    Abort(Abort),
    /// It cannot be applied here, which is reported; the exchange continues without it.
    Bypassed,
}

/// Makes up an answer, waiting first if it is one that holds.
///
/// - A reply gets its `content-length`; to HEAD it gets no body. Any `transfer-encoding` and
///   `connection` it brings is left out: framing is the connection's.
/// - A provider's error is put into the words of the exchange's dialect.
/// - A tool's answer is put into MCP's form for an MCP call.
/// - A failure to resolve is a 502 whose problem body says so.
/// - A hold is closed without an answer (CANCEL on HTTP/2), a refusal is reset at once
///   (`REFUSED_STREAM` on HTTP/2).
/// - A TLS failure needs a handshake, so it is bypassed here.
pub(crate) async fn make(
    answer: &PlannedAnswer,
    verdict: VerdictIndex,
    request: RequestInfo<'_>,
    context: &FaultContext,
) -> SyntheticAnswer {
    let mut report = VerdictReport::new(context, verdict);
    let response = match answer {
        PlannedAnswer::Hold(duration) => {
            report.applied();
            hold(*duration, &context.ledger).await;
            let why = format!("held for {duration:?} and closed by a rule");
            return broken(Abort::new(Ending::Close, h2::Reason::CANCEL, why), context);
        }
        PlannedAnswer::Refuse => {
            report.applied();
            let reason = h2::Reason::REFUSED_STREAM;
            return broken(
                Abort::new(Ending::Reset, reason, "refused by a rule"),
                context,
            );
        }
        PlannedAnswer::EndlessProgress(apart) => request
            .rpc_call()
            .and_then(|call| endless_progress(call, *apart, Rc::clone(&context.ledger))),
        answer => reply(answer, request, context).map(|reply| respond(reply, context)),
    };
    match response {
        Ok(response) => {
            report.applied();
            SyntheticAnswer::Response(response)
        }
        Err(why) => {
            report.bypassed(why);
            SyntheticAnswer::Bypassed
        }
    }
}

/// The content of a complete synthetic response, or why there is none here.
fn reply(
    answer: &PlannedAnswer,
    request: RequestInfo<'_>,
    context: &FaultContext,
) -> Result<WireReply, String> {
    match answer {
        PlannedAnswer::Reply(reply) => Ok(reply.clone()),
        PlannedAnswer::ModelError(error) => {
            let model = request.model;
            let model = model.ok_or("the exchange is in no dialect that can be answered")?;
            let about = model.error_context(Some(error), context);
            match about.rules_out(error, model.dialect) {
                None => Ok(model.dialect.error(error, &about)),
                Some(why) => Err(why.to_owned()),
            }
        }
        PlannedAnswer::Tool(answer) => match request.mcp {
            None if !matches!(answer.says, ToolSays::ProtocolError { .. }) => {
                Ok(answer.plain.clone())
            }
            _ => request.rpc_call()?.answer(answer),
        },
        PlannedAnswer::SessionExpired => request.rpc_call()?.session_expired(),
        PlannedAnswer::RedirectToSelf(status) => {
            let location = HeaderValue::from_str(request.url);
            let location =
                location.map_err(|_| "the request's URL cannot stand in a Location header")?;
            Ok(WireReply {
                status: *status,
                headers: HeaderMap::from_iter([(header::LOCATION, location)]),
                body: Bytes::new(),
            })
        }
        PlannedAnswer::DnsFailure => Ok(dns_failure(request.host)),
        PlannedAnswer::Tls(_) => Err("there is no TLS handshake to fail".to_owned()),
        PlannedAnswer::Hold(_) | PlannedAnswer::Refuse | PlannedAnswer::EndlessProgress(_) => {
            Err("it is no complete response".to_owned())
        }
    }
}

/// Endless progress notifications for a call.
fn endless_progress(
    call: &RpcCall<'_>,
    apart: Duration,
    ledger: Rc<dyn Ledger>,
) -> Result<Response<AgentBody>, String> {
    call.can_be_answered()?;
    if !call.takes_events() {
        return Err("the agent takes no stream of events".to_owned());
    }
    let first = call
        .meant
        .first()
        .ok_or("the request waits for no answer")?;
    let first = first.clone();
    let progress = Scripted::new(SizeHint::new(), |out| async move {
        for number in 1.. {
            let event = mcp::event(&mcp::progress(&first, number), first.agent.is_some());
            out.data(event, false).await;
            hold(apart, &ledger).await;
        }
        Ok(())
    });
    let mut response = Response::new(body::boxed(progress));
    *response.headers_mut() = mcp::stream_headers();
    Ok(response)
}

/// Resets instead of a response (`INTERNAL_ERROR` on HTTP/2), as if the connection broke after the
/// upstream executed the call.
pub(crate) fn reset(verdict: VerdictIndex, context: &FaultContext) -> Abort {
    VerdictReport::new(context, verdict).applied();
    let broken = Abort::reset("reset in place of the upstream's answer by a rule");
    context.agent.prepare(&broken);
    broken
}

/// The response to this request with the content of `reply`.
pub(crate) fn respond(reply: WireReply, context: &FaultContext) -> Response<AgentBody> {
    let WireReply {
        status,
        mut headers,
        body,
    } = reply;
    for name in [
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::CONTENT_LENGTH,
    ] {
        headers.remove(name);
    }
    let may_have_length = !status.is_informational() && status != StatusCode::NO_CONTENT;
    if may_have_length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let body = if has_body(&context.method, status) {
        body
    } else {
        Bytes::new()
    };
    let mut response = Response::new(body::full(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn broken(broken: Abort, context: &FaultContext) -> SyntheticAnswer {
    context.agent.prepare(&broken);
    SyntheticAnswer::Abort(broken)
}

fn dns_failure(host: &str) -> WireReply {
    let detail = format!("DNS: the name `{host}` could not be resolved");
    Problem::new(
        StatusCode::BAD_GATEWAY,
        "dns-failure",
        "DNS failure",
        detail,
    )
    .to_reply()
}

#[cfg(test)]
mod tests;
