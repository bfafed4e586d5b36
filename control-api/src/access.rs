//! Who may ask.
//!
//! Without tokens everybody who reaches the API may do everything, so it listens on loopback only,
//! and no web page may reach it through a browser: a `Host` that is not this machine (a rebound DNS
//! name) and a foreign `Origin` are refused. With tokens every route asks for one that has the role
//! which the [table of routes](crate::router) says, but for those that tell nothing and change nothing.
//!
//! Tokens are looked up in memory, never in the store: chaos can be ended while that is away. They come
//! from the configuration, and from the store through [`StoredTokens`](crate::StoredTokens).

mod failures;
mod pace;
mod token;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Method, Uri};
use serde::Serialize;
use squall_journal::redact::Redactor;
use squall_journal::scopes::Scopes;
use squall_proxy::chaos::{Chaos, DEFAULT_SCOPE};
use tokio_util::sync::CancellationToken;

pub use self::failures::FAILURES_AT_ONCE;
use self::failures::Failures;
pub use self::pace::{AT_ONCE, PER_SECOND};
pub use self::token::{Digest, NoRandomness, Role, Token};
pub(crate) use self::token::{hex, new_secret};
use crate::audit::{AuditLog, Call, Repeated};
use crate::problem::Problem;
use crate::store::{self, DEFAULT_WORKSPACE, StoredToken};

/// What a route asks of whoever calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it tells no secret and changes nothing.
    Nothing,
    /// This role, or one above it.
    Role(Role),
    /// An operator, however fast requests come: what ends chaos is never refused for haste.
    Brake,
}

impl Needs {
    /// The role it takes.
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

/// Who may ask. Changes take effect with the next request.
#[derive(Debug, Default)]
pub struct Access {
    doors: ArcSwap<Doors>,
    /// Changes go one after the other.
    turn: Mutex<()>,
    /// Who is told which workspaces there are.
    chaos: OnceLock<Arc<Chaos>>,
    failures: Failures,
}

/// What holds at one moment.
#[derive(Debug, Clone, Default)]
struct Doors {
    /// Whether others than this machine reach the API: then nobody gets in without a token, also when
    /// there is none.
    exposed: bool,
    configured: Vec<Arc<Token>>,
    stored: Vec<Arc<Token>>,
    /// Cancelled when a token is asked for from those who have come in without one.
    closed: CancellationToken,
    /// Those that tokens are of, the default one aside.
    workspaces: Arc<BTreeSet<String>>,
}

/// Who calls.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// `None` where no token is asked for.
    token: Option<Arc<Token>>,
    /// All workspaces but the default one.
    workspaces: Arc<BTreeSet<String>>,
    /// Cancelled when what is still open is to end.
    ended: CancellationToken,
    /// What it is about to change; `None` for a request that changes nothing.
    call: Option<Arc<Call>>,
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
        if !self.is_of_default_workspace() {
            Scopes::Of(self.workspace().to_owned())
        } else if self.workspaces.is_empty() {
            Scopes::All
        } else {
            Scopes::OfNone(Arc::clone(&self.workspaces))
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

    /// Who it is, for the log.
    pub(crate) fn name(&self) -> &str {
        self.token.as_ref().map_or("-", |token| token.name())
    }
}

impl Access {
    /// Those who know one of these, the configuration's; nobody else, unless there are none at all.
    pub fn new(configured: Vec<Token>) -> Self {
        let access = Self::default();
        access.configure(configured);
        access
    }

    /// Takes over the tokens of a configuration that was read anew.
    pub fn configure(&self, configured: Vec<Token>) {
        self.change(|doors| doors.configured = taken_over(&doors.configured, configured));
    }

    /// Takes over the tokens of the store.
    pub(crate) fn store(&self, stored: Vec<StoredToken>) {
        let stored = stored.into_iter().map(Token::from).collect();
        self.change(|doors| doors.stored = taken_over(&doors.stored, stored));
    }

    /// Asks for a token from now on, even if there is none: others than this machine reach the API.
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
        if *doors.workspaces != workspaces {
            doors.workspaces = Arc::new(workspaces);
            if let Some(chaos) = self.chaos.get() {
                chaos.set_workspaces(Arc::clone(&doors.workspaces));
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

    /// Tells `chaos` from now on which workspaces there are; only the first call counts.
    pub(crate) fn tell(&self, chaos: &Arc<Chaos>) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.chaos.set(Arc::clone(chaos)).is_ok() {
            chaos.set_workspaces(Arc::clone(&self.doors.load().workspaces));
        }
    }

    /// Whether everybody who reaches the API may do everything.
    pub fn is_open(&self) -> bool {
        self.doors.load().are_open()
    }

    /// Whether any of its tokens are the store's.
    pub fn has_stored(&self) -> bool {
        !self.doors.load().stored.is_empty()
    }

    /// Whether others than this machine reach the API.
    pub(crate) fn is_exposed(&self) -> bool {
        self.doors.load().exposed
    }

    /// The configuration's tokens, then the store's.
    pub(crate) fn tokens(&self) -> Vec<Arc<Token>> {
        self.doors.load().tokens().cloned().collect()
    }

    /// Lets a request pass, or says why not. `needs` is what its route asks for; `None` when there is
    /// none. `source` is where it came from, where that is known.
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
        }
        if doors.are_open() || needs == Some(Needs::Nothing) {
            let ended = doors.closed.clone();
            return Ok(Caller {
                token: None,
                workspaces: Arc::clone(&doors.workspaces),
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
            workspaces: Arc::clone(&doors.workspaces),
            token: Some(token),
            call: None,
        })
    }
}

impl Doors {
    fn are_open(&self) -> bool {
        !self.exposed && self.tokens().next().is_none()
    }

