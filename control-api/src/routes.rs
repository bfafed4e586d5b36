//! Every route, one file for each thing there is.

mod chaos;
mod chaos_request;
mod daemon;
mod events;
mod exchanges;
mod path;
mod profiles;

use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use axum::{Router, middleware};
use http::{Method, Uri};

use crate::problem::Problem;
use crate::{ApiState, access, document};

/// The whole API, guarded.
pub fn router(state: ApiState) -> Router {
    let guard = middleware::from_fn_with_state(state.access.clone(), access::guard);
    Router::new()
        .route("/healthz", get(daemon::healthz))
        .route("/readyz", get(daemon::readyz))
        .route("/metrics", get(daemon::metrics))
        .route("/ca.pem", get(daemon::ca_pem))
        .route("/proxy.pac", get(daemon::proxy_pac))
        .route("/v1/profiles", get(profiles::list))
        .route(
            "/v1/profiles/{name}",
            get(profiles::show)
                .put(profiles::put)
                .delete(profiles::delete),
        )
        .route(
            "/v1/chaos",
            get(chaos::show_default)
                .put(chaos::put_default)
                .delete(chaos::end_default),
        )
        .route("/v1/scopes", get(chaos::list))
        .route(
            "/v1/scopes/{scope}/chaos",
            get(chaos::show).put(chaos::put).delete(chaos::end),
        )
        .route("/v1/exchanges", get(exchanges::list))
        .route("/v1/exchanges/{id}", get(exchanges::show))
        .route("/v1/events", get(events::stream))
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_this_method)
        .layer(DefaultBodyLimit::max(document::MOST))
        .layer(guard)
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
