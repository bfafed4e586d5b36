//! The middleware in front of every route: access control, and the audit log's entry of a change.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use squall_journal::redact::Redactor;

use super::{Access, Caller, Needs};
use crate::audit::{AuditEntry, AuditLog, AuditedCall, Unchanged};
use crate::problem::ApiProblem;
use crate::store;

/// State of the guard.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) access: Arc<Access>,
    pub(crate) audit: Arc<AuditLog>,
    /// Removes secrets from audit entries.
    pub(crate) redactor: Redactor,
}

/// Extension of a request that a page of this daemon makes for its visitor; the audit log names it beside the address.
#[derive(Debug, Clone, Copy)]
pub struct ByPage(pub &'static str);

/// How long a response waits for its entry in the audit log: at most the timeout of a store query.
const PATIENCE: Duration = store::PATIENCE;

/// The same for requests that end chaos: they have taken effect by then.
const SHORT_PATIENCE: Duration = Duration::from_millis(500);

impl Guard {
    /// The change that a request is about to make. Its path is redacted: people may paste secrets into it.
    fn call(&self, caller: &Caller, request: &Request) -> AuditedCall {
        let mut target = request.uri().path().to_owned();
        self.redactor.text(&mut target, 256);
        let source = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let source = source.map_or_else(|| "-".to_owned(), |source| source.0.ip().to_string());
        let page = request.extensions().get::<ByPage>();
        let route = request.extensions().get::<MatchedPath>();
        AuditedCall::new(AuditEntry {
            workspace: caller.workspace().to_owned(),
            actor: caller.name().to_owned(),
            source: page.map_or(source.clone(), |page| format!("{source} {}", page.0)),
            action: format!(
                "{} {}",
                request.method(),
                route.map_or("", MatchedPath::as_str)
            ),
            target,
            ..AuditEntry::default()
        })
    }
}

/// The middleware in front of every route. Without a token a client does not learn which routes exist.
pub(crate) async fn guard(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiProblem> {
    let needs = request.extensions().get::<Needs>().copied();
    let (uri, headers) = (request.uri(), request.headers());
    let caller = guard
        .access
        .check(needs, uri, headers, Instant::now())
        .inspect_err(|problem| guard.audit.denied(problem.status()))?;
    let Some(needs) = needs.filter(|_| !request.method().is_safe()) else {
        request.extensions_mut().insert(caller);
        return Ok(next.run(request).await);
    };
    if needs != Needs::EndsChaos {
        guard.audit.check_room()?;
    }
    let call = Arc::new(guard.call(&caller, &request));
    request.extensions_mut().insert(Caller {
        call: Some(Arc::clone(&call)),
        ..caller
    });
    let response = next.run(request).await;
    // What changed nothing has no entry.
    if response.extensions().get::<Unchanged>().is_none() {
        let patience = match needs {
            Needs::EndsChaos => SHORT_PATIENCE,
            Needs::Nothing | Needs::Role(_) => PATIENCE,
        };
        let status = response.status();
        guard.audit.answered(&call, status, patience).await;
    }
    Ok(response)
}
