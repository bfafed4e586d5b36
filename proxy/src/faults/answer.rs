//! Creates synthetic responses.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body::SizeHint;
use squall_dialects::mcp;
use squall_dialects::model::ModelError;
use squall_profiles::plan::{Ending, PlannedAnswer, Reply, ToolSays, VerdictIndex};

use super::edit::Speaking;
use super::hold::hold;
use super::{FaultContext, Ledger, VerdictReport, has_body};
use crate::abort::Abort;
use crate::body::scripted::Scripted;
use crate::body::{self, AgentBody};
use crate::mcp::McpCall;
use crate::problem::Problem;

/// Why a fault that only exists in MCP has no effect elsewhere.
const NO_MCP_CALL: &str = "the exchange is no MCP call";

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
    pub mcp: Option<&'a McpCall<'a>>,
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
    let reply = match answer {
        PlannedAnswer::Reply(reply) => reply.clone(),
        PlannedAnswer::ModelError(error) => match request.model {
            Some(model) => model_error(error, model, context),
            None => return bypassed(report, "the exchange is in no dialect that can be answered"),
        },
        PlannedAnswer::Tool(answer) => match request.mcp.map(|call| call.answer(answer)) {
            Some(Ok(reply)) => reply,
            None if !matches!(answer.says, ToolSays::ProtocolError { .. }) => answer.plain.clone(),
            None => return bypassed(report, NO_MCP_CALL),
            Some(Err(why)) => return bypassed(report, why),
        },
        PlannedAnswer::SessionExpired => match request.mcp.map(McpCall::session_expired) {
            Some(Ok(reply)) => reply,
            Some(Err(why)) => return bypassed(report, why),
            None => return bypassed(report, NO_MCP_CALL),
        },
        PlannedAnswer::EndlessProgress(apart) => {
            let progress = |call| endless_progress(call, *apart, Rc::clone(&context.ledger));
            return match request.mcp.map(progress) {
                Some(Ok(response)) => {
                    report.applied();
                    SyntheticAnswer::Response(response)
                }
                Some(Err(why)) => bypassed(report, why),
                None => bypassed(report, NO_MCP_CALL),
            };
        }
        PlannedAnswer::RedirectToSelf(status) => {
            let Ok(location) = HeaderValue::from_str(request.url) else {
                return bypassed(
                    report,
                    "the request's URL cannot stand in a Location header",
                );
            };
            redirect(*status, location)
        }
        PlannedAnswer::DnsFailure => dns_failure(request.host),
        PlannedAnswer::Hold(duration) => {
            report.applied();
            hold(*duration, &context.ledger).await;
            let why = format!("held for {duration:?} and closed by a rule");
            return broken(Abort::new(Ending::Close, h2::Reason::CANCEL, why), context);
        }
        PlannedAnswer::Refuse => {
            report.applied();
            let why = "refused by a rule";
            return broken(
                Abort::new(Ending::Reset, h2::Reason::REFUSED_STREAM, why),
                context,
            );
        }
        PlannedAnswer::Tls(_) => return bypassed(report, "there is no TLS handshake to fail"),
    };
    report.applied();
    SyntheticAnswer::Response(respond(reply, context))
}

/// Endless progress notifications for a call.
fn endless_progress(
    call: &McpCall<'_>,
    apart: Duration,
    ledger: Rc<dyn Ledger>,
) -> Result<Response<AgentBody>, String> {
    call.can_be_answered()?;
    if !call.head.accepts.stream {
        return Err("the agent takes no stream of events".to_owned());
    }
    let first = call
        .meant
        .first()
        .ok_or("the request waits for no answer")?;
    let first = first.clone();
    let progress = Scripted::new(SizeHint::new(), |out| async move {
        for number in 1.. {
            let event = mcp::event(&mcp::progress(&first, number));
            out.data(event, false).await;
            hold(apart, &ledger).await;
        }
        Ok(())
    });
    let mut response = Response::new(body::boxed(progress));
    *response.headers_mut() = mcp::stream_headers();
    Ok(response)
}

fn bypassed(mut report: VerdictReport, why: impl Into<String>) -> SyntheticAnswer {
    report.bypassed(why);
    SyntheticAnswer::Bypassed
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
pub(crate) fn respond(reply: Reply, context: &FaultContext) -> Response<AgentBody> {
    let Reply {
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

fn redirect(status: StatusCode, location: HeaderValue) -> Reply {
    let headers = HeaderMap::from_iter([(header::LOCATION, location)]);
    Reply {
        status,
        headers,
        body: Bytes::new(),
    }
}

fn dns_failure(host: &str) -> Reply {
    let detail = format!("DNS: the name `{host}` could not be resolved");
    Problem::new(
        StatusCode::BAD_GATEWAY,
        "dns-failure",
        "DNS failure",
        detail,
    )
    .to_reply()
}

fn model_error(error: &ModelError, model: Speaking<'_>, context: &FaultContext) -> Reply {
    let wire = model
        .dialect
        .error(error, &model.error_context(Some(error), context));
    Reply {
        status: wire.status,
        headers: wire.headers,
        body: wire.body,
    }
}

#[cfg(test)]
mod tests;
