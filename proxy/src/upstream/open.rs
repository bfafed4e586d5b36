//! Opens connections: dials, does TLS, and checks whether the upstream supports HTTP/2.

use std::rc::Rc;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::Shared;
use super::dial::{dial, in_time, judge};
use super::error::FailureCause;
use super::http1::Http1;
use super::http2::Http2;
use super::origin::Scheme;
use super::pool::{OriginPool, SharedH2};
use super::speaks::{PROBE_PATIENCE, watch_first_frame};
use super::transport::{Dialled, Transport};
use crate::tls::Alpn;

/// The connection opened for an HTTP/2 exchange.
pub(super) enum Opened {
    /// HTTP/2, already in the pool.
    H2(Rc<SharedH2>),
    /// HTTP/1.1; `None` if the connection that showed it cannot be used.
    Http1(Option<Http1>),
}

/// Dials for an HTTP/1.1 exchange.
pub(super) async fn open_http1(
    shared: &Shared,
    endpoint: &OriginPool,
) -> Result<Http1, FailureCause> {
    let deadline = deadline(endpoint);
    let dialled = dial(shared, &endpoint.settings, &endpoint.origin, deadline).await?;
    finish_http1(endpoint, dialled, deadline).await
}

/// Opens HTTP/1.1 on a dialled socket.
pub(super) async fn finish_http1(
    endpoint: &OriginPool,
    dialled: Dialled,
    deadline: Instant,
) -> Result<Http1, FailureCause> {
    let transport = match endpoint.origin.scheme() {
        Scheme::Http => Transport::clear(dialled),
        Scheme::Https => handshake(endpoint, Alpn::Http1, dialled, deadline).await?.0,
    };
    Ok(Http1::open(
        transport,
        &endpoint.settings,
        &endpoint.casings,
    ))
}

/// Dials for an HTTP/2 exchange, and learns the upstream's protocol.
pub(super) async fn open_any(
    shared: &Shared,
    endpoint: &Rc<OriginPool>,
    deadline: Instant,
) -> Result<Opened, FailureCause> {
    // Another proxy accepts plain requests in absolute form, on HTTP/1.1.
    if endpoint.origin.scheme() == Scheme::Http && endpoint.settings.proxy.is_some() {
        shared.speaks.learn(&endpoint.origin, Alpn::Http1);
        return Ok(Opened::Http1(None));
    }
    let dialled = dial(shared, &endpoint.settings, &endpoint.origin, deadline).await?;
    match endpoint.origin.scheme() {
        Scheme::Https => finish_tls(shared, endpoint, Alpn::H2, dialled, deadline).await,
        Scheme::Http => probe(shared, endpoint, dialled).await,
    }
}

/// Does the handshake on a dialled socket; ALPN decides the protocol.
pub(super) async fn finish_tls(
    shared: &Shared,
    endpoint: &OriginPool,
    newest: Alpn,
    dialled: Dialled,
    deadline: Instant,
) -> Result<Opened, FailureCause> {
    let (transport, alpn) = handshake(endpoint, newest, dialled, deadline).await?;
    if newest == Alpn::H2 {
        shared.speaks.learn(&endpoint.origin, alpn);
    }
    match alpn {
        Alpn::H2 => {
            let connection = Http2::open(transport, &endpoint.settings).await?;
            Ok(Opened::H2(endpoint.keep_h2(connection)))
        }
        Alpn::Http1 => {
            let connection = Http1::open(transport, &endpoint.settings, &endpoint.casings);
            Ok(Opened::Http1(Some(connection)))
        }
    }
}

/// Learns a TLS upstream's protocol, and leaves a connection in the pool.
pub(super) async fn learn_alpn(
    shared: &Shared,
    endpoint: &Rc<OriginPool>,
    dialled: Option<Dialled>,
    newest: Alpn,
) -> Result<Alpn, FailureCause> {
    match newest {
        Alpn::H2 if endpoint.h2_with_room().is_some() => return Ok(Alpn::H2),
        Alpn::H2
            if endpoint.has_idle() && shared.speaks.of(&endpoint.origin) == Some(Alpn::Http1) =>
        {
            return Ok(Alpn::Http1);
        }
        Alpn::Http1 if endpoint.has_idle() => return Ok(Alpn::Http1),
        Alpn::H2 | Alpn::Http1 => {}
    }
    let deadline = deadline(endpoint);
    let dialled = match dialled {
        Some(dialled) => {
            let (settings, origin) = (&endpoint.settings, &endpoint.origin);
            judge(shared, settings, origin)?;
            // It may have been dialled for another scope.
            let (ip, port) = (dialled.address().ip().to_string(), dialled.address().port());
            let approved = settings
                .destinations
                .check_approval(origin, &ip, Some(port));
            approved.map_err(FailureCause::Denied)?;
            dialled
        }
        None => dial(shared, &endpoint.settings, &endpoint.origin, deadline).await?,
    };
    match finish_tls(shared, endpoint, newest, dialled, deadline).await? {
        Opened::H2(_) => Ok(Alpn::H2),
        Opened::Http1(connection) => {
            if let Some(connection) = connection {
                endpoint.push(connection);
            }
            Ok(Alpn::Http1)
        }
    }
}

/// The deadline of a connection attempt that starts now.
pub(super) fn deadline(endpoint: &OriginPool) -> Instant {
    Instant::now() + endpoint.settings.connect_timeout
}

/// Sends an HTTP/2 preface to a plain upstream and checks its first frame.
async fn probe(
    shared: &Shared,
    endpoint: &OriginPool,
    dialled: Dialled,
) -> Result<Opened, FailureCause> {
    let (first_frame, verdict) = oneshot::channel();
    let io = watch_first_frame(Transport::clear(dialled), first_frame);
    let connection = Http2::open(io, &endpoint.settings).await?;
    let alpn = match timeout(PROBE_PATIENCE, verdict).await {
        Ok(Ok(true)) => Alpn::H2,
        // Other bytes, a close, or no response.
        Ok(Ok(false) | Err(_)) | Err(_) => Alpn::Http1,
    };
    shared.speaks.learn(&endpoint.origin, alpn);
    Ok(match alpn {
        Alpn::H2 => Opened::H2(endpoint.keep_h2(connection)),
        // Dropping the connection closes it.
        Alpn::Http1 => Opened::Http1(None),
    })
}

async fn handshake(
    endpoint: &OriginPool,
    newest: Alpn,
    dialled: Dialled,
    deadline: Instant,
) -> Result<(Transport, Alpn), FailureCause> {
    let Dialled {
        socket,
        address,
        open,
        ..
    } = dialled;
    let (name, settings) = (endpoint.origin.server_name(), &endpoint.settings);
    let handshake = settings.tls.handshake(name, newest, socket);
    let (stream, alpn) = in_time(settings, deadline, &[address], handshake).await?;
    Ok((Transport::tls(stream, open), alpn))
}
