//! A request to a page: who asks, what for, and what pages respond with.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::response::{Html, IntoResponse, Redirect, Response};
use http::header::SET_COOKIE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use maud::Markup;
use serde::Deserialize;
use squall_journal::activation::ActivationRecord;

use crate::api::{ApiClient, ApiError};
use crate::session::Sessions;

/// The visitor's token, as `GET /v1/caller` describes it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Visitor {
    pub(crate) token: Option<String>,
    role: String,
    pub(crate) workspace: String,
    pub(crate) default_scope: String,
    /// Whether the daemon belongs to a fleet.
    #[serde(default)]
    pub(crate) fleet: bool,
}

impl Visitor {
    /// Whether it may change chaos, documents and runs.
    pub(crate) fn may_change(&self) -> bool {
        matches!(&*self.role, "operator" | "admin")
    }

    /// Its role.
    pub(crate) fn role(&self) -> &str {
        &self.role
    }
}

/// One request to a page, by a visitor with a session.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// The API, as this visitor may use it.
    pub(crate) api: ApiClient,
    pub(crate) caller: Visitor,
    /// What is in force; only for whole pages.
    pub(crate) in_force: Arc<[ActivationRecord]>,
    /// The token that each of its forms carries.
    pub(crate) csrf: String,
    /// Whether a script replaces a part of the page.
    pub(crate) is_partial: bool,
    pub(crate) session: String,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) parts: Arc<Parts>,
    pub(crate) query: Arc<[(String, String)]>,
    pub(crate) form: Arc<[(String, String)]>,
}

impl<S: Send + Sync> FromRequestParts<S> for Visit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let visit = parts.extensions.get::<Self>().cloned();
        let missing = || ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "there is no session");
        visit.ok_or_else(missing)
    }
}

/// A page without its layout.
#[derive(Debug, Clone)]
pub(crate) struct PageContent {
    /// Its heading, and the title of its window.
    pub(crate) title: String,
    /// The path of its entry in the navigation.
    pub(crate) nav: &'static str,
    /// Files that only this page needs.
    pub(crate) assets: &'static [&'static str],
    pub(crate) body: Markup,
}

impl IntoResponse for PageContent {
    /// The gate writes it.
    fn into_response(self) -> Response {
        let mut response = Response::default();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl IntoResponse for ApiError {
    /// The gate writes it.
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// What a page or a part of it responds with.
pub(crate) type PageResult = Result<Response, ApiError>;

/// A part of a page.
pub(crate) fn fragment(markup: Markup) -> Response {
    Html(markup.into_string()).into_response()
}

/// Another page, after a form.
pub(crate) fn see_other(path: &str) -> Response {
    Redirect::to(path).into_response()
}

/// `path` if it is one of this site, else the first page.
pub(crate) fn local(path: &str) -> &str {
    let is_local = path.starts_with('/')
        && !path.starts_with("//")
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_local { path } else { "/live" }
}

impl Visit {
    /// The path of the request.
    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// A parameter of the query; `None` if it is missing or empty.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let mut found = self.query.iter().filter(|(given, _)| given == name);
        let value = found.next().map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    }

    /// A field of the form; empty if it is missing.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.raw_field(name).trim()
    }

    /// A field of the form with its white space; empty if it is missing.
    pub(crate) fn raw_field(&self, name: &str) -> &str {
        let found = self.form.iter().find(|(given, _)| given == name);
        found.map_or("", |(_, value)| value)
    }

    /// The API, for a visitor with another token.
    pub(crate) fn api_with(&self, token: &str) -> ApiClient {
        self.api.for_visitor(&self.parts, Some(token))
    }

    /// Begins a session with a token that the API has accepted.
    pub(crate) fn log_in(&self, token: &str) -> PageResult {
        self.sessions.log_out(&self.session);
        let session = self.sessions.log_in(token.to_owned(), Instant::now());
        let session = session
            .map_err(|error| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        let next = local(self.param("next").unwrap_or_default());
        let mut response = see_other(next);
        self.set_cookie(&mut response, &session);
        Ok(response)
    }

    /// Ends the session.
    pub(crate) fn log_out(&self) {
        self.sessions.log_out(&self.session);
    }

    pub(crate) fn set_cookie(&self, response: &mut Response, session: &str) {
        let header = |name: &str| self.parts.headers.get(name)?.to_str().ok();
        let is_secure = header("x-forwarded-proto").is_some_and(|proto| proto.trim() == "https")
            || header("forwarded").is_some_and(|said| said.contains("proto=https"));
        let cookie = Sessions::cookie(session, is_secure);
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn only_a_path_of_this_site_is_followed() {
        for path in ["/chaos", "/live?status=4xx"] {
            assert_eq!(local(path), path);
        }
        for path in [
            "",
            "live",
            "//evil.test",
            "/\\evil.test",
            "http://evil.test/",
            "/a\nb",
            "/ä",
        ] {
            assert_eq!(local(path), "/live", "{path}");
        }
    }
}
