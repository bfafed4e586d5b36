//! The middleware in front of every page: session, CSRF, the visitor's role, and the layout around the response.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, SET_COOKIE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use tokio::runtime::Handle;
use tokio::task::JoinError;

use crate::api::{ApiClient, ApiError, with_query};
use crate::session::Sessions;
use crate::visit::{PageContent, Visit, Visitor, fragment, see_other};
use crate::{in_force, layout};

/// Most bytes of a form: a document of the API, percent-encoded.
const LONGEST_FORM: usize = 4 << 20;

/// Most bytes of a form that is read on the thread that ends chaos.
const LONGEST_URGENT_FORM: usize = 4 << 10;

/// The policy of every page: nothing but the daemon's own files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What all pages share.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) api: Router,
    sessions: Arc<Sessions>,
    work: Handle,
}

impl Gate {
    pub(crate) fn new(api: Router, sessions: Arc<Sessions>, work: Handle) -> Self {
        Self {
            api,
            sessions,
            work,
        }
    }

    /// The visit of a request; an error if its form is not of its session.
    async fn visit(&self, request: Request, longest: usize) -> Result<(Visit, Request), ApiError> {
        let (parts, body) = request.into_parts();
        let session = Sessions::of(&parts.headers);
        let session = session
            .map_or_else(Sessions::id, Ok)
            .map_err(|error| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        let form = if parts.method == Method::POST {
            self.form(&parts.headers, body, &session, longest).await?
        } else {
            Vec::new()
        };
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let query: Vec<_> = pairs.into_owned().collect();
        let token = self.sessions.token(&session, Instant::now());
        let visit = Visit {
            api: ApiClient::of(self.api.clone(), &parts, token.as_deref()),
            caller: Visitor::default(),
            in_force: Arc::default(),
            csrf: self.sessions.csrf(&session),
            is_partial: is_partial(&parts.headers),
            session,
            sessions: Arc::clone(&self.sessions),
            parts: Arc::new(parts.clone()),
            query: query.into(),
            form: form.into(),
        };
        Ok((visit, Request::from_parts(parts, Body::empty())))
    }

    /// The fields of a form with the session's CSRF token.
    async fn form(
        &self,
        headers: &HeaderMap,
        body: Body,
        session: &str,
        longest: usize,
    ) -> Result<Vec<(String, String)>, ApiError> {
        let body = Limited::new(body, longest).collect().await;
        let body = body.map_err(|error| {
            let detail = format!("the form cannot be read: {error}");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
        })?;
        let body = body.to_bytes();
        let fields: Vec<_> = form_urlencoded::parse(&body).into_owned().collect();
        let given = fields.iter().find(|(name, _)| name == "csrf");
        let has_cookie = Sessions::of(headers).is_some();
        if has_cookie && given.is_some_and(|(_, csrf)| self.sessions.is_csrf(session, csrf)) {
            return Ok(fields);
        }
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "This form belongs to another session, or its session has ended. Nothing was changed. Load the page \
             again, and repeat the change.",
        ))
    }
}

/// Where a visitor without a valid token goes.
fn to_login(visit: &Visit) -> Response {
    let next = visit
        .parts
        .uri
        .path_and_query()
        .map_or("/live", |path| path.as_str());
    let next = if visit.is_partial { "/live" } else { next };
    let login = with_query("/login", &[("next", next)]);
    let accepts = visit.parts.headers.get(ACCEPT);
    if accepts.is_some_and(|accepts| accepts.as_bytes() == b"text/event-stream") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if visit.is_partial
        && let Ok(login) = HeaderValue::from_str(&login)
    {
        return [(HeaderName::from_static("hx-redirect"), login)].into_response();
    }
    see_other(&login)
}

/// The response with its layout and its headers.
fn finish(visit: &Visit, mut response: Response) -> Response {
    let status = response.status();
    let page = response.extensions_mut().remove::<Arc<PageContent>>();
    let error = response.extensions_mut().remove::<Arc<ApiError>>();
    if let Some(error) = error {
        response = match status {
            StatusCode::UNAUTHORIZED if visit.path() != "/login" => to_login(visit),
            _ if visit.is_partial => fragment(layout::problem(&error)),
            _ => fragment(layout::failed(visit, &error)),
        };
        if response.status() == StatusCode::OK && status != StatusCode::UNAUTHORIZED {
            *response.status_mut() = status;
        }
    } else if let Some(page) = page {
        response = if visit.is_partial {
            fragment(page.body.clone())
        } else {
            fragment(layout::page(visit, &page))
        };
        *response.status_mut() = status;
    }
    if Sessions::of(&visit.parts.headers).is_none() && !response.headers().contains_key(SET_COOKIE)
    {
        visit.set_cookie(&mut response, &visit.session);
    }
    secured(response)
}

fn secured(mut response: Response) -> Response {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
        (VARY, "cookie, hx-request"),
    ] {
        // A report has a stricter policy of its own.
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// For pages of callers that the API knows. They are written by the worker runtime.
pub(crate) async fn callers(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let is_partial = is_partial(request.headers());
    let visiting = gate.clone();
    // A long form is read by the worker runtime too.
    let visiting = async move { visiting.visit(request, LONGEST_FORM).await };
    let (mut visit, mut request) = match gate.work.spawn(visiting).await {
        Ok(Ok(visited)) => visited,
        Ok(Err(error)) => return refused(&error, is_partial),
        Err(error) => return refused(&failed(&error), is_partial),
    };
    match visit.api.get("/v1/caller").await {
        Ok(caller) => visit.caller = caller,
        Err(error) => return finish(&visit, error.into_response()),
    }
    if !visit.is_partial {
        // Without it, the page asks again.
        visit.in_force = in_force::read(&visit.api).await.unwrap_or_default().into();
    }
    request.extensions_mut().insert(visit.clone());
    let answering = gate.work.spawn(next.run(request));
    let response = answering
        .await
        .unwrap_or_else(|error| failed(&error).into_response());
    finish(&visit, response)
}

fn failed(error: &JoinError) -> ApiError {
    tracing::error!("a page was not written: {error}");
    let detail = "Squall failed while it wrote this page; its log says where";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}

/// For what must take effect even while the worker runtime or the store does not respond.
pub(crate) async fn urgent(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let is_partial = is_partial(request.headers());
    match gate.visit(request, LONGEST_URGENT_FORM).await {
        Ok((visit, mut request)) => {
            request.extensions_mut().insert(visit.clone());
            finish(&visit, next.run(request).await)
        }
        Err(error) => refused(&error, is_partial),
    }
}

/// Whether the response is a part of a page.
fn is_partial(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request")
        && !headers.contains_key("hx-boosted")
        && !headers.contains_key("hx-history-restore-request")
}

fn refused(error: &ApiError, is_partial: bool) -> Response {
    let mut response = fragment(layout::bare(&error.title, &layout::problem(error)));
    *response.status_mut() = error.status();
    if is_partial && error.status() == StatusCode::FORBIDDEN {
        // The daemon has restarted: a page that is loaded again has a form that is accepted.
        let refresh = HeaderName::from_static("hx-refresh");
        let headers = response.headers_mut();
        headers.insert(refresh, HeaderValue::from_static("true"));
    }
    secured(response)
}
