//! Names in paths, checked when they are parsed.

use axum::extract::{FromRequestParts, MatchedPath, Path};
use http::request::Parts;

use crate::access::Caller;
use crate::problem::ApiProblem;
use crate::state::ApiState;
use crate::store::DocumentKind;

/// The scope in a path: 1 to 128 characters of `a-z A-Z 0-9 . _ -`, as in the proxy. A path without one means the
/// caller's default scope. Scopes of other workspaces do not exist for the caller.
#[derive(Debug)]
pub(super) struct Scope(pub(super) String);

/// Any other name or id: a text that is not empty. [`check_name`] checks the names of documents that are put.
#[derive(Debug)]
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiProblem> {
        let path = Path::from_request_parts(parts, state).await;
        let Path(name) = path.map_err(|rejection| ApiProblem::malformed(rejection.body_text()))?;
        Ok(Self(name))
    }
}

impl FromRequestParts<ApiState> for Scope {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiProblem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let path = parts.extensions.get::<MatchedPath>();
        if !path.is_some_and(|path| path.as_str().contains("{scope}")) {
            return Ok(Self(caller.default_scope().to_owned()));
        }
        let Name(name) = Name::from_request_parts(parts, state).await?;
        if squall_proxy::is_scope_name(&name) {
            check_seen(&caller, &name)?;
            return Ok(Self(name));
        }
        let name: String = name.chars().take(40).collect();
        Err(ApiProblem::malformed(format!(
            "`{name}` cannot be a scope; a scope is 1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` \
             and `-`, the first no `.`, and no key"
        )))
    }
}

/// A 404 for a scope of another workspace.
pub(super) fn check_seen(caller: &Caller, scope: &str) -> Result<(), ApiProblem> {
    if caller.scopes().hold(scope) {
        return Ok(());
    }
    let workspace = caller.workspace();
    let others = format!("; those of the workspace are `{workspace}` and `{workspace}.NAME`");
    let others = Some(others).filter(|_| !caller.is_of_default_workspace());
    let others = others.unwrap_or_default();
    Err(ApiProblem::not_found(format!(
        "there is no scope `{scope}`{others}"
    )))
}

/// The name of a document that is put must be usable in files and commands. `what` is `profile`, `suite`, ….
pub(super) fn check_name(what: &str, name: &str) -> Result<(), ApiProblem> {
    let fits = (1..=64).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits {
        return Ok(());
    }
    let detail = format!(
        "a {what}'s name is 1 to 64 characters of a-z, A-Z, 0-9, `.`, `_` and `-`, the first no `.` and no `-`"
    );
    Err(ApiProblem::invalid_at("/name", detail))
}

/// A profile's `name` and a replay session's `id` must match the path, if the document has one. The `name` of a
/// suite or a contract is a free title for runs and reports.
pub(super) fn check_called(
    kind: DocumentKind,
    name: &str,
    called: Option<&str>,
) -> Result<(), ApiProblem> {
    let member = match kind {
        DocumentKind::Profile => "name",
        DocumentKind::Replay => "id",
        DocumentKind::Suite | DocumentKind::Contract => return Ok(()),
    };
    let Some(called) = called.filter(|called| *called != name) else {
        return Ok(());
    };
    let called: String = called.chars().take(64).collect();
    let what = kind.as_str();
    let detail = format!(
        "the document calls the {what} `{called}`, the path `{name}`; write one of them in both"
    );
    Err(ApiProblem::invalid_at(format!("/{member}"), detail))
}
