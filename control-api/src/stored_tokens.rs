//! Tokens that were created by API: in the store, and in memory for lookups.
//!
//! A token is valid once it is written, until its revocation is written.
//! [`StoredProfiles::follow`](crate::StoredProfiles::follow) applies changes of other daemons at once.

use std::sync::Arc;

use crate::access::{Access, Caller, Token};
use crate::credential::{Digest, NoRandomness, Role, new_secret};
use crate::store::{DEFAULT_WORKSPACE, Store, StoreError, StoredToken};
use crate::tasks;

/// Most tokens in a store: each request is compared with all of them.
const MOST: usize = 1000;

/// The tokens in one daemon's store.
#[derive(Debug)]
pub struct StoredTokens {
    store: Store,
    access: Arc<Access>,
    /// Serializes changes.
    turn: tokio::sync::Mutex<()>,
}

/// A token to create.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) workspace: String,
    pub(crate) name: String,
    pub(crate) role: Role,
}

/// A token that was created.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) token: StoredToken,
    /// Shown only this once.
    pub(crate) secret: String,
}

/// Why a token was not created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotMade {
    #[error("a token is asked for since, or yours is revoked; ask again with one that is good")]
    NotAllowedAnyMore,
    #[error("there is a token `{0}`; revoke it first, or take another name")]
    NameTaken(String),
    #[error(
        "the first token must have the role admin and no workspace: from then on only an admin makes and \
         revokes tokens"
    )]
    FirstMustBeAdmin,
    #[error("there are {MOST} tokens; revoke some first")]
    TooMany,
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a token was not revoked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRevoked {
    #[error("a token is asked for since, or yours is revoked; ask again with one that is good")]
    NotAllowedAnyMore,
    #[error("there is no token `{0}`")]
    Unknown(String),
    #[error("the token `{0}` is in the configuration; take it out of `api.tokens` there")]
    Configured(String),
    #[error(
        "`{0}` is the last token with the role admin in the default workspace, and nobody could make \
         another; make one first"
    )]
    LastAdmin(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StoredTokens {
    /// Reads the stored tokens into `access`.
    pub async fn load(store: Store, access: Arc<Access>) -> Result<Arc<Self>, StoreError> {
        let tokens = Self::over(store, access);
        tokens.refresh().await?;
        Ok(tokens)
    }

    /// Over a store without tokens.
    pub fn over(store: Store, access: Arc<Access>) -> Arc<Self> {
        Arc::new(Self {
            store,
            access,
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Reads what other daemons have written.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        self.read_news().await.map(drop)
    }

    async fn read_news(&self) -> Result<Vec<StoredToken>, StoreError> {
        let stored = self.store.tokens().await?;
        self.access.store(stored.clone());
        Ok(stored)
    }

    /// Creates a token, at `at` (milliseconds since 1970). It continues to its end even if the client
    /// disconnects.
    pub(crate) async fn make(
        self: Arc<Self>,
        wish: Wish,
        at: u64,
        caller: Caller,
    ) -> Result<Made, NotMade> {
        tasks::spawned(async move {
            let _turn = self.turn.lock().await;
            self.carry_out_make(wish, at, &caller).await
        })
        .await
    }

    async fn carry_out_make(&self, wish: Wish, at: u64, caller: &Caller) -> Result<Made, NotMade> {
        let mut stored = self.read_news().await?;
        // Of clients admitted without a token, only one may create the first token.
        if caller.has_ended() {
            return Err(NotMade::NotAllowedAnyMore);
        }
        let all = self.access.tokens();
        let Wish {
            workspace,
            name,
            role,
        } = wish;
        if all.iter().any(|token| token.is_named(&workspace, &name)) {
            return Err(NotMade::NameTaken(name));
        }
        if all.is_empty() && (role != Role::Admin || workspace != DEFAULT_WORKSPACE) {
            return Err(NotMade::FirstMustBeAdmin);
        }
        if stored.len() >= MOST {
            return Err(NotMade::TooMany);
        }
        let secret = new_secret()?;
        let token = StoredToken {
            workspace,
            name,
            role,
            digest: Digest::of(&secret),
            created_at: at,
        };
        caller.changed(None, Some(&told(&token)), told(&token));
        let entry = caller.call().map(|call| call.done(at));
        if !self.store.add_token_with(&token, entry.as_ref()).await? {
            return Err(NotMade::NameTaken(token.name));
        }
        if let Some(call) = caller.call() {
            call.set_written();
        }
        stored.push(token.clone());
        self.access.store(stored);
        Ok(Made { token, secret })
    }

    /// Revokes a token, at `at` (milliseconds since 1970); its open streams end. It continues to its end even if
    /// the client disconnects.
    pub(crate) async fn revoke(
        self: Arc<Self>,
        workspace: String,
        name: String,
        at: u64,
        caller: Caller,
    ) -> Result<(), NotRevoked> {
        tasks::spawned(async move {
            let _turn = self.turn.lock().await;
            self.carry_out_revoke(&workspace, name, at, &caller).await
        })
        .await
    }

    async fn carry_out_revoke(
        &self,
        workspace: &str,
        name: String,
        at: u64,
        caller: &Caller,
    ) -> Result<(), NotRevoked> {
        let mut stored = self.read_news().await?;
        // If two admins revoke each other at once, one stays.
        if caller.has_ended() {
            return Err(NotRevoked::NotAllowedAnyMore);
        }
        let is_it = |token: &StoredToken| token.workspace == workspace && token.name == name;
        let Some(token) = stored.iter().find(|token| is_it(token)) else {
            let configured = self.access.tokens();
            let is_configured = |token: &Arc<Token>| token.is_named(workspace, &name);
            return Err(if configured.iter().any(is_configured) {
                NotRevoked::Configured(name)
            } else {
                NotRevoked::Unknown(name)
            });
        };
        let makes_tokens = token.role == Role::Admin && workspace == DEFAULT_WORKSPACE;
        if makes_tokens && self.locks_out(&token.digest) {
            return Err(NotRevoked::LastAdmin(name));
        }
        caller.changed(Some(&told(token)), None, told(token));
        let entry = caller.call().map(|call| call.done(at));
        let revoking = self
            .store
            .revoke_token_with(workspace, &name, at, entry.as_ref());
        let revoked = revoking.await?;
        if let Some(call) = caller.call().filter(|_| revoked) {
            call.set_written();
        }
        stored.retain(|token| !is_it(token));
        self.access.store(stored);
        if revoked {
            Ok(())
        } else {
            Err(NotRevoked::Unknown(name))
        }
    }

    /// Whether no client could create tokens without this one. Without any token every local client can, unless
    /// other machines reach the API.
    fn locks_out(&self, digest: &Digest) -> bool {
        let all = self.access.tokens();
        let mut others = all.iter().filter(|token| !token.has(digest)).peekable();
        let is_only = others.peek().is_none();
        let makes_tokens = |token: &Arc<Token>| {
            token.role() == Role::Admin && token.workspace() == DEFAULT_WORKSPACE
        };
        let is_last_admin = !others.any(makes_tokens);
        is_last_admin && (!is_only || self.access.is_exposed())
    }
}

/// A token's entry in the audit log, without the secret.
fn told(token: &StoredToken) -> String {
    let StoredToken {
        workspace,
        name,
        role,
        ..
    } = token;
    format!("token {name}, {}, of workspace {workspace}", role.as_str())
}
