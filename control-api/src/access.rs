//! Access control.
//!
//! Without tokens every client that reaches the API may do everything. The API then listens on loopback only, and
//! web pages must not reach it through a browser: a `Host` other than this machine (DNS rebinding) and a foreign
//! `Origin` are rejected. With tokens every route requires one with the role in the [table of
//! routes](crate::router). Routes that reveal nothing and change nothing are exempt.
//!
//! Tokens are looked up in memory, never in the store, so that chaos can be ended while the store is away. They
//! come from the configuration, and from the store through [`StoredTokens`](crate::StoredTokens).

mod caller;
mod guard;
mod origin;
mod rate;
mod token;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Uri};
use squall_journal::scopes::Workspaces;
use squall_proxy::chaos::Chaos;
use tokio_util::sync::CancellationToken;

pub(crate) use self::caller::Caller;
pub use self::guard::ByPage;
pub(crate) use self::guard::{Guard, guard};
pub use self::origin::OF_PROXIES;
use self::origin::{host, refuse_foreign_host, refuse_foreign_origin, refuse_proxied};
use self::rate::RateLimiter;
pub use self::rate::{AT_ONCE, FAILURES_AT_ONCE, PER_SECOND};
pub use self::token::{TOKEN_NAMES, Token, is_token_name};
pub use crate::credential::{Digest, NoRandomness, TokenRole, random_hex};
use crate::lock;
use crate::problem::ApiProblem;
use crate::store::{DEFAULT_WORKSPACE, StoredToken};

/// What a route requires of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it reveals no secret and changes nothing.
    Nothing,
    /// This role, or one above it.
    Role(TokenRole),
    /// An operator, without a rate limit: requests that end chaos are never rejected as too many.
    EndsChaos,
}

impl Needs {
    /// The role that it requires.
    pub(crate) fn role(self) -> Option<TokenRole> {
        match self {
            Self::Nothing => None,
            Self::Role(role) => Some(role),
            Self::EndsChaos => Some(TokenRole::Operator),
        }
    }
}

/// A route, as the guard sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccessRule {
    pub(crate) method: &'static Method,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
}

/// Access control. Changes take effect with the next request.
#[derive(Debug)]
pub struct Access {
    tokens: ArcSwap<TokenSet>,
    /// Serializes changes.
    turn: Mutex<()>,
    /// Is informed of the present workspaces.
    chaos: OnceLock<Arc<Chaos>>,
    /// Limits requests without a valid token, from all addresses. Valid tokens are admitted before this check, so
    /// that other clients cannot block them.
    failures: RateLimiter,
    /// The workspaces of all tokens, without the default one.
    workspaces: Arc<Workspaces>,
}

/// The valid tokens at one moment, and whether a token is required.
#[derive(Debug, Clone, Default)]
struct TokenSet {
    /// Whether other machines reach the API: then a token is required, even when none exists.
    exposed: bool,
    configured: Vec<Arc<Token>>,
    stored: Vec<Arc<Token>>,
    /// Cancelled when clients that were admitted without a token need one.
    closed: CancellationToken,
}

impl TokenSet {
    fn is_open(&self) -> bool {
        !self.exposed && self.all().next().is_none()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Token>> {
        self.configured.iter().chain(&self.stored)
    }

    fn bearer(&self, headers: &HeaderMap) -> Result<Arc<Token>, ApiProblem> {
        let Some(given) = headers.get(AUTHORIZATION) else {
            return Err(ApiProblem::unauthenticated(
                "send a token: `Authorization: Bearer …`; an admin creates one with `squall token create`, \
                 and the config may have some under `api.tokens`",
            ));
        };
        let secret = given.to_str().ok().and_then(|value| value.split_once(' '));
        let Some((_, secret)) = secret.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(ApiProblem::unauthenticated(
                "write `Authorization: Bearer …`",
            ));
        };
        let given = Digest::of(secret.trim());
        // Compares every token, so that the time does not depend on which one matches.
        let mut found = None;
        for token in self.all() {
            if token.digest == given {
                found = Some(Arc::clone(token));
            }
        }
        found.ok_or_else(|| ApiProblem::unauthenticated("this token is unknown, or was revoked"))
    }
}

