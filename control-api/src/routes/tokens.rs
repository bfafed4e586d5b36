//! Tokens: made, listed, revoked.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use squall_journal::timestamp;

use super::path::TokenName;
use crate::ApiState;
use crate::access::{Caller, Role, TOKEN_NAMES, Token, is_token_name};
use crate::document::Document;
use crate::nearest::nearest;
use crate::openapi::Operation;
use crate::page::{self, Page};
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::store::DEFAULT_WORKSPACE;
use crate::stored_tokens::{NotMade, NotRevoked, Wish};
use crate::workspace::is_workspace_name;

const MEMBERS: [&str; 3] = ["name", "role", "workspace"];

/// What to make.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "says what `read` takes")]
pub(super) struct NewToken {
    /// Its name; no other token has it.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
    name: String,
    /// What it allows.
    role: Role,
    /// Whose it is; the caller's if absent.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    workspace: Option<String>,
}

/// A line of the list: everything but the secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TokenLine")]
pub(super) struct Listed {
    /// Its name.
    name: String,
    /// What it allows.
    #[schemars(with = "Role")]
    role: &'static str,
    /// Whose it is.
    workspace: String,
    /// `config` or `api`.
    source: &'static str,
    /// RFC 3339; `null` for the configuration's.
    created_at: Option<String>,
}

/// A token that was made, with its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MadeToken")]
struct MadeAnswer {
    #[serde(flatten)]
    line: Listed,
    /// The secret. It is shown this once.
    token: String,
}

impl Listed {
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

/// Tokens by name: those of the caller's workspace, to the default one's all.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    mut params: Params,
) -> Result<Json<Page<Listed>>, Problem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let tokens = state.access.tokens();
    let seen = tokens.iter().filter(|token| {
        caller.is_of_default_workspace() || token.workspace() == caller.workspace()
    });
    let mut listed: Vec<_> = seen.map(|token| (key(token), Listed::of(token))).collect();
    listed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let Json(page) = page::by_name(listed, |(key, _)| key, after.as_deref(), limit);
    Ok(Json(Page {
        items: page.items.into_iter().map(|(_, token)| token).collect(),
        next_cursor: page.next_cursor,
    }))
}

/// What a token is found by in the list: no two have the same.
fn key(token: &Token) -> String {
    match token.workspace() {
        DEFAULT_WORKSPACE => token.name().to_owned(),
        other => format!("{}/{other}", token.name()),
    }
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_tokens", "Tokens by name, without their secrets").pages::<Listed>("Tokens")
}

/// Makes a token. Its secret is in this answer and in no other.
pub(super) async fn create(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    params: Params,
    document: Document,
) -> Result<Response, Problem> {
    params.finish()?;
    let asked = read(&document.value()?).map_err(Problem::invalid)?;
    let workspace = asked
        .workspace
        .unwrap_or_else(|| caller.workspace().to_owned());
    if workspace != caller.workspace() && !caller.is_of_default_workspace() {
        return Err(Problem::forbidden(format!(
            "only an admin of the default workspace makes tokens for others; this token is of `{}`",
            caller.workspace()
        )));
    }
    let wish = Wish {
        workspace,
        name: asked.name,
        role: asked.role,
    };
    let at = state.recorder.unix_ms(Instant::now());
    let made = Arc::clone(&state.tokens)
        .make(wish, at, caller.clone())
        .await;
    let made = made.map_err(|error| match error {
        NotMade::NotAllowedAnyMore => Problem::unauthenticated(error.to_string()),
        NotMade::NameTaken(_) | NotMade::TooMany => Problem::conflict(error.to_string()),
        NotMade::FirstMustBeAdmin => Problem::invalid(vec![Detail::at("/role", error.to_string())]),
        NotMade::NoRandomness(_) => Problem::not_ready(error.to_string()),
        NotMade::Store(error) => Problem::store(&error),
    })?;
    let token = made.token;
    tracing::info!(
        token = token.name,
        role = token.role.as_str(),
        workspace = token.workspace,
        by = caller.name(),
        "token made"
    );
    let body = Json(MadeAnswer {
        line: Listed {
            name: token.name,
            role: token.role.as_str(),
            workspace: token.workspace,
            source: "api",
            created_at: Some(timestamp::rfc3339(token.created_at)),
        },
        token: made.secret,
    });
    let unkept = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::CREATED, unkept, body).into_response())
}

