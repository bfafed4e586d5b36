//! Sends one request and receives one response head.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Shared;
use super::error::{FailureCause, cause_of};
use super::form;
use super::http1::{Http1, NotSent, Upload};
use super::open::{Opened, deadline, open_any, open_http1};
use super::origin::Scheme;
use super::pool::{OriginPool, Stream};
use super::received::Received;
use super::sent::{Outgoing, SentBody};
use crate::headers;
use crate::http1::framing::OriginalNames;
use crate::tls::Alpn;

/// A request that waits for its response's head.
pub(super) struct Sending<'a> {
    shared: &'a Shared,
    endpoint: Rc<OriginPool>,
    limit: Option<Limit>,
    /// The request has an upgrade.
    upgrade: bool,
}

/// `response_timeout`, and the request's end, where it starts.
struct Limit {
    after: Duration,
    ended: Option<oneshot::Receiver<()>>,
}

impl<'a> Sending<'a> {
    /// Prepares `request` for sending: wraps the body, and changes nothing else.
    pub(super) fn begin(
        shared: &'a Shared,
        endpoint: Rc<OriginPool>,
        request: Request<Outgoing>,
    ) -> (Self, Request<SentBody>) {
        let mut request = request.map(SentBody::new);
        let limit = endpoint.settings.response_timeout.map(|after| Limit {
            after,
            ended: Some(request.body_mut().watch_end()),
        });
        (
            Self {
                shared,
                endpoint,
                limit,
                upgrade: headers::wants_upgrade(request.headers()),
            },
            request,
        )
    }

    /// The request in HTTP/1.1 form.
    pub(super) fn for_http1(
        self,
        mut request: Request<SentBody>,
        original: &OriginalNames,
    ) -> (Self, Box<Upload>) {
        let OriginPool {
            origin, settings, ..
        } = &*self.endpoint;
        match &settings.proxy {
            Some(proxy) if origin.scheme() == Scheme::Http => {
                form::for_proxy(&mut request, origin, proxy);
            }
            _ => form::for_http1(&mut request, origin),
        }
        (self, Upload::new(request, original))
    }

    /// Sends it on HTTP/1.1.
    pub(super) async fn on_http1(
        mut self,
        upload: Box<Upload>,
        opened: Option<Http1>,
    ) -> Result<Response<Received>, FailureCause> {
        let (mut connection, pooled) = match opened {
            Some(connection) => (connection, false),
            None => self.take_or_open().await?,
        };
        let sent = {
            let sending = pin!(connection.send(upload));
            self.head_in_time(sending).await?
        };
        let failed = match sent {
            Ok(response) => return self.received(response, connection),
            Err(failed) => failed,
        };
        drop(connection);
        // Boxed because it is rare; otherwise every exchange would hold memory for it.
        Box::pin(self.on_another(failed, pooled)).await
    }

    /// Sends it on another connection if a pooled one was closed before the first byte was written.
    /// This replaces the connection and does not retry the request.
    async fn on_another(
        mut self,
        mut failed: NotSent,
        mut pooled: bool,
    ) -> Result<Response<Received>, FailureCause> {
        loop {
            let Some(unsent) = failed.unsent.filter(|_| pooled) else {
                return Err(failed.cause);
            };
            self.shared.counters.count_replaced();
            let mut connection;
            (connection, pooled) = self.take_or_open().await?;
            let sent = {
                let sending = pin!(connection.send(unsent));
                self.head_in_time(sending).await?
            };
            match sent {
                Ok(response) => return self.received(response, connection),
                Err(again) => failed = again,
            }
        }
    }

