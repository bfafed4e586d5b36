//! Changes to upstreams' responses.
//!
//! | edit | needs | framing | coding |
//! |---|---|---|---|
//! | truncate to bytes | nothing | the right `content-length`, or chunks | counts encoded bytes |
//! | truncate to a share | the length, else the whole body | the right `content-length` | counts encoded bytes |
//! | schema drift, injection | the whole body | the right `content-length` | decoded, encoded |
//! | MCP response | events one by one; JSON whole | chunks; right `content-length` | decoded, encoded per event |
//! | stream fault | events one by one; JSON whole | chunks; right `content-length` | decoded, encoded per event |
//!
//! If an edit cannot be made, the response passes unchanged and the reason is reported.
//!
//! Digest fields (`content-digest`, `repr-digest`, `digest`, `content-md5`) are removed when the
//! content changes: a real upstream would have sent a matching digest. They stay when the body is
//! only truncated, because they exist to detect that. `etag` and `last-modified` always stay: they
//! identify the upstream's version, not the bytes.

mod drift;
mod inject;
pub(crate) mod mcp;
mod stream;
mod truncate;
mod whole;

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, Response, header};
use http_body::Body as _;
use squall_dialects::model::{ModelError, ModelRequest};
use squall_dialects::tokens::{self, Counting};
use squall_dialects::{Credential, Dialect, ErrorContext, Target};
use squall_profiles::plan::{Edit, VerdictIndex};

use super::{FaultContext, VerdictReport, has_body};
use crate::body::AgentBody;

/// The model call of the response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Speaking<'a> {
    /// The dialect of the exchange.
    pub dialect: &'static dyn Dialect,
    /// The destination of the request.
    pub target: Target<'a>,
    /// The model request, if the request's body was read.
    pub request: Option<&'a ModelRequest>,
    /// The request's body, if it was read.
    pub body: Option<&'a [u8]>,
    /// The request's credential, if the response may mention it.
    pub credential: Option<Credential<'a>>,
}

impl<'a> Speaking<'a> {
    /// Adds the credential in these headers.
    #[must_use]
    pub(crate) fn with_credential(self, headers: &'a HeaderMap) -> Self {
        Self {
            credential: Credential::of(headers),
            ..self
        }
    }

    /// The parts of this call that a synthetic `error` may mention.
    #[expect(
        clippy::disallowed_methods,
        reason = "a made-up error names the hour at which its limit ends; nothing is decided by it"
    )]
    pub(crate) fn error_context(
        &self,
        error: Option<&ModelError>,
        context: &FaultContext,
    ) -> ErrorContext<'a> {
        let model = self.request.and_then(|request| request.model.as_deref());
        let counted = error.is_some_and(ModelError::counts_input);
        let text = self.body.filter(|_| counted);
        let text = text.and_then(|body| std::str::from_utf8(body).ok());
        ErrorContext {
            draw: context.seed,
            account: context.account,
            credential: self.credential,
            target: self.target,
            model,
            stream: self.request.is_some_and(|request| request.stream),
            previous_response: self
                .request
                .and_then(|request| request.previous_response.as_deref()),
            on_websocket: context.on_websocket,
            input_tokens: text.map(|text| tokens::count(Counting::of(model), text)),
            now: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .ok(),
        }
    }
}

/// Applies a plan's edits in order.
///
/// It waits for a whole body where an edit needs one; streaming edits do not wait. `model` is the
/// model call, for kind `llm`.
pub(crate) async fn apply(
    edits: &[(VerdictIndex, Edit)],
    mut response: Response<AgentBody>,
    model: Option<Speaking<'_>>,
    context: &FaultContext,
) -> Response<AgentBody> {
    for (verdict, edit) in edits {
        let mut report = VerdictReport::new(context, *verdict);
        if !has_body(&context.method, response.status()) {
            report.bypassed("the answer has no body");
            continue;
        }
        if response.body().is_end_stream() {
            report.bypassed("the body is empty");
            continue;
        }
        response = match edit {
            Edit::Truncate(amount) => truncate::apply(*amount, response, report, context).await,
            Edit::Drift(drift) => drift::apply(drift, response, report, context).await,
            Edit::Inject(injection) => inject::apply(injection, response, report, context).await,
            Edit::Mcp(_) => {
                report.bypassed("the exchange is no MCP call");
                response
            }
            Edit::Stream(fault) => stream::apply(fault, response, model, report, context).await,
        };
    }
    response
}

/// Adapts a head to a body of another length.
pub(crate) fn fits(headers: &mut HeaderMap, length: u64) {
    drop_digests(headers);
    correct_length(headers, length);
}

/// Removes digests of bytes that have changed.
pub(crate) fn drop_digests(headers: &mut HeaderMap) {
    const DIGESTS: [HeaderName; 4] = [
        HeaderName::from_static("content-digest"),
        HeaderName::from_static("repr-digest"),
        HeaderName::from_static("digest"),
        HeaderName::from_static("content-md5"),
    ];
    for name in DIGESTS {
        headers.remove(name);
    }
}

/// Announces `length` in the head if it has a length; chunks stay chunks.
pub(super) fn correct_length(headers: &mut HeaderMap, length: u64) {
    if headers.contains_key(header::CONTENT_LENGTH) {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
}

#[cfg(test)]
mod tests;
