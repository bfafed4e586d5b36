//! Tokens: create, list and revoke.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use squall_documents::Fields;
use squall_journal::timestamp;

use super::path::Name;
use crate::access::{Caller, TOKEN_NAMES, Token, TokenRole, is_token_name};
use crate::document::{RequestDocument, text};
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::DEFAULT_WORKSPACE;
use crate::stored_tokens::NewToken;
use crate::workspace::is_workspace_name;

/// A token without its secret.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TokenLine {
    /// Its name.
    name: String,
    /// Its role.
    #[schemars(with = "TokenRole")]
    role: &'static str,
    /// Its workspace.
    workspace: String,
    /// `config` or `api`.
    source: &'static str,
    /// When it was created, RFC 3339; `null` for a token of the configuration.
    created_at: Option<String>,
}

/// A token that was created, with its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MadeToken")]
pub(super) struct CreatedToken {
    #[serde(flatten)]
    line: TokenLine,
    /// The secret, which is shown only this once.
    token: String,
}

impl TokenLine {
    fn of(token: &Token) -> Self {
        let created_at = token.created_at();
        Self {
            name: token.name().to_owned(),
            role: token.role().as_str(),
            workspace: token.workspace().to_owned(),
            source: if created_at.is_some() {
                "api"
            } else {
                "config"
            },
            created_at: created_at.map(timestamp::rfc3339),
        }
    }
}

/// Tokens by name: those of the caller's workspace; the default workspace gets all.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ListPage<TokenLine>>, ApiProblem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let tokens = state.access.tokens();
    let seen = tokens.iter().filter(|token| {
        caller.is_of_default_workspace() || token.workspace() == caller.workspace()
    });
    let mut listed: Vec<_> = seen
        .map(|token| (key(token), TokenLine::of(token)))
        .collect();
    listed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let Json(page) = page::by_name(listed, |(key, _)| key, after.as_deref(), limit);
    Ok(Json(ListPage {
        items: page.items.into_iter().map(|(_, token)| token).collect(),
        next_cursor: page.next_cursor,
    }))
}

/// The unique key of a token in the list.
fn key(token: &Token) -> String {
    match token.workspace() {
        DEFAULT_WORKSPACE => token.name().to_owned(),
        other => format!("{}/{other}", token.name()),
    }
}

/// Creates a token. Only this response contains its secret.
pub(super) async fn create(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
    document: RequestDocument,
) -> Result<Response, ApiProblem> {
    params.finish()?;
    let new = document.fields(|fields| read(fields, caller.workspace()))?;
    if new.workspace != caller.workspace() && !caller.is_of_default_workspace() {
        return Err(ApiProblem::forbidden(format!(
            "only an admin of the default workspace creates tokens for others; this token is of `{}`",
            caller.workspace()
        )));
    }
    let at = state.recorder.unix_ms(Instant::now());
    let (token, secret) = state.tokens.create(new, at, &caller).await?;
    tracing::info!(
        token = token.name,
        role = token.role.as_str(),
        workspace = token.workspace,
        by = caller.name(),
        "token created"
    );
    let body = Json(CreatedToken {
        line: TokenLine {
            name: token.name,
            role: token.role.as_str(),
            workspace: token.workspace,
            source: "api",
            created_at: Some(timestamp::rfc3339(token.created_at)),
        },
        token: secret,
    });
    let unkept = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::CREATED, unkept, body).into_response())
}

/// Revokes a token, from the next request on.
pub(super) async fn revoke(
    State(state): State<ApiState>,
    caller: Caller,
    Name(name): Name,
    mut params: Params,
) -> Result<StatusCode, ApiProblem> {
    let workspace = params.take("workspace");
    params.finish()?;
    let workspace = workspace.unwrap_or_else(|| caller.workspace().to_owned());
    if workspace != caller.workspace() && !caller.is_of_default_workspace() {
        return Err(ApiProblem::not_found(format!("there is no token `{name}`")));
    }
    let at = state.recorder.unix_ms(Instant::now());
    state.tokens.revoke(&workspace, &name, at, &caller).await?;
    tracing::info!(token = name, workspace, by = caller.name(), "token revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// Reads `{name, role, workspace}`; `own` is the caller's workspace.
fn read(fields: &mut Fields<'_, '_>, own: &str) -> Option<NewToken> {
    fields.require("name", TOKEN_NAMES);
    fields.require("role", "viewer, operator or admin");
    let name = fields.field("name", "", text(TOKEN_NAMES, is_token_name));
    let role = fields.word("role", "", "role", TokenRole::NAMES);
    let workspaces = "1 to 64 characters of a-z, A-Z, 0-9, `_` and `-`";
    let workspace = fields.field("workspace", "", text(workspaces, is_workspace_name));
    Some(NewToken {
        workspace: workspace.unwrap_or_else(|| own.to_owned()),
        name: name?,
        role: role?,
    })
}
