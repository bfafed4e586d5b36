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
mod doors;
mod failures;
mod guard;
mod origin;
mod pace;
mod token;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::{HeaderMap, Method, Uri};
use squall_journal::scopes::Workspaces;
use squall_proxy::chaos::Chaos;
use tokio_util::sync::CancellationToken;

pub(crate) use self::caller::Caller;
use self::doors::{Doors, taken_over};
pub use self::failures::FAILURES_AT_ONCE;
use self::failures::Failures;
pub(crate) use self::guard::{Guard, guard};
use self::origin::{host, refuse_foreign_host, refuse_foreign_origin, refuse_proxied};
pub use self::pace::{AT_ONCE, PER_SECOND};
pub use self::token::{TOKEN_NAMES, Token, is_token_name};
pub use crate::credential::{Digest, NoRandomness, Role};
use crate::problem::Problem;
use crate::store::{DEFAULT_WORKSPACE, StoredToken};

/// What a route requires of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it reveals no secret and changes nothing.
    Nothing,
    /// This role, or one above it.
    Role(Role),
    /// An operator, without a rate limit: requests that end chaos are never rejected as too many.
    Brake,
}

impl Needs {
    /// The role that it requires.
    pub(crate) fn role(self) -> Option<Role> {
        match self {
            Self::Nothing => None,
            Self::Role(role) => Some(role),
            Self::Brake => Some(Role::Operator),
        }
    }
}

/// A route, as the guard sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) method: &'static Method,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
}

/// Access control. Changes take effect with the next request.
#[derive(Debug, Default)]
pub struct Access {
    doors: ArcSwap<Doors>,
    /// Serializes changes.
    turn: Mutex<()>,
    /// Is informed of the present workspaces.
    chaos: OnceLock<Arc<Chaos>>,
    failures: Failures,
    /// The workspaces of all tokens, without the default one.
    workspaces: Arc<Workspaces>,
}

impl Access {
    /// With the configuration's tokens; without any, every client has access.
    pub fn new(configured: Vec<Token>) -> Self {
        let access = Self::default();
        access.configure(configured);
        access
    }

    /// Replaces the configuration's tokens after a reload.
    pub fn configure(&self, configured: Vec<Token>) {
        self.change(|doors| doors.configured = taken_over(&doors.configured, configured));
    }

    /// Replaces the store's tokens.
    pub(crate) fn store(&self, stored: Vec<StoredToken>) {
        let stored = stored.into_iter().map(Token::from).collect();
        self.change(|doors| doors.stored = taken_over(&doors.stored, stored));
    }

    /// Requires a token from now on, even if none exists: other machines reach the API.
    pub(crate) fn expose(&self) {
        self.change(|doors| doors.exposed = true);
    }

    fn change(&self, change: impl FnOnce(&mut Doors)) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut doors = Doors::clone(&self.doors.load());
        let were_open = doors.are_open();
        change(&mut doors);
        let workspaces = doors.tokens().map(|token| token.workspace());
        let workspaces = workspaces.filter(|name| *name != DEFAULT_WORKSPACE);
        let workspaces: BTreeSet<String> = workspaces.map(str::to_owned).collect();
        if *self.workspaces.names() != workspaces {
            self.workspaces.set(Arc::new(workspaces));
            if let Some(chaos) = self.chaos.get() {
                chaos.set_workspaces(self.workspaces.names());
            }
        }
        let closing = were_open && !doors.are_open();
        let closed = doors.closed.clone();
        if closing {
            doors.closed = CancellationToken::new();
        }
        self.doors.store(Arc::new(doors));
        if closing {
            closed.cancel();
        }
    }

    /// Informs `chaos` of the present workspaces from now on; only the first call counts.
    pub(crate) fn tell(&self, chaos: &Arc<Chaos>) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.chaos.set(Arc::clone(chaos)).is_ok() {
            chaos.set_workspaces(self.workspaces.names());
        }
    }

    /// Whether every client that reaches the API may do everything.
    pub fn is_open(&self) -> bool {
        self.doors.load().are_open()
    }

    /// Whether any token is the store's.
    pub fn has_stored(&self) -> bool {
        !self.doors.load().stored.is_empty()
    }

    /// Whether other machines reach the API.
    pub(crate) fn is_exposed(&self) -> bool {
        self.doors.load().exposed
    }

    /// The configuration's tokens, then the store's.
    pub(crate) fn tokens(&self) -> Vec<Arc<Token>> {
        self.doors.load().tokens().cloned().collect()
    }

    /// Admits a request, or returns why not. `needs` is what its route requires; `None` when no route matches.
    /// `source` is the client's address, if known.
    fn check(
        &self,
        needs: Option<Needs>,
        source: Option<IpAddr>,
        uri: &Uri,
        headers: &HeaderMap,
        now: Instant,
    ) -> Result<Caller, Problem> {
        let host = host(uri, headers)?;
        refuse_foreign_origin(host, headers)?;
        let doors = self.doors.load();
        if doors.are_open() {
            refuse_foreign_host(host)?;
            refuse_proxied(headers)?;
        }
        if doors.are_open() || needs == Some(Needs::Nothing) {
            let ended = doors.closed.clone();
            return Ok(Caller {
                token: None,
                workspaces: Arc::clone(&self.workspaces),
                ended,
                call: None,
            });
        }
        let token = doors.bearer(headers).map_err(|problem| {
            let failed = source.map_or(Ok(()), |source| self.failures.step(source, now));
            failed.map_or_else(too_often, |()| problem)
        })?;
        if needs != Some(Needs::Brake)
            && let Err(wait) = token.pace.step(now)
        {
            return Err(too_fast(wait));
        }
        if let Some(needed) = needs.and_then(Needs::role)
            && token.role < needed
        {
            return Err(Problem::forbidden(format!(
                "the token `{}` has the role {}; this needs the role {}",
                token.name,
                token.role.as_str(),
                needed.as_str()
            )));
        }
        Ok(Caller {
            ended: token.ended.clone(),
            workspaces: Arc::clone(&self.workspaces),
            token: Some(token),
            call: None,
        })
    }
}

