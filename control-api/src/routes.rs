//! Every route, one file for each thing there is; and who may call it.

mod audit;
mod chaos;
mod chaos_request;
mod contracts;
mod daemon;
mod docs;
mod documents;
mod events;
mod exchanges;
mod incidents;
mod openapi;
mod path;
mod profiles;
mod recordings;
mod replays;
mod reports;
mod run_events;
mod runs;
mod suites;
mod tapes;
mod tokens;
mod versions;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Router, middleware};
use http::header::ALLOW;
use http::{Method, StatusCode, Uri};

use crate::access::{Guard, Needs, Role, Rule};
use crate::dispatch::{self, Dispatch};
use crate::idempotency::Keys;
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::{ApiState, access, document, idempotency};

/// A method of a path: what it asks of whoever calls it, what answers, and how it is described.
struct Route {
    rule: Rule,
    answers: MethodRouter<ApiState>,
    /// Says how it is called.
    operation: fn() -> Operation,
}

impl Route {
    /// It takes documents that hold what was recorded.
    fn long(self) -> Self {
        Self {
            answers: self.answers.layer(DefaultBodyLimit::max(document::LONG)),
            ..self
        }
    }
}

/// Everything there is, a line each. Docs: `docs/api.md` says the same to those who call it, and a test compares.
#[rustfmt::skip]
fn table() -> Vec<Route> {
    let nothing = Needs::Nothing;
    let viewer = Needs::Role(Role::Viewer);
    let operator = Needs::Role(Role::Operator);
    let admin = Needs::Role(Role::Admin);
    let brake = Needs::Brake;
    vec![
        get("/healthz", nothing, daemon::healthz, daemon::healthz_operation),
        get("/readyz", nothing, daemon::readyz, daemon::readyz_operation),
        get("/metrics", nothing, daemon::metrics, daemon::metrics_operation),
        get("/ca.pem", nothing, daemon::ca_pem, daemon::ca_pem_operation),
        get("/openapi.json", nothing, openapi::show, openapi::show_operation),
        get("/docs", nothing, docs::show, docs::show_operation),
        get("/proxy.pac", nothing, daemon::proxy_pac, daemon::proxy_pac_operation),
        get("/v1/profiles", viewer, profiles::list, profiles::list_operation),
        get("/v1/profiles/{name}", viewer, profiles::show, profiles::show_operation),
        put("/v1/profiles/{name}", operator, profiles::put, profiles::put_operation),
        delete("/v1/profiles/{name}", operator, profiles::delete, profiles::delete_operation),
        get("/v1/chaos", viewer, chaos::show_default, chaos::show_default_operation),
        put("/v1/chaos", operator, chaos::put_default, chaos::put_default_operation),
        delete("/v1/chaos", brake, chaos::end_default, chaos::end_default_operation),
        get("/v1/scopes", viewer, chaos::list, chaos::list_operation),
        get("/v1/scopes/{scope}/chaos", viewer, chaos::show, chaos::show_operation),
        put("/v1/scopes/{scope}/chaos", operator, chaos::put, chaos::put_operation),
        delete("/v1/scopes/{scope}/chaos", brake, chaos::end, chaos::end_operation),
        get("/v1/scopes/{scope}/tape", viewer, tapes::show, tapes::show_operation),
        put("/v1/scopes/{scope}/tape", operator, tapes::put, tapes::put_operation).long(),
        delete("/v1/scopes/{scope}/tape", brake, tapes::delete, tapes::delete_operation),
        get("/v1/exchanges", viewer, exchanges::list, exchanges::list_operation),
        get("/v1/exchanges/{id}", viewer, exchanges::show, exchanges::show_operation),
        get("/v1/events", viewer, events::stream, events::stream_operation),
        get("/v1/suites", viewer, suites::list, suites::list_operation),
        get("/v1/suites/{name}", viewer, suites::show, suites::show_operation),
        put("/v1/suites/{name}", operator, suites::put, suites::put_operation),
        delete("/v1/suites/{name}", operator, suites::delete, suites::delete_operation),
        get("/v1/contracts", viewer, contracts::list, contracts::list_operation),
        get("/v1/contracts/{name}", viewer, contracts::show, contracts::show_operation),
        put("/v1/contracts/{name}", operator, contracts::put, contracts::put_operation),
        delete("/v1/contracts/{name}", operator, contracts::delete, contracts::delete_operation),
        get("/v1/runs", viewer, runs::list, runs::list_operation),
        post("/v1/runs", operator, runs::create, runs::create_operation),
        get("/v1/runs/{id}", viewer, runs::show, runs::show_operation),
        post("/v1/runs/{id}/approve", operator, runs::approve, runs::approve_operation),
        post("/v1/runs/{id}/cancel", brake, runs::cancel, runs::cancel_operation),
        get("/v1/runs/{id}/events", viewer, runs::events, runs::events_operation),
        get("/v1/runs/{id}/report", viewer, reports::show, reports::show_operation),
        get("/v1/runs/{id}/incidents", viewer, incidents::list, incidents::list_operation),
        get("/v1/replays", viewer, replays::list, replays::list_operation),
        get("/v1/replays/{id}", viewer, replays::show, replays::show_operation),
        put("/v1/replays/{id}", operator, replays::put, replays::put_operation).long(),
        delete("/v1/replays/{id}", operator, replays::delete, replays::delete_operation),
        get("/v1/recordings", viewer, recordings::list, recordings::list_operation),
        post("/v1/recordings", operator, recordings::begin, recordings::begin_operation),
        get("/v1/recordings/{id}", viewer, recordings::show, recordings::show_operation),
        post("/v1/recordings/{id}/stop", operator, recordings::stop, recordings::stop_operation),
        get("/v1/tokens", admin, tokens::list, tokens::list_operation),
        post("/v1/tokens", admin, tokens::create, tokens::create_operation),
        delete("/v1/tokens/{name}", admin, tokens::revoke, tokens::revoke_operation),
        get("/v1/audit", admin, audit::list, audit::list_operation),
        get("/v1/audit/verify", admin, audit::verify, audit::verify_operation),
    ]
}