    fn tokens(&self) -> impl Iterator<Item = &Arc<Token>> {
        self.configured.iter().chain(&self.stored)
    }

    fn bearer(&self, headers: &HeaderMap) -> Result<Arc<Token>, Problem> {
        let Some(given) = headers.get(AUTHORIZATION) else {
            return Err(Problem::unauthenticated(
                "send a token: `Authorization: Bearer …`; an admin makes one with `squall token create`, \
                 and the config may have some under `api.tokens`",
            ));
        };
        let secret = given.to_str().ok().and_then(|value| value.split_once(' '));
        let Some((_, secret)) = secret.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(Problem::unauthenticated("write `Authorization: Bearer …`"));
        };
        let given = Digest::of(secret.trim());
        // Every token is compared, whichever fits.
        let mut found = None;
        for token in self.tokens() {
            if token.digest == given {
                found = Some(token);
            }
        }
        found
            .cloned()
            .ok_or_else(|| Problem::unauthenticated("nobody has this token, or not any more"))
    }
}

/// What is new in the place of what was. A token that is in both goes on as it was; one that is not any
/// more ends what is still open with it.
fn taken_over(former: &[Arc<Token>], new: Vec<Token>) -> Vec<Arc<Token>> {
    let kept = |token: Token| {
        let same = former.iter().find(|former| former.is(&token));
        same.cloned().unwrap_or_else(|| Arc::new(token))
    };
    let tokens: Vec<Arc<Token>> = new.into_iter().map(kept).collect();
    for gone in former {
        if !tokens.iter().any(|token| Arc::ptr_eq(token, gone)) {
            gone.ended.cancel();
        }
    }
    tokens
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

/// What the guard needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) access: Arc<Access>,
    pub(crate) audit: Arc<AuditLog>,
    pub(crate) rules: Arc<[Rule]>,
    /// Takes secrets out of what is written down.
    pub(crate) redactor: Redactor,
}

/// How long the answer to a call waits for its entry in the audit log: as long as a question to the store
/// may take.
const PATIENCE: Duration = store::PATIENCE;

/// The same for what ends chaos, which is over before.
const BRAKE_PATIENCE: Duration = Duration::from_millis(500);

impl Guard {
    /// What the route asks for that a request goes to. HEAD goes where GET does.
    fn needs(&self, method: &Method, path: &str) -> Option<Needs> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.path == path && rule.method == method);
        rule.map(|rule| rule.needs)
    }

    /// What is about to be changed, by whom, from where. Paths hold names, but people paste.
    fn call(&self, caller: &Caller, request: &Request, route: &str) -> Call {
        let mut target = request.uri().path().to_owned();
        self.redactor.text(&mut target, 256);
        let source = request.extensions().get::<ConnectInfo<SocketAddr>>();
        Call::new(
            caller.workspace(),
            caller.name(),
            source.map_or_else(|| "-".to_owned(), |source| source.0.ip().to_string()),
            format!("{} {route}", request.method()),
            target,
        )
    }
}

/// The middleware in front of every route. Whoever has no token does not learn which routes there are.
pub(crate) async fn guard(
    State(guard): State<Guard>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map(|path| path.as_str().to_owned());
    let needs = route
        .as_ref()
        .and_then(|path| guard.needs(request.method(), path));
    let source = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let source = source.map(|source| source.0.ip());
    let (uri, headers) = (request.uri(), request.headers());
    let caller = guard
        .access
        .check(needs, source, uri, headers, Instant::now())
        .inspect_err(|problem| guard.audit.denied(problem.status()))?;
    let (Some(route), Some(needs)) = (route, needs.filter(|_| !request.method().is_safe())) else {
        request.extensions_mut().insert(caller);
        return Ok(next.run(request).await);
    };
    if needs != Needs::Brake {
        guard
            .audit
            .has_room()
            .map_err(|full| Problem::not_ready(full.to_string()))?;
    }
    let call = Arc::new(guard.call(&caller, &request, &route));
    request.extensions_mut().insert(Caller {
        call: Some(Arc::clone(&call)),
        ..caller
    });
    // Whoever asks may go away; what was begun is carried to its end, with its entry.
    let carried = tokio::spawn(async move {
        let response = next.run(request).await;
        if response.extensions().get::<Repeated>().is_some() {
            let detail = "nothing was done: the answer to this Idempotency-Key was given again";
            call.changed::<()>(None, None, detail.to_owned());
        }
        let patience = match needs {
            Needs::Brake => BRAKE_PATIENCE,
            Needs::Nothing | Needs::Role(_) => PATIENCE,
        };
        guard
            .audit
            .answered(&call, response.status(), patience)
            .await;
        response
    });
    match carried.await {
        Ok(response) => Ok(response),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The host and port the request is for: `:authority` on HTTP/2, `Host` before.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
    let named = headers.get(HOST).and_then(|value| value.to_str().ok());
    uri.authority()
        .map(http::uri::Authority::as_str)
        .or(named)
        .ok_or_else(|| Problem::malformed("the Host header is missing"))
}

fn refuse_foreign_host(host: &str) -> Result<(), Problem> {
    if is_this_machine(without_port(host)) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "without tokens the API is only for this machine: ask for 127.0.0.1 or localhost, not `{}`",
        shortened(host)
    )))
}

/// A page may ask the host it came from.
fn refuse_foreign_origin(host: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or("\u{fffd}");
    let authority = origin
        .split_once("://")
        .map_or(origin, |(_, authority)| authority);
    if authority.eq_ignore_ascii_case(host) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "a page from `{}` may not use this API",
        shortened(origin)
    )))
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
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
