//! Every route, with one file for each kind of object, and the role that it requires.

mod audit;
mod caller;
mod chaos;
mod clients;
mod daemon;
mod docs;
mod documents;
mod dry_run;
mod events;
mod exchanges;
mod fleet;
mod imports;
mod incidents;
mod openapi;
mod path;
mod recordings;
mod reports;
mod runs;
mod tapes;
mod tokens;
mod versions;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::handler::Handler;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Router, middleware};
use http::header::ALLOW;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;
use tracing::Span;

pub(crate) use self::runs::order;
use crate::access::{AccessRule, Guard, Needs, TokenRole};
use crate::dispatch::{self, Dispatch};
use crate::idempotency::Keys;
use crate::problem::ApiProblem;
use crate::state::ApiState;
use crate::{access, document, idempotency};

/// A method of a path: the role that it requires, and its handler.
struct Route {
    rule: AccessRule,
    answers: MethodRouter<ApiState>,
}

impl Route {
    /// Raises the limit of the body, for documents that hold recorded traffic.
    fn long(self) -> Self {
        self.up_to(document::LONG)
    }

    fn up_to(self, bytes: usize) -> Self {
        Self {
            answers: self.answers.layer(DefaultBodyLimit::max(bytes)),
            ..self
        }
    }
}

/// Every route, one a line. `docs/api.md` describes the same routes, and a test compares.
#[rustfmt::skip]
fn table() -> Vec<Route> {
    let nothing = Needs::Nothing;
    let viewer = Needs::Role(TokenRole::Viewer);
    let operator = Needs::Role(TokenRole::Operator);
    let admin = Needs::Role(TokenRole::Admin);
    let ends_chaos = Needs::EndsChaos;
    vec![
        get("/healthz", nothing, daemon::healthz),
        get("/readyz", nothing, daemon::readyz),
        get("/metrics", nothing, daemon::metrics),
        get("/ca.pem", nothing, daemon::ca_pem),
        get("/openapi.json", nothing, openapi::show),
        get("/docs", nothing, docs::show),
        get("/proxy.pac", nothing, daemon::proxy_pac),
        get("/v1/caller", viewer, caller::show),
        get("/v1/profiles", viewer, documents::list_profiles),
        get("/v1/profiles/{name}", viewer, documents::show),
        put("/v1/profiles/{name}", operator, documents::put),
        delete("/v1/profiles/{name}", operator, documents::delete),
        get("/v1/profiles/{name}/versions", viewer, documents::list_versions),
        post("/v1/profiles/{name}/dry-run", operator, dry_run::dry_run),
        get("/v1/chaos", viewer, chaos::show),
        put("/v1/chaos", operator, chaos::put),
        delete("/v1/chaos", ends_chaos, chaos::end_default),
        get("/v1/scopes", viewer, chaos::list),
        get("/v1/scopes/{scope}/chaos", viewer, chaos::show),
        put("/v1/scopes/{scope}/chaos", operator, chaos::put),
        delete("/v1/scopes/{scope}/chaos", ends_chaos, chaos::end),
        get("/v1/fleet", viewer, fleet::show),
        get("/v1/tapes", viewer, tapes::list),
        get("/v1/scopes/{scope}/tape", viewer, tapes::show),
        put("/v1/scopes/{scope}/tape", operator, tapes::put).long(),
        delete("/v1/scopes/{scope}/tape", ends_chaos, tapes::delete),
        get("/v1/exchanges", viewer, exchanges::list),
        get("/v1/exchanges/{id}", viewer, exchanges::show),
        get("/v1/clients", viewer, clients::list),
        get("/v1/events", viewer, events::stream),
        get("/v1/suites", viewer, documents::list),
        get("/v1/suites/{name}", viewer, documents::show),
        put("/v1/suites/{name}", operator, documents::put),
        delete("/v1/suites/{name}", operator, documents::delete),
        get("/v1/contracts", viewer, documents::list),
        get("/v1/contracts/{name}", viewer, documents::show),
        put("/v1/contracts/{name}", operator, documents::put),
        delete("/v1/contracts/{name}", operator, documents::delete),
        get("/v1/runs", viewer, runs::list),
        post("/v1/runs", operator, runs::create).up_to(document::LONGEST_RUN),
        get("/v1/runs/{id}", viewer, runs::show),
        post("/v1/runs/{id}/approve", operator, runs::approve),
        post("/v1/runs/{id}/cancel", ends_chaos, runs::cancel),
        get("/v1/runs/{id}/events", viewer, events::stream_run),
        get("/v1/runs/{id}/report", viewer, reports::show),
        get("/v1/runs/{id}/comparison", viewer, runs::compare),
        get("/v1/runs/{id}/incidents", viewer, incidents::list),
        get("/v1/replays", viewer, documents::list),
        post("/v1/replays/import", operator, imports::create).long(),
        get("/v1/replays/{id}", viewer, documents::show),
        put("/v1/replays/{id}", operator, documents::put).long(),
        delete("/v1/replays/{id}", operator, documents::delete),
        get("/v1/recordings", viewer, recordings::list),
        post("/v1/recordings", operator, recordings::begin),
        get("/v1/recordings/{id}", viewer, recordings::show),
        post("/v1/recordings/{id}/stop", operator, recordings::stop),
        post("/v1/traces", operator, imports::collect).long(),
        get("/v1/tokens", admin, tokens::list),
        post("/v1/tokens", admin, tokens::create),
        delete("/v1/tokens/{name}", admin, tokens::revoke),
        get("/v1/audit", admin, audit::list),
        get("/v1/audit/verify", admin, audit::verify),
    ]
}

