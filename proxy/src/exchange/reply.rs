//! Responses that the proxy sends itself.

use std::pin::Pin;
use std::rc::Rc;
use std::time::Instant;

use http::header::{CONNECTION, HeaderValue, PROXY_AUTHENTICATE};
use http::{Method, Response, StatusCode, Uri};
use squall_journal::record::Outcome;
use squall_profiles::facts::Kind;

use super::connection::Connection;
use super::log::ExchangeLog;
use super::observed::Observed;
use crate::abort::Abort;
use crate::body;
use crate::problem::Problem;

/// A future response; boxed, so that an idle connection does not hold memory for an exchange.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Response<Observed>, Abort>>>>;

/// The response with a problem, for the exchange of `log`.
pub(crate) fn problem(
    connection: &Rc<Connection>,
    problem: &Problem,
    log: &Rc<ExchangeLog>,
) -> Response<Observed> {
    let reply = problem.to_reply();
    let mut answer = Response::new(body::full(reply.body));
    *answer.status_mut() = reply.status;
    *answer.headers_mut() = reply.headers;
    if problem.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        let challenge = HeaderValue::from_static("Basic realm=\"squall scope\"");
        answer.headers_mut().insert(PROXY_AUTHENTICATE, challenge);
    }
    if !connection.is_h2() && closes(problem.status) {
        answer
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    connection.announce_close(&mut answer);
    log.answered(reply.status);
    log.captured_head(reply.status, answer.headers());
    answer.map(|body| Observed::new(body, connection, Some(Rc::clone(log))))
}

/// Rejects a request that did not become an exchange; the journal records it.
pub(crate) fn refuse(
    connection: &Rc<Connection>,
    why: &Problem,
    method: &Method,
    uri: &Uri,
) -> Response<Observed> {
    let engine = &connection.worker.engine;
    let url = if uri.authority().is_some() {
        uri.to_string()
    } else {
        format!("http://{}{}", connection.control.local(), uri.path())
    };
    let started = Instant::now();
    let chaos = engine.chaos.scope(None);
    let id = engine.recorder.begin(started);
    let note = chaos.note(id, started, Kind::Other, method.clone(), url);
    let log = ExchangeLog::open(connection, note, chaos);
    log.end(Outcome::Denied, Some(why.detail.clone()));
    problem(connection, why, &log)
}

/// Statuses after which an HTTP/1 connection closes: the bytes that follow may not be HTTP.
fn closes(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}
