//! Every route, one file for each thing there is; and who may call it.

mod chaos;
mod chaos_request;
mod daemon;
mod events;
mod exchanges;
mod path;
mod profiles;
mod tokens;

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Router, middleware};
use http::{Method, Uri};

use crate::access::{Guard, Needs, Role, Rule};
use crate::problem::Problem;
use crate::{ApiState, access, document};

/// A method of a path: what it asks of whoever calls it, and what answers.
struct Route {
    rule: Rule,
    answers: MethodRouter<ApiState>,
}

/// Everything there is. Docs: `docs/api.md` says the same to those who call it, and a test compares.
fn table() -> Vec<Route> {
    let nothing = Needs::Nothing;
    let viewer = Needs::Role(Role::Viewer);
    let operator = Needs::Role(Role::Operator);
    let admin = Needs::Role(Role::Admin);
    let brake = Needs::Brake;
    vec![
        get("/healthz", nothing, daemon::healthz),
        get("/readyz", nothing, daemon::readyz),
        get("/metrics", nothing, daemon::metrics),
        get("/ca.pem", nothing, daemon::ca_pem),
        get("/proxy.pac", nothing, daemon::proxy_pac),
        get("/v1/profiles", viewer, profiles::list),
        get("/v1/profiles/{name}", viewer, profiles::show),
        put("/v1/profiles/{name}", operator, profiles::put),
        delete("/v1/profiles/{name}", operator, profiles::delete),
        get("/v1/chaos", viewer, chaos::show_default),
        put("/v1/chaos", operator, chaos::put_default),
        delete("/v1/chaos", brake, chaos::end_default),
        get("/v1/scopes", viewer, chaos::list),
        get("/v1/scopes/{scope}/chaos", viewer, chaos::show),
        put("/v1/scopes/{scope}/chaos", operator, chaos::put),
        delete("/v1/scopes/{scope}/chaos", brake, chaos::end),
        get("/v1/exchanges", viewer, exchanges::list),
        get("/v1/exchanges/{id}", viewer, exchanges::show),
        get("/v1/events", viewer, events::stream),
        get("/v1/tokens", admin, tokens::list),
        post("/v1/tokens", admin, tokens::create),
        delete("/v1/tokens/{name}", admin, tokens::revoke),
    ]
}

/// Calls are answered by `handler`.
macro_rules! methods {
    ($($name:ident $method:ident)*) => { $(
        fn $name<H: Handler<T, ApiState>, T: 'static>(
            path: &'static str,
            needs: Needs,
            handler: H,
        ) -> Route {
            Route {
                rule: Rule {
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

/// The whole API, guarded.
pub fn router(state: ApiState) -> Router {
    let table = table();
    let guard = Guard {
        access: state.access.clone(),
        rules: table.iter().map(|route| route.rule).collect(),
    };
    let mut router = Router::new();
    for route in table {
        router = router.route(route.rule.path, route.answers);
    }
    router
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_this_method)
        .layer(DefaultBodyLimit::max(document::MOST))
        .layer(middleware::from_fn_with_state(guard, access::guard))
        .with_state(state)
}

async fn nothing_here(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(100).collect();
    Problem::not_found(format!("there is nothing at `{path}`"))
}

async fn not_this_method(method: Method, uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(100).collect();
    Problem::method_not_allowed(format!("`{path}` cannot be asked with {method}"))
}

#[cfg(test)]
mod tests {
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
}
