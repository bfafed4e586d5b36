//! The dashboard: pages for people, served beside the control API.
//!
//! A page calls the public API in this process, with its visitor's token, and writes HTML. It has no other source of
//! data, so roles, workspaces, quotas and the audit log hold as for any client.
//!
//! ```text
//! request ─▶ gate: session, CSRF, caller ─▶ page ─▶ ApiClient ─▶ control API
//!                                            └────▶ layout ─▶ HTML
//! ```
//!
//! A page is a file in `pages`, its routes in [`router`], and a line in `layout::NAV`.

mod api;
mod assets;
mod gate;
mod in_force;
mod layout;
mod pages;
mod session;
mod text;
mod visit;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use http::HeaderMap;
use http::header::ACCEPT;
use tokio::runtime::Handle;
use tower::ServiceExt as _;

use self::gate::Gate;
use self::pages::{
    chaos, connect, exchange, live, login, profiles, recordings, run, runs, stop, timeline, trend,
};
use self::session::Sessions;

/// Adds the dashboard to `api`, which still answers everything else. Pages are written by the runtime `work`.
pub fn router(api: Router, work: Handle) -> Router {
    let Ok(sessions) = Sessions::new() else {
        tracing::error!("there is no dashboard: the system gives no random bits");
        return api;
    };
    let gate = Gate::new(api.clone(), Arc::new(sessions), work);
    // Its thread accepts connections and ends chaos; nothing else runs there.
    let urgent = Router::new()
        .route("/stop", post(stop::stop))
        .route("/chaos/stop", post(chaos::stop))
        .layer(middleware::from_fn_with_state(gate.clone(), gate::urgent));
    let open = Router::new()
        .route("/login", get(login::show).post(login::log_in))
        .layer(middleware::from_fn_with_state(gate.clone(), gate::urgent));
    let pages = Router::new()
        .route("/live", get(live::show))
        .route("/live/rows", get(live::rows))
        .route("/live/stream", get(live::stream))
        .route("/live/{id}", get(exchange::show))
        .route("/live/{id}/recorded", get(exchange::recorded))
        .route("/live/record", post(exchange::record))
        .route("/chaos", get(chaos::show).post(chaos::switch))
        .route("/chaos/scopes", get(chaos::table_part))
        .route("/chaos/figures", get(chaos::figures_stream))
        .route("/profiles", get(profiles::list))
        .route("/profiles/{name}", get(profiles::show).post(profiles::act))
        .route("/connect", get(connect::show))
        .route("/connect/clients", get(connect::list))
        .route("/runs", get(runs::show).post(runs::start))
        .route("/runs/compare", get(runs::compare))
        .route("/runs/trend", get(trend::show))
        .route("/runs/{id}", get(run::show))
        .route("/runs/{id}/stream", get(run::stream))
        .route("/runs/{id}/report", get(run::report))
        .route("/runs/{id}/{change}", post(run::change))
        .route("/recordings", get(recordings::show).post(recordings::begin))
        .route("/recordings/stop", post(recordings::stop))
        .route("/recordings/play", post(recordings::play))
        .route("/recordings/tapes/stop", post(recordings::stop_tape))
        .route("/recordings/{id}", get(timeline::recorded))
        .route("/replays/{id}", get(timeline::stored))
        .route("/status", get(stop::status))
        .route("/logout", post(login::log_out))
        .layer(middleware::from_fn_with_state(gate.clone(), gate::callers));
    let mut router = urgent.merge(open).merge(pages).route("/", get(home));
    for asset in assets::all() {
        router = router.route(
            &asset.path,
            get(async move |headers: HeaderMap| assets::serve(asset, &headers)),
        );
    }
    router
        .method_not_allowed_fallback(elsewhere)
        .fallback(elsewhere)
        .with_state(gate)
}

/// A person's browser is led to the first page.
async fn home(state: State<Gate>, request: Request) -> Response {
    let accepts = request.headers().get(ACCEPT);
    let accepts = accepts.and_then(|value| value.to_str().ok());
    if accepts.is_some_and(|accepts| accepts.contains("text/html")) {
        return Redirect::to("/live").into_response();
    }
    elsewhere(state, request).await
}

/// What is not the dashboard's is the API's.
async fn elsewhere(State(gate): State<Gate>, request: Request) -> Response {
    let answered = gate.api.oneshot(request).await;
    answered.unwrap_or_else(|never| match never {})
}