/// The new tokens. One that existed before keeps its state; the open streams of one that is missing end.
fn replaced(former: &[Arc<Token>], new: impl IntoIterator<Item = Token>) -> Vec<Arc<Token>> {
    let new = new.into_iter().map(|token| {
        let same = former.iter().find(|former| former.is(&token));
        same.cloned().unwrap_or_else(|| Arc::new(token))
    });
    let tokens: Vec<Arc<Token>> = new.collect();
    for gone in former {
        if !tokens.iter().any(|token| Arc::ptr_eq(token, gone)) {
            gone.ended.cancel();
        }
    }
    tokens
}

impl Access {
    /// With the configuration's tokens; without any, every client has access.
    pub fn new(configured: Vec<Token>) -> Self {
        let access = Self {
            tokens: ArcSwap::default(),
            turn: Mutex::default(),
            chaos: OnceLock::new(),
            failures: RateLimiter::of_failures(),
            workspaces: Arc::default(),
        };
        access.configure(configured);
        access
    }

    /// Replaces the configuration's tokens after a reload.
    pub fn configure(&self, configured: Vec<Token>) {
        self.change(|tokens| tokens.configured = replaced(&tokens.configured, configured));
    }

    /// Replaces the store's tokens.
    pub(crate) fn store(&self, stored: Vec<StoredToken>) {
        let stored = stored.into_iter().map(Token::from);
        self.change(|tokens| tokens.stored = replaced(&tokens.stored, stored));
    }

    /// Requires a token from now on, even if none exists: other machines reach the API.
    pub(crate) fn expose(&self) {
        self.change(|tokens| tokens.exposed = true);
    }

    fn change(&self, change: impl FnOnce(&mut TokenSet)) {
        let _turn = lock(&self.turn);
        let mut tokens = TokenSet::clone(&self.tokens.load());
        let was_open = tokens.is_open();
        change(&mut tokens);
        let workspaces = tokens.all().map(|token| token.workspace());
        let workspaces = workspaces.filter(|name| *name != DEFAULT_WORKSPACE);
        let workspaces: BTreeSet<String> = workspaces.map(str::to_owned).collect();
        if *self.workspaces.names() != workspaces {
            self.workspaces.set(Arc::new(workspaces));
            if let Some(chaos) = self.chaos.get() {
                chaos.set_workspaces(self.workspaces.names());
            }
        }
        let closed = (was_open && !tokens.is_open()).then(|| std::mem::take(&mut tokens.closed));
        self.tokens.store(Arc::new(tokens));
        if let Some(closed) = closed {
            closed.cancel();
        }
    }

    /// Informs `chaos` of the present workspaces from now on; only the first call counts.
    pub(crate) fn connect(&self, chaos: &Arc<Chaos>) {
        let _turn = lock(&self.turn);
        if self.chaos.set(Arc::clone(chaos)).is_ok() {
            chaos.set_workspaces(self.workspaces.names());
        }
    }

    /// All workspaces but the default one, also those added later.
    pub(crate) fn workspaces(&self) -> Arc<Workspaces> {
        Arc::clone(&self.workspaces)
    }

    /// Whether every client that reaches the API may do everything.
    pub fn is_open(&self) -> bool {
        self.tokens.load().is_open()
    }

    /// Whether any token is the store's.
    pub fn has_stored(&self) -> bool {
        !self.tokens.load().stored.is_empty()
    }

    /// Whether other machines reach the API.
    pub(crate) fn is_exposed(&self) -> bool {
        self.tokens.load().exposed
    }

    /// The configuration's tokens, then the store's.
    pub(crate) fn tokens(&self) -> Vec<Arc<Token>> {
        self.tokens.load().all().cloned().collect()
    }

