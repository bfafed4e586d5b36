//! Who calls, and what is theirs.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Serialize;
use squall_journal::scopes::{Scopes, Workspaces};
use squall_proxy::chaos::DEFAULT_SCOPE;
use tokio_util::sync::CancellationToken;

use super::Token;
use crate::audit::Call;
use crate::problem::Problem;
use crate::store::DEFAULT_WORKSPACE;

/// Who calls.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// `None` where no token is asked for.
    pub(super) token: Option<Arc<Token>>,
    /// All workspaces but the default one.
    pub(super) workspaces: Arc<Workspaces>,
    /// Cancelled when what is still open is to end.
    pub(super) ended: CancellationToken,
    /// What it is about to change; `None` for a request that changes nothing.
    pub(super) call: Option<Arc<Call>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::internal("nobody has checked who calls"))
    }
}

impl Caller {
    /// What it is about to change, for the audit log; `None` for a request that changes nothing.
    pub(crate) fn call(&self) -> Option<&Arc<Call>> {
        self.call.as_ref()
    }

    /// Says what it changed: what was there before and is there after, of which digests are kept.
    pub(crate) fn changed<T: Serialize>(
        &self,
        before: Option<&T>,
        after: Option<&T>,
        detail: impl Into<String>,
    ) {
        if let Some(call) = &self.call {
            call.changed(before, after, detail.into());
        }
    }

    /// Cancelled when the caller's token is revoked, or when one is asked for and it has none.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Whether it would not be let in any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Whose things it sees and changes; what belongs to another workspace is not there for it (404).
    pub(crate) fn workspace(&self) -> &str {
        self.token
            .as_ref()
            .map_or(DEFAULT_WORKSPACE, |token| token.workspace())
    }

    /// Whether it is of the workspace of everybody who has no other, which administers the rest.
    pub(crate) fn is_of_default_workspace(&self) -> bool {
        self.workspace() == DEFAULT_WORKSPACE
    }

    /// The scopes that it sees and changes.
    pub(crate) fn scopes(&self) -> Scopes {
        match self.workspace() {
            DEFAULT_WORKSPACE => Scopes::OfNone(Arc::clone(&self.workspaces)),
            workspace => Scopes::Of(workspace.to_owned()),
        }
    }

    /// The scope that is its workspace's default one.
    pub(crate) fn default_scope(&self) -> &str {
        match self.workspace() {
            DEFAULT_WORKSPACE => DEFAULT_SCOPE,
            workspace => workspace,
        }
    }

    /// Who it is, for what is kept: a token of the same name that is made after this one is another.
    pub(crate) fn identity(&self) -> String {
        let since = self.token.as_ref().and_then(|token| token.created_at());
        format!("{} {}", self.name(), since.unwrap_or_default())
    }

    /// The name of its token; `None` where none is asked for.
    pub(crate) fn token_name(&self) -> Option<&str> {
        self.token.as_deref().map(Token::name)
    }

    /// Who it is, for the log.
    pub(crate) fn name(&self) -> &str {
        self.token.as_ref().map_or("-", |token| token.name())
    }
}
