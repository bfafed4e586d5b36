//! The destination of a request: forward mode, a reverse route, or its tunnel.

use std::sync::Arc;

use http::header::{HOST, HeaderValue};
use http::uri::{self, Authority, PathAndQuery};
use http::{HeaderMap, Request, StatusCode, Uri, Version};
use squall_profiles::facts::CanonicalUrl;

use super::connection::Ingress;
use super::scope::{self, BadScope};
use crate::chaos::Aliases;
use crate::compiled::{CompiledConfig, CompiledRoute, ListenerRole};
use crate::config::Credentials;
use crate::headers::{origin_form, path_and_query};
use crate::problem::Problem;
use crate::upstream::{OwnListeners, UpstreamOrigin, flaw};

/// The destination of one request.
pub(crate) struct RequestTarget {
    /// The upstream.
    pub(crate) origin: UpstreamOrigin,
    /// The `Host` header for the upstream.
    pub(crate) host: HeaderValue,
    /// Path and query for the upstream.
    pub(crate) path: PathAndQuery,
    /// The full URL in the form that globs match.
    pub(crate) url: CanonicalUrl,
    /// The scope named in the path or in the credentials of the CONNECT.
    pub(crate) scope: Option<Arc<str>>,
    /// The scope of the route, for requests without a scope.
    pub(crate) route_scope: Option<Arc<str>>,
    /// The main listener got the request as a forward proxy.
    pub(crate) is_forward: bool,
    /// The request target as the agent wrote it.
    written: Uri,
    /// The request used a reverse route.
    is_reverse: bool,
}

impl RequestTarget {
    /// The URL as the agent wrote it, for a redirect to itself.
    pub(crate) fn as_written(&self) -> String {
        if self.is_reverse {
            path_and_query(&self.written).to_owned()
        } else if self.written.authority().is_some() {
            self.written.to_string()
        } else {
            self.url.as_str().to_owned()
        }
    }
}

fn bad_target(title: &'static str, detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad-target", title, detail)
}

fn unreachable(uri: &Uri, why: &str) -> Problem {
    let detail = format!("cannot forward to `{}`: {why}", without_userinfo(uri));
    bad_target("Bad request target", detail)
}

/// Finds the destination of `request`.
pub(crate) fn target<B>(
    config: &CompiledConfig,
    ingress: &Ingress,
    request: &Request<B>,
) -> Result<RequestTarget, Problem> {
    match ingress.of_agent() {
        Ingress::Tunnel(tunnel) => {
            let authority = &tunnel.authority;
            let host = match requested_host(request) {
                Some(host) => host,
                None => HeaderValue::from_str(authority).map_err(|_| bad_path(request.uri()))?,
            };
            // The request may belong to another scope than the CONNECT.
            let origin = tunnel.origin.clone().unapproved(false);
            let scope = tunnel.scope.clone();
            Ok(forward(origin, authority, host, request.uri(), scope))
        }
        Ingress::Listener(ListenerRole::Main) => match requested_listener(config, request) {
            Some(role) => at_listener(config, role, request.uri()),
            None => absolute(request.uri()),
        },
        Ingress::Listener(role) => at_listener(config, *role, request.uri()),
        Ingress::Carried(_) => Err(no_route(request.uri())),
    }
}

/// Finds the reverse route for a request to a listener.
fn at_listener(
    config: &CompiledConfig,
    role: ListenerRole,
    uri: &Uri,
) -> Result<RequestTarget, Problem> {
    let (scope, path) = scoped_path(path_and_query(uri))?;
    let found = match role {
        ListenerRole::Main => config.prefix_route(path),
        ListenerRole::Route(place) => config.route(place).map(|route| (route, path)),
    };
    let (route, rest) = found.ok_or_else(|| no_route(uri))?;
    reverse(route, rest, scope, uri)
}

/// The host of a request inside a tunnel. The CONNECT may name another host on the same server, or
/// the server's address.
fn requested_host<B>(request: &Request<B>) -> Option<HeaderValue> {
    match request.uri().authority() {
        Some(authority) => {
            let host = authority.as_str().rsplit('@').next()?;
            HeaderValue::from_str(host).ok()
        }
        None => request.headers().get(HOST).cloned(),
    }
}

