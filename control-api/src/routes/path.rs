//! Names in paths, checked when they are read.

use axum::extract::{FromRequestParts, MatchedPath, Path};
use http::request::Parts;

use crate::access::Caller;
use crate::problem::{Detail, Problem};
use crate::state::ApiState;
use crate::store::DocumentKind;

/// The scope in a path, 1 to 128 characters of `a-z A-Z 0-9 . _ -`, as the proxy takes them; the caller's default
/// one in a path without any. One of another workspace is not there.
#[derive(Debug)]
pub(super) struct Scope(pub(super) String);

/// The name or the id of anything else: any text that is not empty. What is put is [checked](check_name).
#[derive(Debug)]
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        let Path(name) = path.map_err(|rejection| Problem::malformed(rejection.body_text()))?;
        Ok(Self(name))
    }
}

impl FromRequestParts<ApiState> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
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
        Err(Problem::malformed(format!(
            "`{name}` cannot be a scope; a scope is 1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` \
             and `-`, the first no `.`, and no key"
        )))
    }
}

/// A scope of another workspace is not there.
pub(super) fn check_seen(caller: &Caller, scope: &str) -> Result<(), Problem> {
    if caller.scopes().hold(scope) {
        return Ok(());
    }
    let workspace = caller.workspace();
    let others = format!("; those of the workspace are `{workspace}` and `{workspace}.NAME`");
    let others = Some(others).filter(|_| !caller.is_of_default_workspace());
    let others = others.unwrap_or_default();
    Err(Problem::not_found(format!(
        "there is no scope `{scope}`{others}"
    )))
}

/// What is put must have a name that files and commands can write. `what` is `profile`, `suite`, ….
pub(super) fn check_name(what: &str, name: &str) -> Result<(), Problem> {
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
    Err(Problem::invalid(vec![Detail::at("/name", detail)]))
}

/// What is put must be called in the document as it is in the path, where the document says what it is
/// called: a profile by its `name`, a replay session by its `id`. The `name` of a suite and of a contract is
/// a title, which runs and reports show, in any words.
pub(super) fn check_called(
    kind: DocumentKind,
    name: &str,
    called: Option<&str>,
) -> Result<(), Problem> {
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
    Err(Problem::invalid(vec![Detail::at(
        format!("/{member}"),
        detail,
    )]))
}
