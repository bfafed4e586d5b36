//! From an origin to a connected socket: checks the name, resolves it, checks every address, dials.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Shared;
use super::chain::UpstreamProxy;
use super::destination::{NameVerdict, not_covered};
use super::error::FailureCause;
use super::origin::{Scheme, UpstreamOrigin, host_and_port};
use super::patterns::{is_localhost, literal};
use super::settings::Settings;
use super::transport::{Dialled, OpenConnection};

/// Time for one address before the next one is tried in parallel (RFC 8305 §5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Time to resolve a name before it is left to `upstream_proxy`.
const LOOK_BEFORE_CHAIN: Duration = Duration::from_secs(1);

/// Dials `origin` under `settings`, until `deadline`.
pub(super) async fn dial(
    shared: &Shared,
    settings: &Settings,
    origin: &UpstreamOrigin,
    deadline: Instant,
) -> Result<Dialled, FailureCause> {
    let standing = judge(shared, settings, origin)?;
    let (host, port) = settings.connect_to.target(origin.host(), origin.port());
    let resolve = shared.resolver.resolve(host, port);
    let resolved = match &settings.proxy {
        None => in_time(settings, deadline, &[], resolve).await,
        Some(_) => timeout(LOOK_BEFORE_CHAIN, resolve)
            .await
            .unwrap_or_else(|_| Err(FailureCause::Dns("the look-up took too long".to_owned()))),
    };
    let resolved = match (resolved, standing) {
        // Only an address could be allowed, and none was resolved.
        (Err(FailureCause::Dns(_)), NameVerdict::ByAddress) => {
            return Err(FailureCause::Denied(not_covered(
                origin.host(),
                origin.port(),
            )));
        }
        // Only the other proxy can resolve it, so only that proxy can check it.
        (Err(FailureCause::Dns(_)), NameVerdict::ByName) if settings.proxy.is_some() => Vec::new(),
        (resolved, _) => resolved?,
    };
    let (addresses, denied) = judge_each(shared, settings, origin, standing, resolved)?;
    // The other proxy may use any address; those of localhost are one machine.
    let is_one = matches!(standing, NameVerdict::ByName) && is_localhost(host);
    if let Some(why) = denied.filter(|_| addresses.is_empty() || settings.proxy.is_some() || is_one)
    {
        return Err(FailureCause::Denied(why));
    }
    if let Some(proxy) = &settings.proxy {
        // The other proxy resolves the name again, and may run on this machine.
        if literal(host).is_none() && shared.own.load().has_port(port) {
            return Err(FailureCause::Denied(format!(
                "`proxy.upstream_proxy` resolves the name, which could lead to Squall's own listener on port \
                 {port}; give the host an address in `proxy.connect_to`"
            )));
        }
        return dial_through(proxy, shared, settings, origin, (host, port), deadline).await;
    }
    connect(shared, settings, &addresses, deadline).await
}

/// Connects to `upstream_proxy` and from there to `target`, except for plain HTTP, which a proxy
/// accepts in absolute form.
async fn dial_through(
    proxy: &UpstreamProxy,
    shared: &Shared,
    settings: &Settings,
    origin: &UpstreamOrigin,
    target: (&str, u16),
    deadline: Instant,
) -> Result<Dialled, FailureCause> {
    let connecting = async {
        let (host, port) = proxy.place();
        let resolve = shared.resolver.resolve(host, port);
        let addresses = in_time(settings, deadline, &[], resolve).await?;
        for &address in &addresses {
            shared.refuse_own(address)?;
        }
        connect(shared, settings, &addresses, deadline).await
    };
    let mut dialled = connecting.await.map_err(|cause| match cause {
        FailureCause::Dns(why) | FailureCause::Unreachable(why) => proxy.failed(&why),
        FailureCause::Refused(_) => proxy.failed("it refused the connection"),
        other => other,
    })?;
    if origin.scheme() == Scheme::Https {
        let target = host_and_port(target.0, target.1);
        let asked = proxy.ask(&mut dialled.socket, &target);
        in_time(settings, deadline, &[dialled.address], asked).await?;
    }
    Ok(dialled)
}

/// The addresses that may be dialled, and why another may not.
fn judge_each(
    shared: &Shared,
    settings: &Settings,
    origin: &UpstreamOrigin,
    standing: NameVerdict,
    resolved: Vec<SocketAddr>,
) -> Result<(Vec<SocketAddr>, Option<String>), FailureCause> {
    let mut addresses = Vec::with_capacity(resolved.len());
    let mut denied = None;
    for address in resolved {
        shared.refuse_own(address)?;
        let (ip, port) = (address.ip(), address.port());
        let lists = &settings.destinations;
        let approved = lists.check_approval(origin, &ip.to_string(), Some(port));
        match approved.and_then(|()| lists.check_address(standing, ip, port)) {
            Ok(()) => addresses.push(address),
            Err(why) => denied = Some(why),
        }
    }
    Ok((addresses, denied))
}

