//! Login: a token becomes a session.

use axum::response::IntoResponse as _;
use http::StatusCode;
use maud::html;
use serde_json::Value;

use crate::api::ApiError;
use crate::layout;
use crate::visit::{PageResult, Visit, fragment, see_other};

fn form(visit: &Visit, error: Option<&ApiError>) -> maud::Markup {
    layout::bare(
        "Log in",
        &html! {
            @if let Some(error) = error { (layout::problem(error)) }
            form.stacked method="post" {
                (layout::csrf(visit))
                label for="token" { "Token" }
                input #token name="token" type="password" required autocomplete="current-password" autofocus
                    spellcheck="false" aria-describedby="where";
                p #where.soft {
                    "An admin creates tokens with " code { "squall token create NAME --role operator" }
                    "; the configuration has others under " code { "api.tokens" } "."
                }
                button { "Log in" }
            }
        },
    )
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    match visit.api.get::<Value>("/v1/caller").await {
        Ok(_) => Ok(see_other("/live")),
        // Requests without a token share one limit, which says nothing about this visitor's token.
        Err(error) if matches!(error.status, 401 | 429) => Ok(fragment(form(&visit, None))),
        Err(error) => Err(error),
    }
}

pub(crate) async fn log_in(visit: Visit) -> PageResult {
    let token = visit.field("token");
    let api = visit.api_with(token);
    match api.get::<Value>("/v1/caller").await {
        Ok(_) => visit.log_in(token),
        Err(error) => {
            let page = fragment(form(&visit, Some(&error)));
            let status = match error.status() {
                // 401 would need a challenge.
                StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
                status => status,
            };
            Ok((status, page).into_response())
        }
    }
}

pub(crate) async fn log_out(visit: Visit) -> PageResult {
    visit.log_out();
    Ok(see_other("/login"))
}