    /// Sends it on HTTP/2 if the upstream supports it, otherwise on HTTP/1.1.
    pub(super) async fn on_best(
        mut self,
        mut request: Box<Request<SentBody>>,
    ) -> Result<Response<Received>, FailureCause> {
        loop {
            let (shared_connection, pooled) = match self.best().await? {
                (Opened::H2(connection), pooled) => (connection, pooled),
                (Opened::Http1(opened), _) => {
                    let (exchange, upload) = self.for_http1(*request, &OriginalNames::default());
                    return exchange.on_http1(upload, opened).await;
                }
            };
            form::for_http2(&mut request, &self.endpoint.origin);
            let stream = Stream::open(shared_connection.clone());
            let mut sender = shared_connection.sender();
            let sent = {
                let sending = pin!(sender.try_send_request(*request));
                self.head_in_time(sending).await?
            };
            match sent {
                Ok(response) => {
                    return Ok(response.map(|body| Received::h2(body, stream)));
                }
                Err(mut failed) => match failed.take_message().filter(|_| pooled) {
                    Some(unsent) => {
                        self.shared.counters.count_replaced();
                        *request = unsent;
                    }
                    None => return Err(self.cause_on_h2(&failed.into_error())),
                },
            }
        }
    }

    async fn take_or_open(&self) -> Result<(Http1, bool), FailureCause> {
        match self.endpoint.take_idle(&self.shared.counters).await {
            Some(connection) => Ok((connection, true)),
            // Boxed: most exchanges find a connection and need no memory for a dial.
            None => Ok((
                Box::pin(open_http1(self.shared, &self.endpoint)).await?,
                false,
            )),
        }
    }

    fn received(
        &self,
        response: Response<()>,
        mut connection: Http1,
    ) -> Result<Response<Received>, FailureCause> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if !self.upgrade {
                let why = "101 Switching Protocols, which the request did not ask for";
                return Err(FailureCause::Framing(why.to_owned()));
            }
            return Ok(response.map(|()| Received::switching(connection)));
        }
        connection.send_on();
        let endpoint = Rc::clone(&self.endpoint);
        Ok(response.map(|()| Received::http1(endpoint, connection)))
    }

    /// The connection for an HTTP/2 exchange, and whether it comes from the pool.
    async fn best(&self) -> Result<(Opened, bool), FailureCause> {
        let endpoint = &self.endpoint;
        let deadline = deadline(endpoint);
        let mut waited = false;
        loop {
            if let Some(connection) = endpoint.h2_with_room() {
                return Ok((Opened::H2(connection), true));
            }
            if self.shared.speaks.of(&endpoint.origin) == Some(Alpn::Http1) {
                return Ok((Opened::Http1(None), false));
            }
            // The first of several concurrent exchanges checks the protocol; the others wait for
            // it, once.
            let guard = if waited { None } else { endpoint.probe().await };
            if guard.is_none() && !waited {
                waited = true;
                continue;
            }
            let opened = Box::pin(open_any(self.shared, endpoint, deadline)).await;
            drop(guard);
            return Ok((opened?, false));
        }
    }

    /// After an HTTP/2 error, the next exchange checks the upstream's protocol again.
    fn cause_on_h2(&self, error: &hyper::Error) -> FailureCause {
        let cause = cause_of(error);
        if matches!(
            cause,
            FailureCause::Framing(_) | FailureCause::H2(h2::Reason::HTTP_1_1_REQUIRED)
        ) {
            self.shared.speaks.forget(&self.endpoint.origin);
        }
        cause
    }

    /// Waits for the head, at most for `response_timeout`.
    ///
    /// `head` is a reference, because every nested future would otherwise hold memory for it.
    async fn head_in_time<T>(
        &mut self,
        head: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, FailureCause> {
        match &mut self.limit {
            None => Ok(head.await),
            // Boxed: most exchanges have no limit and need no memory for one.
            Some(limit) => Box::pin(limit.keep(head)).await,
        }
    }
}

impl Limit {
    async fn keep<F: Future>(&mut self, mut head: Pin<&mut F>) -> Result<F::Output, FailureCause> {
        if let Some(ended) = &mut self.ended {
            tokio::select! {
                biased;
                head = &mut head => return Ok(head),
                _ended = ended => self.ended = None,
            }
        }
        timeout(self.after, head)
            .await
            .map_err(|_| FailureCause::ResponseTimeout(self.after))
    }
}