/// The listener whose route a request through the main listener uses; `None` for a request to
/// forward.
///
/// On HTTP/1, a request in absolute form is forwarded, unless it names a route's listener, or the
/// main listener and a path with a prefix route. On HTTP/2 every request has an authority, so the
/// form does not distinguish the two. There a request uses a route if a prefix matches its path or
/// if it names this listener's port.
fn requested_listener<B>(config: &CompiledConfig, request: &Request<B>) -> Option<ListenerRole> {
    let uri = request.uri();
    let Some(authority) = uri.authority() else {
        return Some(ListenerRole::Main);
    };
    let is_http2 = request.version() >= Version::HTTP_2;
    // Routes accept plain HTTP only.
    let own = own_listener(config, authority).filter(|_| uri.scheme() != Some(&uri::Scheme::HTTPS));
    match own {
        Some(ListenerRole::Route(place)) => Some(ListenerRole::Route(place)),
        Some(ListenerRole::Main) => {
            (is_http2 || has_route(config, uri)).then_some(ListenerRole::Main)
        }
        None if is_http2 => {
            let is_named = authority.port_u16() == Some(config.config.listen.port());
            (is_named || has_route(config, uri)).then_some(ListenerRole::Main)
        }
        None => None,
    }
}

/// The listener of this proxy that an authority names. Programs with both a proxy and a route's
/// base URL send the route's requests through the proxy.
pub(crate) fn own_listener(config: &CompiledConfig, authority: &Authority) -> Option<ListenerRole> {
    let port = authority.port_u16()?;
    let mut listeners = config.listeners.iter();
    let found = listeners.find(|(own, _)| {
        own.port() == port
            && OwnListeners::new([*own])
                .reached_as(authority.host(), port)
                .is_some()
    })?;
    Some(found.1)
}

/// Whether a prefix route matches the path. Routes accept plain HTTP only.
fn has_route(config: &CompiledConfig, uri: &Uri) -> bool {
    let path = path_and_query(uri);
    uri.scheme() != Some(&uri::Scheme::HTTPS)
        && scope::of_path(path).is_ok_and(|scoped| {
            let rest = scoped.map_or(path, |(_, rest)| rest);
            config.prefix_route(rest).is_some()
        })
}

fn absolute(uri: &Uri) -> Result<RequestTarget, Problem> {
    let Some((origin, written)) = UpstreamOrigin::of_uri(uri).zip(uri.authority()) else {
        let why = "only http:// and https:// URLs can be reached";
        return Err(unreachable(uri, why));
    };
    if let Some(flaw) = flaw(written) {
        return Err(unreachable(uri, flaw));
    }
    let authority = origin.authority();
    let host = HeaderValue::from_str(&authority).map_err(|_| bad_path(uri))?;
    Ok(RequestTarget {
        is_forward: true,
        ..forward(origin, &authority, host, uri, None)
    })
}

fn forward(
    origin: UpstreamOrigin,
    authority: &str,
    host: HeaderValue,
    uri: &Uri,
    scope: Option<Arc<str>>,
) -> RequestTarget {
    let path = origin_form(uri);
    let url = CanonicalUrl::new(origin.scheme().as_str(), authority, path.as_str());
    RequestTarget {
        origin,
        host,
        path,
        url,
        scope,
        route_scope: None,
        is_forward: false,
        written: uri.clone(),
        is_reverse: false,
    }
}

fn reverse(
    route: &CompiledRoute,
    rest: &str,
    scope: Option<Arc<str>>,
    written: &Uri,
) -> Result<RequestTarget, Problem> {
    let mut path = String::with_capacity(route.base_path.len() + rest.len() + 1);
    path.push_str(&route.base_path);
    if !rest.starts_with('/') {
        path.push('/');
    }
    path.push_str(rest);
    let url = CanonicalUrl::new(route.origin.scheme().as_str(), &route.authority, &path);
    let path = PathAndQuery::try_from(path).map_err(|_| bad_path(written))?;
    Ok(RequestTarget {
        origin: route.origin.clone(),
        host: route.host.clone(),
        path,
        url,
        scope,
        route_scope: route.scope.clone(),
        is_forward: false,
        written: written.clone(),
        is_reverse: true,
    })
}

/// Removes `/_scope/SCOPE` from a path.
fn scoped_path(path: &str) -> Result<(Option<Arc<str>>, &str), Problem> {
    Ok(match scope::of_path(path).map_err(|bad| bad_scope(&bad))? {
        Some((scope, rest)) => (Some(Arc::from(scope)), rest),
        None => (None, path),
    })
}

/// The scope of an HTTP request, by the first method it uses to name one. A slot of a run has lower
/// priority than baggage and trace.
pub(crate) fn scope_of<B>(
    config: &CompiledConfig,
    ingress: &Ingress,
    request: &Request<B>,
    target: &RequestTarget,
    aliases: &Aliases,
) -> Result<Option<Arc<str>>, Problem> {
    let headers = request.headers();
    let credentials = config.config.credentials;
    let through_proxy =
        matches!(ingress.of_agent(), Ingress::Listener(ListenerRole::Main)) && target.is_forward;
    if through_proxy && credentials == Credentials::Required {
        require_credentials(headers)?;
    }
    let use_credentials = through_proxy && credentials != Credentials::None;
    let named = named(headers, target, use_credentials).map_err(|bad| bad_scope(&bad))?;
    let of_slot = named.as_deref().and_then(|named| aliases.of_slot(named));
    if named.is_some() && of_slot.is_none() {
        return Ok(named);
    }
    if let Some(scope) = scope::of_baggage(headers).map_err(|bad| bad_scope(&bad))? {
        return Ok(Some(Arc::from(scope)));
    }
    let by_trace = aliases.of_trace(headers);
    Ok(by_trace.or(of_slot).or_else(|| target.route_scope.clone()))
}

