//! Decides which thread answers a request.
//!
//! The thread that accepts connections also handles times to live and signals, so it must not block. It answers
//! `/healthz` and requests that end chaos, and passes all others to the worker runtime. Either way the work continues
//! to its end, even if the client disconnects.

use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt as _;
use http::Method;
use squall_proxy::descriptors;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tracing::Instrument as _;

use crate::access::{AccessRule, Needs};
use crate::problem::ApiProblem;

/// The runtimes and limits for requests.
#[derive(Debug, Clone)]
pub(crate) struct Dispatch {
    work: Handle,
    rules: Arc<[AccessRule]>,
    /// Permits for requests that are not urgent.
    free: Arc<Semaphore>,
}

impl Dispatch {
    /// Permits that leave a quarter of the API's connections to urgent requests.
    pub(crate) fn new(work: Handle, rules: Arc<[AccessRule]>) -> Self {
        let most = descriptors::of_api(descriptors::limit());
        let free = Arc::new(Semaphore::new(most - most / 4));
        Self { work, rules, free }
    }

    /// The rule of a request's route. HEAD uses the route of GET.
    fn rule(&self, request: &Request) -> Option<AccessRule> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        let method = match *request.method() {
            Method::HEAD => &Method::GET,
            ref method => method,
        };
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| rule.path == path && rule.method == method);
        rule.copied()
    }
}

/// The middleware in front of the guard and the routes.
pub(crate) async fn dispatch(
    State(dispatch): State<Dispatch>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiProblem> {
    if let Some(rule) = dispatch.rule(&request) {
        request.extensions_mut().insert(rule.needs);
        if rule.needs == Needs::EndsChaos || rule.path == "/healthz" {
            let (response, ()) = answered(&Handle::current(), request, next, ()).await?;
            return Ok(response);
        }
    }
    let Ok(permit) = Arc::clone(&dispatch.free).try_acquire_owned() else {
        let detail = "too many requests are in progress; try again later";
        return Err(ApiProblem::not_ready(detail));
    };
    let (response, permit) = answered(&dispatch.work, request, next, permit).await?;
    Ok(response.map(|body| streamed(body, permit, &dispatch.work)))
}

/// The response from `runtime`; the work keeps `held` until its end.
async fn answered<T: Send + 'static>(
    runtime: &Handle,
    request: Request,
    next: Next,
    held: T,
) -> Result<(Response, T), ApiProblem> {
    let answer = async move { (next.run(request).await, held) };
    let answering = runtime.spawn(answer.in_current_span());
    answering.await.map_err(|error| {
        tracing::error!("a request was not answered: {error}");
        ApiProblem::internal("Squall failed while it answered this request; its log says where")
    })
}

/// Bodies that are produced while they are sent, such as event streams, are produced by the worker runtime.
fn streamed(body: Body, permit: OwnedSemaphorePermit, work: &Handle) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    let (sender, mut receiver) = mpsc::channel(1);
    work.spawn(async move {
        let _in_progress = permit;
        let mut chunks = body.into_data_stream();
        loop {
            let chunk = tokio::select! {
                chunk = chunks.next() => chunk,
                () = sender.closed() => None,
            };
            let Some(chunk) = chunk else { return };
            if sender.send(chunk).await.is_err() {
                return;
            }
        }
    });
    Body::from_stream(futures_util::stream::poll_fn(move |cx| {
        receiver.poll_recv(cx)
    }))
}