    /// Admits a request, or returns why not. `needs` is what its route requires; `None` when no route matches.
    fn check(
        &self,
        needs: Option<Needs>,
        uri: &Uri,
        headers: &HeaderMap,
        now: Instant,
    ) -> Result<Caller, ApiProblem> {
        let host = host(uri, headers)?;
        refuse_foreign_origin(host, headers)?;
        let tokens = self.tokens.load();
        if tokens.is_open() {
            refuse_foreign_host(host)?;
            refuse_proxied(headers)?;
        }
        let caller = |token: Option<Arc<Token>>, ended: &CancellationToken| Caller {
            token,
            workspaces: Arc::clone(&self.workspaces),
            ended: ended.clone(),
            call: None,
        };
        if tokens.is_open() || needs == Some(Needs::Nothing) {
            return Ok(caller(None, &tokens.closed));
        }
        let token = tokens.bearer(headers).map_err(|problem| {
            let admitted = self.failures.admit(now);
            admitted.map_or_else(too_often, |()| problem)
        })?;
        if needs != Some(Needs::EndsChaos)
            && let Err(wait) = token.rate.admit(now)
        {
            return Err(too_fast(wait));
        }
        if let Some(needed) = needs.and_then(Needs::role)
            && token.role < needed
        {
            return Err(ApiProblem::forbidden(format!(
                "the token `{}` has the role {}; this needs the role {}",
                token.name,
                token.role.as_str(),
                needed.as_str()
            )));
        }
        let ended = token.ended.clone();
        Ok(caller(Some(token), &ended))
    }
}

fn too_often(wait: Duration) -> ApiProblem {
    ApiProblem::too_many(
        "too many requests came without a valid token; wait as long as Retry-After says, and send a valid one",
        wait,
    )
}

