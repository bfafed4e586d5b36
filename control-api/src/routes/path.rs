//! Names in paths, checked at the door.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use crate::problem::{Detail, Problem};
use crate::store::DocumentKind;

/// A scope in a path: 1 to 128 characters of `a-z A-Z 0-9 . _ -`, as the proxy takes them.
#[derive(Debug)]
pub(super) struct Scope(pub(super) String);

/// A profile in a path: any non-empty text; the library knows which names there are.
#[derive(Debug)]
pub(super) struct ProfileName(pub(super) String);

/// A suite or a contract in a path: any non-empty text; one that is put is [checked](check_name).
#[derive(Debug)]
pub(super) struct DocumentName(pub(super) String);

/// A run in a path.
#[derive(Debug)]
pub(super) struct RunName(pub(super) String);

/// A token in a path, by its name.
#[derive(Debug)]
pub(super) struct TokenName(pub(super) String);

/// A recording in a path, by its id.
#[derive(Debug)]
pub(super) struct RecordingName(pub(super) String);

/// An exchange in a path.
#[derive(Debug)]
pub(super) struct ExchangeName(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = segment(parts, state).await?;
        if squall_proxy::is_scope_name(&name) {
            return Ok(Self(name));
        }
        let name: String = name.chars().take(40).collect();
        Err(Problem::malformed(format!(
            "`{name}` cannot be a scope; a scope is 1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` \
             and `-`, the first no `.`, and no key"
        )))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ProfileName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(parts, state).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for DocumentName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(parts, state).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RunName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(parts, state).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TokenName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(parts, state).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RecordingName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(parts, state).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ExchangeName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(parts, state).await.map(Self)
    }
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

async fn segment<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    let Path(segment) = Path::from_request_parts(parts, state)
        .await
        .map_err(|rejection| Problem::malformed(rejection.body_text()))?;
    Ok(segment)
}
