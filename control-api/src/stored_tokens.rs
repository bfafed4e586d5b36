//! Tokens that were created by API: in the store, and in memory for lookups.
//!
//! A token is valid once it is written, until its revocation is written.
//! [`StoredProfiles::follow`](crate::StoredProfiles::follow) applies changes of other daemons at once.

use std::sync::Arc;

use crate::access::{Access, Caller, Token};
use crate::credential::{Digest, TokenRole, new_secret};
use crate::problem::ApiProblem;
use crate::store::{DEFAULT_WORKSPACE, Store, StoreError, StoredToken};

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
pub(crate) struct NewToken {
    pub(crate) workspace: String,
    pub(crate) name: String,
    pub(crate) role: TokenRole,
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
        self.read_stored().await.map(drop)
    }

    async fn read_stored(&self) -> Result<Vec<StoredToken>, StoreError> {
        let stored = self.store.tokens().await?;
        self.access.store(stored.clone());
        Ok(stored)
    }

    /// Creates a token, at `at` (milliseconds since 1970). Returns it with its secret, which is shown only this once.
    pub(crate) async fn create(
        &self,
        new: NewToken,
        at: u64,
        caller: &Caller,
    ) -> Result<(StoredToken, String), ApiProblem> {
        let _turn = self.turn.lock().await;
        let mut stored = self.read_stored().await?;
        // Of clients admitted without a token, only one may create the first token.
        check_caller(caller)?;
        let taken = |name: &str| {
            ApiProblem::conflict(format!(
                "there is a token `{name}`; revoke it first, or use another name"
            ))
        };
        let all = self.access.tokens();
        if all
            .iter()
            .any(|token| token.is_named(&new.workspace, &new.name))
        {
            return Err(taken(&new.name));
        }
        if all.is_empty() && (new.role != TokenRole::Admin || new.workspace != DEFAULT_WORKSPACE) {
            let detail = "the first token must have the role admin and no workspace: from then on only an admin \
                          creates and revokes tokens";
            return Err(ApiProblem::invalid_at("/role", detail));
        }
        if stored.len() >= MOST {
            return Err(ApiProblem::conflict(format!(
                "there are {MOST} tokens; revoke some first"
            )));
        }
        let secret = new_secret().map_err(|error| ApiProblem::not_ready(error.to_string()))?;
        let created = StoredToken {
            workspace: new.workspace,
            name: new.name,
            role: new.role,
            digest: Digest::of(&secret),
            created_at: at,
        };
        caller.changed(None, Some(&describe(&created)), describe(&created));
        let entry = caller.entry(at);
        if !self.store.add_token(&created, entry.as_ref()).await? {
            return Err(taken(&created.name));
        }
        caller.set_written();
        stored.push(created.clone());
        self.access.store(stored);
        Ok((created, secret))
    }

    /// Revokes a token, at `at` (milliseconds since 1970); its open streams end.
    pub(crate) async fn revoke(
        &self,
        workspace: &str,
        name: &str,
        at: u64,
        caller: &Caller,
    ) -> Result<(), ApiProblem> {
        let _turn = self.turn.lock().await;
        let mut stored = self.read_stored().await?;
        // If two admins revoke each other at once, one stays.
        check_caller(caller)?;
        let unknown = || ApiProblem::not_found(format!("there is no token `{name}`"));
        let is_it = |token: &StoredToken| token.workspace == workspace && token.name == name;
        let Some(token) = stored.iter().find(|token| is_it(token)) else {
            let configured = self.access.tokens();
            if configured
                .iter()
                .any(|token| token.is_named(workspace, name))
            {
                return Err(ApiProblem::conflict(format!(
                    "the token `{name}` is in the configuration; remove it from `api.tokens` there"
                )));
            }
            return Err(unknown());
        };
        let creates_tokens = token.role == TokenRole::Admin && workspace == DEFAULT_WORKSPACE;
        if creates_tokens && self.locks_out(&token.digest) {
            return Err(ApiProblem::conflict(format!(
                "`{name}` is the last token with the role admin in the default workspace, and no other could create \
                 one; create another first"
            )));
        }
        caller.changed(Some(&describe(token)), None, describe(token));
        let entry = caller.entry(at);
        let revoked = self.store.revoke_token(workspace, name, at, entry.as_ref());
        let revoked = revoked.await?;
        stored.retain(|token| !is_it(token));
        self.access.store(stored);
        if !revoked {
            return Err(unknown());
        }
        caller.set_written();
        Ok(())
    }

    /// Whether no client could create tokens without this one. Without any token every local client can, unless
    /// other machines reach the API.
    fn locks_out(&self, digest: &Digest) -> bool {
        let all = self.access.tokens();
        let mut others = all.iter().filter(|token| !token.has(digest)).peekable();
        let is_only = others.peek().is_none();
        let creates_tokens = |token: &Arc<Token>| {
            token.role() == TokenRole::Admin && token.workspace() == DEFAULT_WORKSPACE
        };
        let is_last_admin = !others.any(creates_tokens);
        is_last_admin && (!is_only || self.access.is_exposed())
    }
}

fn check_caller(caller: &Caller) -> Result<(), ApiProblem> {
    if caller.has_ended() {
        return Err(ApiProblem::unauthenticated(
            "a token is now required, or yours was revoked; send the request again with a valid one",
        ));
    }
    Ok(())
}

/// A token's entry in the audit log, without the secret.
fn describe(token: &StoredToken) -> String {
    let StoredToken {
        workspace,
        name,
        role,
        ..
    } = token;
    format!("token {name}, {}, of workspace {workspace}", role.as_str())
}