fn too_fast(wait: Duration) -> ApiProblem {
    ApiProblem::too_many(
        format!(
            "a token allows {PER_SECOND} requests a second, and {AT_ONCE} at once after a pause; wait as long as \
             Retry-After says"
        ),
        wait,
    )
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};

    use super::*;

    const READ: Option<Needs> = Some(Needs::Role(TokenRole::Viewer));
    const WRITE: Option<Needs> = Some(Needs::Role(TokenRole::Operator));

    fn status(access: &Access, needs: Option<Needs>, path: &str, headers: &[(&str, &str)]) -> u16 {
        use axum::response::IntoResponse;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().expect("a name");
            map.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        let uri: Uri = path.parse().expect("a path");
        match access.check(needs, &uri, &map, Instant::now()) {
            Ok(_) => StatusCode::OK.as_u16(),
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    #[test]
    fn without_tokens_only_this_machine_is_served() {
        let open = Access::new(Vec::new());
        for (host, expected) in [
            ("127.0.0.1:7071", 200),
            ("127.9.9.9", 200),
            ("localhost:7071", 200),
            ("LOCALHOST", 200),
            ("[::1]:7071", 200),
            ("rebound.example:7071", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("192.168.1.4:7071", 403),
            ("0.0.0.0:7071", 403),
            ("", 403),
        ] {
            assert_eq!(
                status(&open, READ, "/healthz", &[("host", host)]),
                expected,
                "{host}"
            );
        }
        assert_eq!(status(&open, READ, "/healthz", &[]), 400);
        assert_eq!(
            status(
                &open,
                READ,
                "http://evil.example/healthz",
                &[("host", "localhost")]
            ),
            403
        );
    }

    #[test]
    fn without_tokens_no_proxy_is_served() {
        let tokens = Access::new(vec![Token::new("t", TokenRole::Admin, "secret")]);
        for (access, expected) in [(Access::new(Vec::new()), 403), (tokens, 200)] {
            for added in ["via", "forwarded", "x-forwarded-for", "proxy-connection"] {
                let headers = [
                    ("host", "127.0.0.1:7071"),
                    (added, "1.1 corp"),
                    ("authorization", "Bearer secret"),
                ];
                let got = status(&access, WRITE, "/v1/tokens", &headers);
                assert_eq!(got, expected, "{added}");
            }
        }
    }

    #[test]
    fn no_foreign_page_is_served_with_or_without_a_token() {
        let tokens = Access::new(vec![Token::new("t", TokenRole::Admin, "secret")]);
        for access in [Access::new(Vec::new()), tokens] {
            for (origin, expected) in [
                ("http://127.0.0.1:7071", 200),
                ("https://127.0.0.1:7071", 200),
                ("http://127.0.0.1:3000", 403),
                ("http://localhost:7071", 403),
                ("https://evil.example", 403),
                ("null", 403),
            ] {
                let headers = [
                    ("host", "127.0.0.1:7071"),
                    ("origin", origin),
                    ("authorization", "Bearer secret"),
                ];
                let got = status(&access, READ, "/v1/chaos", &headers);
                assert_eq!(got, expected, "{origin}");
            }
        }
    }

    #[test]
    fn a_token_allows_what_its_role_does() {
        let access = Access::new(vec![
            Token::new("v", TokenRole::Viewer, "see"),
            Token::new("o", TokenRole::Operator, "do"),
        ]);
        for (needs, authorization, expected) in [
            (READ, Some("Bearer see"), 200),
            (READ, Some("bearer do"), 200),
            (WRITE, Some("Bearer do"), 200),
            (WRITE, Some("Bearer see"), 403),
            (Some(Needs::EndsChaos), Some("Bearer see"), 403),
            (Some(Needs::EndsChaos), Some("Bearer do"), 200),
            (Some(Needs::Role(TokenRole::Admin)), Some("Bearer do"), 403),
            (READ, Some("Bearer no"), 401),
            (READ, Some("Basic see"), 401),
            (READ, Some("Bearer"), 401),
            (READ, None, 401),
            (None, None, 401),
            (None, Some("Bearer see"), 200),
            (Some(Needs::Nothing), None, 200),
        ] {
            let mut headers = vec![("host", "squall.example")];
            headers.extend(authorization.map(|value| ("authorization", value)));
            let got = status(&access, needs, "/", &headers);
            assert_eq!(got, expected, "{needs:?} {authorization:?}");
        }
    }

    #[test]
    fn an_exposed_api_without_tokens_rejects_all() {
        let access = Access::new(Vec::new());
        let here = [("host", "127.0.0.1:7071")];
        assert_eq!(status(&access, READ, "/", &here), 200);
        access.expose();
        assert_eq!(status(&access, READ, "/", &here), 401);
        assert_eq!(status(&access, Some(Needs::Nothing), "/", &here), 200);
    }

    #[test]
    fn a_remaining_token_keeps_its_rate_limit_and_a_removed_one_ends() {
        let token = |name: &str| Token::new(name, TokenRole::Viewer, name);
        let access = Access::new(vec![token("a"), token("b")]);
        let before = access.tokens();
        access.configure(vec![token("b"), token("c")]);
        let after = access.tokens();
        assert!(Arc::ptr_eq(&before[1], &after[0]));
        assert!(before[0].ended.is_cancelled() && !after[0].ended.is_cancelled());
        let bearer = [("host", "h"), ("authorization", "Bearer a")];
        assert_eq!(status(&access, READ, "/", &bearer), 401);
    }

    #[test]
    fn too_many_requests_are_rejected_but_never_those_that_end_chaos() {
        let access = Access::new(vec![Token::new("o", TokenRole::Operator, "do")]);
        let bearer = [("host", "h"), ("authorization", "Bearer do")];
        let mut tried = 0;
        while status(&access, WRITE, "/", &bearer) == 200 {
            tried += 1;
        }
        assert_eq!(status(&access, Some(Needs::EndsChaos), "/", &bearer), 200);
        assert!(tried >= AT_ONCE, "{tried}");
    }
}