/// Calls are answered by `handler`.
macro_rules! methods {
    ($($name:ident $method:ident)*) => { $(
        fn $name<H: Handler<T, ApiState>, T: 'static>(
            path: &'static str,
            needs: Needs,
            handler: H,
            operation: fn() -> Operation,
        ) -> Route {
            Route {
                rule: Rule {
                    method: &Method::$method,
                    path,
                    needs,
                },
                answers: on(MethodFilter::$method, handler),
                operation,
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

/// The whole API, guarded.
pub fn router(state: ApiState) -> Router {
    let table = table();
    state.access.tell(&state.chaos);
    let rules: Arc<[Rule]> = table.iter().map(|route| route.rule).collect();
    let dispatch = Dispatch::new(state.work.clone(), Arc::clone(&rules));
    let guard = Guard {
        access: state.access.clone(),
        audit: state.audit.clone(),
        redactor: state.recorder.redactor().clone(),
        rules,
    };
    let paths = table.iter().map(|route| route.rule);
    let paths = paths
        .filter(|rule| rule.method == Method::POST)
        .map(|rule| rule.path);
    let keys = Keys::new(
        state.profiles.store().clone(),
        paths.collect(),
        clock(&state),
    );
    let mut router = Router::new();
    for route in table {
        router = router.route(route.rule.path, route.answers);
    }
    let known = router
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_this_method)
        .layer(middleware::from_fn_with_state(keys, idempotency::once))
        .layer(DefaultBodyLimit::max(document::MOST))
        .layer(middleware::from_fn_with_state(guard, access::guard))
        .layer(middleware::from_fn_with_state(dispatch, dispatch::dispatch))
        .with_state(state);
    // Around the routes: they say `Allow` with whatever answers for a method that they have not.
    let allows = middleware::map_response(allow_with_405);
    Router::new().fallback_service(known).layer(allows)
}

/// `Allow` belongs to 405 (RFC 9110 §10.2.1), not to what says that there is nothing.
async fn allow_with_405(mut response: Response) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().remove(ALLOW);
    }
    response
}

/// The time, as what is kept is stamped.
fn clock(state: &ApiState) -> Arc<dyn Fn() -> u64 + Send + Sync> {
    let recorder = state.recorder.clone();
    Arc::new(move || recorder.unix_ms(Instant::now()))
}

async fn nothing_here(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(100).collect();
    Problem::not_found(format!("there is nothing at `{path}`"))
}

async fn not_this_method(method: Method, uri: Uri) -> Problem {
    if method == Method::POST && uri.path() == "/v1/replays/import" {
        // No session of that name is meant, and importing is not here.
        return nothing_here(uri).await;
    }
    let path: String = uri.path().chars().take(100).collect();
    Problem::method_not_allowed(format!("`{path}` cannot be asked with {method}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::table;
    use crate::access::Role;

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
                let role = rule.needs.role().map_or("none", Role::as_str);
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
                let role = rule.needs.role().map_or("none", Role::as_str);
                format!("{} {} {role}", rule.method, rule.path)
            })
            .collect();
        assert_eq!(described, there);
    }
}