/// The addresses of an origin that may be dialled outside of an exchange: `connect_to` and
/// `upstream_proxy` do not apply.
pub(super) async fn addresses(
    shared: &Shared,
    settings: &Settings,
    origin: &UpstreamOrigin,
) -> Result<Vec<SocketAddr>, FailureCause> {
    let (host, port) = (origin.host(), origin.port());
    let standing = judge_name(shared, settings, origin)?;
    let resolved = shared.resolver.resolve(host, port).await?;
    match judge_each(shared, settings, origin, standing, resolved)? {
        (addresses, Some(why)) if addresses.is_empty() => Err(FailureCause::Denied(why)),
        (addresses, _) => Ok(addresses),
    }
}

/// Checks the name of an origin, or its address.
pub(super) fn judge_name(
    shared: &Shared,
    settings: &Settings,
    origin: &UpstreamOrigin,
) -> Result<NameVerdict, FailureCause> {
    let (host, port) = (origin.host(), origin.port());
    if let Some(own) = shared.own.load().reached_as(host, port) {
        return Err(FailureCause::Loop(own));
    }
    let lists = &settings.destinations;
    let approved = lists.check_approval(origin, host, Some(port));
    let checked = approved.and_then(|()| lists.check_name(host, port));
    checked.map_err(FailureCause::Denied)
}

/// Checks an origin without resolving it.
pub(super) fn judge(
    shared: &Shared,
    settings: &Settings,
    origin: &UpstreamOrigin,
) -> Result<NameVerdict, FailureCause> {
    let lists = &settings.destinations;
    let (host, port) = (origin.host(), origin.port());
    let standing = lists.check_name(host, port).map_err(FailureCause::Denied)?;
    if origin.server_name() != host {
        lists
            .check_denied_name(origin.server_name(), port)
            .map_err(FailureCause::Denied)?;
    }
    let dialled @ (target, target_port) = settings.connect_to.target(host, port);
    for (host, port) in [(host, port), (origin.server_name(), port), dialled] {
        lists
            .check_approval(origin, host, Some(port))
            .map_err(FailureCause::Denied)?;
    }
    if let Some(ip) = literal(target) {
        shared.refuse_own(SocketAddr::new(ip, target_port))?;
        lists
            .check_address(standing, ip, target_port)
            .map_err(FailureCause::Denied)?;
    }
    Ok(standing)
}

/// Connects to the first of `addresses` that accepts, in order.
pub(super) async fn connect(
    shared: &Shared,
    settings: &Settings,
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<Dialled, FailureCause> {
    let (socket, address) = in_time(settings, deadline, addresses, any_of(addresses)).await?;
    // Nagle's algorithm delays the small writes of event streams.
    socket
        .set_nodelay(true)
        .map_err(|error| FailureCause::Unreachable(error.to_string()))?;
    Ok(Dialled {
        socket,
        address,
        open: OpenConnection::count(&shared.counters),
    })
}

/// Runs a step of connecting until the deadline.
pub(super) async fn in_time<T>(
    settings: &Settings,
    deadline: Instant,
    addresses: &[SocketAddr],
    step: impl Future<Output = Result<T, FailureCause>>,
) -> Result<T, FailureCause> {
    match timeout_at(deadline, step).await {
        Ok(done) => done,
        Err(_elapsed) => Err(FailureCause::ConnectTimeout(
            settings.connect_timeout,
            addresses.to_vec(),
        )),
    }
}

async fn any_of(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), FailureCause> {
    let mut waiting = addresses.iter().copied();
    let mut attempts = FuturesUnordered::new();
    let mut failures = Vec::new();
    attempts.extend(waiting.next().map(attempt));
    while !attempts.is_empty() {
        let more = waiting.len() > 0;
        tokio::select! {
            Some((address, connected)) = attempts.next() => match connected {
                Ok(socket) => return Ok((socket, address)),
                Err(error) => failures.push((address, error)),
            },
            () = sleep(HEAD_START), if more => {}
        }
        attempts.extend(waiting.next().map(attempt));
    }
    Err(why_none(&failures))
}

async fn attempt(address: SocketAddr) -> (SocketAddr, io::Result<TcpStream>) {
    (address, TcpStream::connect(address).await)
}

/// One cause for all failures: a refused connection is the most specific, so it is reported first.
fn why_none(failures: &[(SocketAddr, io::Error)]) -> FailureCause {
    let of_kind = |kind: io::ErrorKind| -> Vec<SocketAddr> {
        failures
            .iter()
            .filter(|(_, error)| error.kind() == kind)
            .map(|(at, _)| *at)
            .collect()
    };
    let refused = of_kind(io::ErrorKind::ConnectionRefused);
    if !refused.is_empty() {
        return FailureCause::Refused(refused);
    }
    let each: Vec<String> = failures
        .iter()
        .map(|(at, error)| format!("{at}: {error}"))
        .collect();
    FailureCause::Unreachable(each.join("; "))
}
