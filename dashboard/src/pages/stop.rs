//! The button at the top of every page that ends all chaos, and what is in force beside it.

use axum::response::IntoResponse as _;
use http::Method;
use maud::html;

use crate::in_force;
use crate::visit::{PageResult, Visit, fragment, see_other};

pub(crate) async fn status(visit: Visit) -> PageResult {
    Ok(fragment(in_force::summary(
        &in_force::read(&visit.api).await?,
    )))
}

/// Ends all chaos that the visitor may end, on request in all daemons of the fleet. It waits for nothing else.
pub(crate) async fn stop(visit: Visit) -> PageResult {
    let path = match visit.field("fleet") {
        "true" => "/v1/chaos?all=true&fleet=true",
        _ => "/v1/chaos?all=true",
    };
    visit.api.send(Method::DELETE, path, None).await?;
    if visit.is_partial {
        let ended = fragment(html! { span.tag { "No chaos" } });
        // The page reads again what is in force.
        return Ok(([("hx-trigger", "chaos")], ended).into_response());
    }
    Ok(see_other("/chaos"))
}