pub(super) fn create_operation() -> Operation {
    Operation::new(
        "create_token",
        "Makes a token; its secret is in this answer and in no other",
    )
    .takes::<NewToken>()
    .example(json!({ "name": "ci", "role": "operator" }))
    .answers::<MadeAnswer>(201, "The token, with its secret")
    .with("Cache-Control", "`no-store`")
    .problems([409])
    .asks_store()
}

/// Makes a token good for nothing, from the next request on.
pub(super) async fn revoke(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    TokenName(name): TokenName,
    mut params: Params,
) -> Result<StatusCode, Problem> {
    let workspace = params.take("workspace");
    params.finish()?;
    let workspace = workspace.unwrap_or_else(|| caller.workspace().to_owned());
    if workspace != caller.workspace() && !caller.is_of_default_workspace() {
        return Err(Problem::not_found(format!("there is no token `{name}`")));
    }
    let at = state.recorder.unix_ms(Instant::now());
    let revoked = Arc::clone(&state.tokens)
        .revoke(workspace.clone(), name.clone(), at, caller.clone())
        .await;
    revoked.map_err(|error| match error {
        NotRevoked::NotAllowedAnyMore => Problem::unauthenticated(error.to_string()),
        NotRevoked::Unknown(_) => Problem::not_found(error.to_string()),
        NotRevoked::Configured(_) | NotRevoked::LastAdmin(_) => {
            Problem::conflict(error.to_string())
        }
        NotRevoked::Store(error) => Problem::store(&error),
    })?;
    tracing::info!(token = name, workspace, by = caller.name(), "token revoked");
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn revoke_operation() -> Operation {
    Operation::new(
        "revoke_token",
        "Makes a token good for nothing, from the next request on",
    )
    .query::<String>("workspace", "Whose it is; the caller's if absent")
    .empty(204, "It is revoked")
    .problems([404, 409])
    .asks_store()
}

/// What a document asks for.
#[derive(Debug)]
struct Asked {
    name: String,
    role: Role,
    /// `None`: the caller's.
    workspace: Option<String>,
}

/// Reads `{name, role, workspace}`; everything that is wrong with it is said at once.
fn read(document: &Value) -> Result<Asked, Vec<Detail>> {
    let Value::Object(members) = document else {
        let detail =
            "the document must be an object, like {\"name\": \"ci\", \"role\": \"operator\"}";
        return Err(vec![Detail::at("", detail)]);
    };
    let mut errors = Vec::new();
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let name = text("name").filter(|name| is_token_name(name));
    if name.is_none() {
        let detail = format!("`name` must be {TOKEN_NAMES}");
        errors.push(Detail::at("/name", detail));
    }
    let role = text("role").and_then(Role::parse);
    if role.is_none() {
        errors.push(Detail::at(
            "/role",
            "`role` must be viewer, operator or admin",
        ));
    }
    let given = members.get("workspace").filter(|value| !value.is_null());
    let workspace = given.and_then(Value::as_str);
    if given.is_some() && !workspace.is_some_and(is_workspace_name) {
        errors.push(Detail::at(
            "/workspace",
            "`workspace` must be 1 to 64 characters of a-z, A-Z, 0-9, `_` and `-`",
        ));
    }
    errors.extend(members.keys().filter_map(|member| unknown(member)));
    match (name, role) {
        (Some(name), Some(role)) if errors.is_empty() => Ok(Asked {
            name: name.to_owned(),
            role,
            workspace: workspace.map(str::to_owned),
        }),
        _ => Err(errors),
    }
}

fn unknown(member: &str) -> Option<Detail> {
    if MEMBERS.contains(&member) {
        return None;
    }
    let shown: String = member.chars().take(40).collect();
    let detail = match nearest(member, MEMBERS) {
        Some(near) => format!("unknown field `{shown}`, did you mean `{near}`?"),
        None => format!("unknown field `{shown}`; there are {}", MEMBERS.join(", ")),
    };
    Some(Detail::at(format!("/{shown}"), detail))
}
