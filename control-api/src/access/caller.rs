//! The caller of a request, and its workspace.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Serialize;
use squall_journal::scopes::{Scopes, Workspaces};
use squall_proxy::chaos::DEFAULT_SCOPE;
use tokio_util::sync::CancellationToken;

use super::{Token, TokenRole};
use crate::audit::{AuditEntry, AuditedCall};
use crate::problem::ApiProblem;
use crate::store::DEFAULT_WORKSPACE;

/// The caller of a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// `None` when no token is required.
    pub(super) token: Option<Arc<Token>>,
    /// All workspaces but the default one.
    pub(super) workspaces: Arc<Workspaces>,
    /// Cancelled when the caller's open streams must end.
    pub(super) ended: CancellationToken,
    /// The change that it is about to make; `None` for a request that changes nothing.
    pub(super) call: Option<Arc<AuditedCall>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiProblem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiProblem::internal("the caller was not checked"))
    }
}

impl Caller {
    /// The audit entry of its change, for the change's transaction; `None` for a request that changes nothing. `at` is
    /// milliseconds since 1970.
    pub(crate) fn entry(&self, at: u64) -> Option<AuditEntry> {
        self.call.as_ref().map(|call| call.done(at))
    }

    /// The entry of its change is in the store.
    pub(crate) fn set_written(&self) {
        if let Some(call) = &self.call {
            call.set_written();
        }
    }

    /// Records the state before and after its change; only digests are stored.
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

    /// Cancelled when the caller's token is revoked, or when a token becomes required and it has none.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Whether it would be rejected now.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Its role; without a token it may do everything.
    pub(crate) fn role(&self) -> TokenRole {
        let token = self.token.as_ref();
        token.map_or(TokenRole::Admin, |token| token.role())
    }

    /// Its workspace. Objects of other workspaces do not exist for it (404).
    pub(crate) fn workspace(&self) -> &str {
        self.token
            .as_ref()
            .map_or(DEFAULT_WORKSPACE, |token| token.workspace())
    }

    /// Whether it belongs to the default workspace, which administers the others.
    pub(crate) fn is_of_default_workspace(&self) -> bool {
        self.workspace() == DEFAULT_WORKSPACE
    }

    /// The scopes that it may see and change.
    pub(crate) fn scopes(&self) -> Scopes {
        match self.workspace() {
            DEFAULT_WORKSPACE => Scopes::OfNone(Arc::clone(&self.workspaces)),
            workspace => Scopes::Of(workspace.to_owned()),
        }
    }

    /// Its workspace's default scope.
    pub(crate) fn default_scope(&self) -> &str {
        match self.workspace() {
            DEFAULT_WORKSPACE => DEFAULT_SCOPE,
            workspace => workspace,
        }
    }

    /// Its identity, for stored records. A later token of the same name has another identity.
    pub(crate) fn identity(&self) -> String {
        let since = self.token.as_ref().and_then(|token| token.created_at());
        format!("{} {}", self.name(), since.unwrap_or_default())
    }

    /// The name of its token; `None` when no token is required.
    pub(crate) fn token_name(&self) -> Option<&str> {
        self.token.as_deref().map(Token::name)
    }

    /// Its name, for the log.
    pub(crate) fn name(&self) -> &str {
        self.token.as_ref().map_or("-", |token| token.name())
    }
}