/// Defines one function for each method, which makes a [`Route`].
macro_rules! methods {
    ($($name:ident $method:ident)*) => { $(
        fn $name<H: Handler<T, ApiState>, T: 'static>(
            path: &'static str,
            needs: Needs,
            handler: H,
        ) -> Route {
            Route {
                rule: AccessRule {
                    method: &Method::$method,
                    path,
                    needs,
                },
                answers: on(MethodFilter::$method, handler),
            }
        }
    )* };
}

methods! {
    get GET
    put PUT
    post POST
    delete DELETE
}

/// The whole API, with access control.
pub fn router(state: ApiState) -> Router {
    let table = table();
    state.access.connect(&state.chaos);
    let rules: Arc<[AccessRule]> = table.iter().map(|route| route.rule).collect();
    let dispatch = Dispatch::new(state.work.clone(), rules);
    let guard = Guard {
        access: state.access.clone(),
        audit: state.audit.clone(),
        redactor: state.recorder.redactor().clone(),
    };
    let keys = Keys::new(state.store.clone(), clock(&state), idempotency::PATIENCE);
    let mut router = Router::new();
    for route in table {
        router = router.route(route.rule.path, route.answers);
    }
    let header = |name: &'static str, value: &'static str| {
        let (name, value) = (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        SetResponseHeaderLayer::if_not_present(name, value)
    };
    let known = router
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_this_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(keys, idempotency::once))
        .layer(DefaultBodyLimit::max(document::MOST))
        .layer(middleware::from_fn_with_state(guard, access::guard))
        .layer(header("x-content-type-options", "nosniff"))
        .layer(header("referrer-policy", "no-referrer"))
        .layer(middleware::from_fn_with_state(dispatch, dispatch::dispatch))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(TraceLayer::new_for_http().make_span_with(span))
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .with_state(state);
    // Outermost: the routes add `Allow` to every response for a method that they do not support.
    let allows = middleware::map_response(allow_with_405);
    Router::new().fallback_service(known).layer(allows)
}

/// Fields of a request's log lines. The query is left out: people may paste secrets into it.
fn span(request: &Request) -> Span {
    let id = request.headers().get("x-request-id");
    let id = id.and_then(|id| id.to_str().ok()).unwrap_or_default();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    tracing::debug_span!("request", id, method = %request.method(), route)
}

fn panicked(_: Box<dyn Any + Send>) -> Response {
    ApiProblem::internal("Squall failed while it answered this request; its log says where")
        .into_response()
}

/// `Allow` belongs to 405 (RFC 9110 §10.2.1), not to 404.
async fn allow_with_405(mut response: Response) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().remove(ALLOW);
    }
    response
}

/// The clock of all stored times.
fn clock(state: &ApiState) -> Arc<dyn Fn() -> u64 + Send + Sync> {
    let recorder = state.recorder.clone();
    Arc::new(move || recorder.unix_ms(Instant::now()))
}

async fn nothing_here(uri: Uri) -> ApiProblem {
    let path: String = uri.path().chars().take(100).collect();
    ApiProblem::not_found(format!("there is nothing at `{path}`"))
}

async fn not_this_method(method: Method, uri: Uri) -> ApiProblem {
    let path: String = uri.path().chars().take(100).collect();
    ApiProblem::method_not_allowed(format!("`{path}` does not support {method}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::table;
    use crate::access::TokenRole;

    #[test]
    fn the_docs_say_who_may_call_what() {
        let docs = include_str!("../../docs/api.md");
        let documented: Vec<_> = docs
            .lines()
            .skip_while(|line| *line != "| request | role |")
            .skip(2)
            .map_while(|line| line.strip_prefix("| `")?.strip_suffix(" |"))
            .filter_map(|line| line.split_once("` | "))
            .map(|(request, role)| (request.to_owned(), role))
            .collect();
        let routes = table().into_iter().map(|route| route.rule);
        let written: Vec<_> = routes
            .map(|rule| {
                let role = rule.needs.role().map_or("none", TokenRole::as_str);
                (format!("{} {}", rule.method, rule.path), role)
            })
            .collect();
        assert_eq!(documented, written);
    }

    #[test]
    fn the_description_has_every_route_with_its_role_and_no_other() {
        let document = super::openapi::description();
        let paths = document["paths"].as_object().expect("paths");
        let described: BTreeSet<_> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods");
                methods.iter().map(move |(method, operation)| {
                    let role = operation["x-squall-role"].as_str().unwrap_or_default();
                    let asked = operation["security"].as_array().map_or(0, Vec::len);
                    assert_eq!(asked == 0, role == "none", "{method} {path}");
                    format!("{} {path} {role}", method.to_uppercase())
                })
            })
            .collect();
        let routes = table().into_iter().map(|route| route.rule);
        let there: BTreeSet<_> = routes
            .map(|rule| {
                let role = rule.needs.role().map_or("none", TokenRole::as_str);
                format!("{} {} {role}", rule.method, rule.path)
            })
            .collect();
        assert_eq!(described, there);
    }
}