/// The names that a request gives the calling agent: its own, then that of its CONNECT.
pub(crate) fn agents_of(
    ingress: &Ingress,
    headers: &HeaderMap,
) -> impl Iterator<Item = String> + use<> {
    let of_connect = match ingress.of_agent() {
        Ingress::Tunnel(tunnel) => tunnel.agent.clone(),
        Ingress::Listener(_) | Ingress::Carried(_) => None,
    };
    scope::agents_of(headers).chain(of_connect)
}

/// The scope of a CONNECT: only credentials can name it.
pub(crate) fn connect_scope(
    config: &CompiledConfig,
    headers: &HeaderMap,
) -> Result<Option<Arc<str>>, Problem> {
    match config.config.credentials {
        Credentials::None => return Ok(None),
        Credentials::Required => require_credentials(headers)?,
        Credentials::Scope => {}
    }
    let user = scope::of_credentials(headers).map_err(|bad| bad_scope(&bad))?;
    Ok(user.filter(|user| !user.is_empty()).map(Arc::from))
}

/// Rejects a request without the required proxy credentials; the error shows how to write them.
fn require_credentials(headers: &HeaderMap) -> Result<(), Problem> {
    match scope::of_credentials(headers) {
        Ok(Some(user)) if !user.is_empty() => Ok(()),
        Ok(_) | Err(BadScope::Credentials) => Err(Problem::new(
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            "credentials-required",
            "Proxy credentials required",
            "name a scope as the proxy user, such as HTTP_PROXY=http://SCOPE:x@HOST:PORT; \
             `proxy.credentials: required` asks for it",
        )),
        Err(bad) => Err(bad_scope(&bad)),
    }
}

/// The scope that a request names: in its header, path, tunnel or credentials.
fn named(
    headers: &HeaderMap,
    target: &RequestTarget,
    use_credentials: bool,
) -> Result<Option<Arc<str>>, BadScope> {
    if let Some(scope) = scope::of_header(headers)? {
        return Ok(Some(Arc::from(scope)));
    }
    if let Some(scope) = &target.scope {
        return Ok(Some(Arc::clone(scope)));
    }
    if !use_credentials {
        return Ok(None);
    }
    let user = scope::of_credentials(headers)?;
    Ok(user.filter(|user| !user.is_empty()).map(Arc::from))
}

/// The authority a CONNECT names: host and port and nothing else (RFC 9110 §9.3.6).
pub(crate) fn connect_authority(uri: &Uri) -> Result<Authority, Problem> {
    uri.authority()
        .filter(|authority| uri.scheme().is_none() && !authority.as_str().contains('@'))
        .filter(|authority| authority.port_u16().is_some() && flaw(authority).is_none())
        .cloned()
        .ok_or_else(|| {
            let detail = format!(
                "CONNECT needs host:port, such as `api.openai.com:443`; got `{}`",
                without_userinfo(uri)
            );
            bad_target("Bad CONNECT target", detail)
        })
}

/// A URI without user name and password, which may be secret.
fn without_userinfo(uri: &Uri) -> String {
    let written = uri.to_string();
    let authority = uri.authority().map_or("", Authority::as_str);
    match authority.rsplit_once('@') {
        Some((userinfo, _)) => written.replacen(&format!("{userinfo}@"), "", 1),
        None => written,
    }
}

fn no_route(uri: &Uri) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no-route",
        "No route",
        format!(
            "no route of this proxy matches `{}`; use it as HTTP_PROXY, or add a route whose prefix fits",
            uri.path()
        ),
    )
}

fn bad_path(uri: &Uri) -> Problem {
    let detail = format!("`{}` cannot be sent to an upstream", without_userinfo(uri));
    bad_target("Bad request target", detail)
}

/// The response to an invalid scope.
fn bad_scope(bad: &BadScope) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "bad-scope",
        "Bad scope name",
        bad.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_a_target_holds_no_password() {
        let uri = |text: &str| text.parse::<Uri>().expect("a URI");
        for (problem, shown) in [
            (connect_authority(&uri("joe:SECRET@h:9")).err(), "`h:9`"),
            (
                absolute(&uri("http://joe:SECRET@h:0/p")).err(),
                "`http://h:0/p`",
            ),
            (Some(bad_path(&uri("http://SECRET@h/"))), "`http://h/`"),
        ] {
            let detail = problem.expect("rejected").detail;
            assert!(detail.contains(shown), "{detail}");
        }
    }
}
