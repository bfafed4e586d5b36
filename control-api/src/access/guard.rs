//! The middleware in front of every route: access control, and the audit log's entry of a change.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::Method;
use squall_journal::redact::Redactor;

use super::{Access, Caller, Needs, Rule};
use crate::audit::{AuditLog, Call, Repeated};
use crate::problem::Problem;
use crate::store;
use crate::tasks;

/// State of the guard.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) access: Arc<Access>,
    pub(crate) audit: Arc<AuditLog>,
    pub(crate) rules: Arc<[Rule]>,
    /// Removes secrets from audit entries.
    pub(crate) redactor: Redactor,
}

/// How long a response waits for its entry in the audit log: at most the timeout of a store query.
const PATIENCE: Duration = store::PATIENCE;

/// The same for requests that end chaos: they have taken effect by then.
const BRAKE_PATIENCE: Duration = Duration::from_millis(500);

impl Guard {
    /// What the route of a request requires. HEAD uses the route of GET.
    fn needs(&self, method: &Method, path: &str) -> Option<Needs> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.path == path && rule.method == method);
        rule.map(|rule| rule.needs)
    }

    /// The change that a request is about to make. Its path is redacted: people may paste secrets into it.
    fn call(&self, caller: &Caller, request: &Request, route: &str) -> Call {
        let mut target = request.uri().path().to_owned();
        self.redactor.text(&mut target, 256);
        let source = request.extensions().get::<ConnectInfo<SocketAddr>>();
        Call::new(
            caller.workspace(),
            caller.name(),
            source.map_or_else(|| "-".to_owned(), |source| source.0.ip().to_string()),
            format!("{} {route}", request.method()),
            target,
        )
    }
}

/// The middleware in front of every route. Without a token a client does not learn which routes exist.
pub(crate) async fn guard(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map(|path| path.as_str().to_owned());
    let needs = route
        .as_ref()
        .and_then(|path| guard.needs(request.method(), path));
    let source = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let source = source.map(|source| source.0.ip());
    let (uri, headers) = (request.uri(), request.headers());
    let caller = guard
        .access
        .check(needs, source, uri, headers, Instant::now())
        .inspect_err(|problem| guard.audit.denied(problem.status()))?;
    let (Some(route), Some(needs)) = (route, needs.filter(|_| !request.method().is_safe())) else {
        request.extensions_mut().insert(caller);
        return Ok(next.run(request).await);
    };
    if needs != Needs::Brake {
        guard
            .audit
            .has_room()
            .map_err(|full| Problem::not_ready(full.to_string()))?;
    }
    let call = Arc::new(guard.call(&caller, &request, &route));
    request.extensions_mut().insert(Caller {
        call: Some(Arc::clone(&call)),
        ..caller
    });
    // The client may disconnect; the work continues to its end and writes its entry.
    Ok(tasks::spawned(async move {
        let response = next.run(request).await;
        if response.extensions().get::<Repeated>().is_some() {
            // A repeated response changed nothing, so it has no entry.
            return response;
        }
        let patience = match needs {
            Needs::Brake => BRAKE_PATIENCE,
            Needs::Nothing | Needs::Role(_) => PATIENCE,
        };
        guard
            .audit
            .answered(&call, response.status(), patience)
            .await;
        response
    })
    .await)
}