fn too_often(wait: Duration) -> Problem {
    Problem::too_many(
        "too many requests from this address came without a good token; wait as long as Retry-After says, and \
         send one that is good",
        wait,
    )
}

fn too_fast(wait: Duration) -> Problem {
    Problem::too_many(
        format!(
            "a token is good for {PER_SECOND} requests a second, after a rest for {AT_ONCE} at once; wait \
             as long as Retry-After says"
        ),
        wait,
    )
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};

    use super::*;

    const READ: Option<Needs> = Some(Needs::Role(Role::Viewer));
    const WRITE: Option<Needs> = Some(Needs::Role(Role::Operator));

    fn status(access: &Access, needs: Option<Needs>, path: &str, headers: &[(&str, &str)]) -> u16 {
        use axum::response::IntoResponse;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().expect("a name");
            map.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        let uri: Uri = path.parse().expect("a path");
        match access.check(needs, None, &uri, &map, Instant::now()) {
            Ok(_) => StatusCode::OK.as_u16(),
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    #[test]
    fn without_tokens_only_this_machine_is_served() {
        let open = Access::default();
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
        let tokens = Access::new(vec![Token::new("t", Role::Admin, "secret")]);
        for (access, expected) in [(Access::default(), 403), (tokens, 200)] {
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
        let tokens = Access::new(vec![Token::new("t", Role::Admin, "secret")]);
        for access in [Access::default(), tokens] {
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
            Token::new("v", Role::Viewer, "see"),
            Token::new("o", Role::Operator, "do"),
        ]);
        for (needs, authorization, expected) in [
            (READ, Some("Bearer see"), 200),
            (READ, Some("bearer do"), 200),
            (WRITE, Some("Bearer do"), 200),
            (WRITE, Some("Bearer see"), 403),
            (Some(Needs::Brake), Some("Bearer see"), 403),
            (Some(Needs::Brake), Some("Bearer do"), 200),
            (Some(Needs::Role(Role::Admin)), Some("Bearer do"), 403),
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
    fn an_exposed_api_without_tokens_lets_nobody_in() {
        let access = Access::default();
        let here = [("host", "127.0.0.1:7071")];
        assert_eq!(status(&access, READ, "/", &here), 200);
        access.expose();
        assert_eq!(status(&access, READ, "/", &here), 401);
        assert_eq!(status(&access, Some(Needs::Nothing), "/", &here), 200);
    }

    #[test]
    fn a_token_that_stays_keeps_its_pace_and_one_that_goes_ends() {
        let token = |name: &str| Token::new(name, Role::Viewer, name);
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
    fn haste_is_refused_but_never_the_brake() {
        let access = Access::new(vec![Token::new("o", Role::Operator, "do")]);
        let bearer = [("host", "h"), ("authorization", "Bearer do")];
        let mut tried = 0;
        while status(&access, WRITE, "/", &bearer) == 200 {
            tried += 1;
        }
        assert_eq!(status(&access, Some(Needs::Brake), "/", &bearer), 200);
        assert!(tried >= AT_ONCE, "{tried}");
    }
}
