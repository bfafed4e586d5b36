//! The client of the control API.

mod events;
mod following;

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use squall_harness::dial::innermost;

pub(crate) use self::events::ServerEvent;
pub(crate) use self::following::Following;
use crate::args::RemoteArgs;
use crate::failure::Failure;
use crate::pointing::encode;
use crate::problem::ProblemResponse;
use crate::variables;

/// The path of runs.
pub(crate) const RUNS: &str = "/v1/runs";

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct ResponsePage<T> {
    /// The entries.
    pub(crate) items: Vec<T>,
    /// Where the next page begins.
    pub(crate) next_cursor: Option<String>,
}

const NOT_SQUALL: &str = "answers, but it is not Squall's control API";

/// A connection to one daemon's control API.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// `http://host:port`, without a slash at the end.
    server: String,
    token: Option<String>,
}

impl Client {
    /// A client for the daemon of `--server`.
    pub(crate) fn new(remote: &RemoteArgs) -> Result<Self, Failure> {
        Self::with_token(&remote.server, remote.token.as_deref())
    }

    /// A client with the token of `--token`, else the one of the environment.
    pub(crate) fn with_token(server: &str, token: Option<&str>) -> Result<Self, Failure> {
        let token = match token {
            Some(token) => Some(token.to_owned()),
            None => variables::token()?,
        };
        Self::to(server, token)
    }

    /// A client for the daemon at `server`; `http://` may be left out.
    pub(crate) fn to(server: &str, token: Option<String>) -> Result<Self, Failure> {
        let server = match server.split_once("://") {
            Some(_) => server.to_owned(),
            None => format!("http://{server}"),
        };
        let is_http = server.starts_with("http://") || server.starts_with("https://");
        let uri = server.parse::<http::Uri>();
        if !is_http || !uri.is_ok_and(|uri| uri.host().is_some()) {
            return Err(Failure::Usage(format!(
                "`{server}` is not a daemon's address; write `http://127.0.0.1:7071`"
            )));
        }
        let http = client_builder()
            // The API is never reached through a proxy: the variables point to Squall itself.
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
            .build()
            .map_err(|error| Failure::could_not("the HTTP client", error))?;
        Ok(Self {
            http,
            server: server.trim_end_matches('/').to_owned(),
            // An empty variable counts as not set.
            token: token.filter(|token| !token.is_empty()),
        })
    }

    /// The daemon's address.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// The daemon's host, as in `--server`.
    pub(crate) fn host(&self) -> String {
        let uri: Option<http::Uri> = self.server.parse().ok();
        uri.and_then(|uri| uri.host().map(str::to_owned))
            .unwrap_or_default()
    }

    /// The address of the daemon's proxy.
    pub(crate) async fn proxy(&self) -> Result<SocketAddr, Failure> {
        let ready: Value = self.get("/readyz").await?;
        proxy_of(&ready).ok_or_else(|| self.foreign(NOT_SQUALL))
    }

    /// GET, a JSON response.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let response = self.send(self.request(Method::GET, path)).await?;
        self.document(response).await
    }

    /// GET, all pages of a list. `path` may have a query.
    pub(crate) async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, Failure> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
        let mut page: ResponsePage<T> = self.get(path).await?;
        loop {
            items.append(&mut page.items);
            let Some(cursor) = page.next_cursor else {
                return Ok(items);
            };
            page = self
                .get(&format!("{path}{separator}cursor={}", encode(&cursor)))
                .await?;
        }
    }

    /// GET, a JSON response with any status.
    pub(crate) async fn get_any<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let response = self.respond(self.request(Method::GET, path)).await?;
        self.document(response).await
    }

    /// GET, a response in another format than JSON.
    pub(crate) async fn get_text(&self, path: &str, accept: &str) -> Result<String, Failure> {
        let request = self.request(Method::GET, path).header("accept", accept);
        let response = self.send(request).await?;
        self.of_type(response, accept)?
            .text()
            .await
            .map_err(|error| self.unreachable(&error))
    }

    /// PUT, with JSON request and response.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let request = self.request(Method::PUT, path).json(body);
        self.document(self.send(request).await?).await
    }

    /// POST, with JSON request and response.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let request = self.request(Method::POST, path).json(body);
        self.document(self.send(request).await?).await
    }

    /// PUT, with a text of any media type.
    pub(crate) async fn put_text(
        &self,
        path: &str,
        content_type: &str,
        text: String,
    ) -> Result<(), Failure> {
        let request = self
            .request(Method::PUT, path)
            .header("content-type", content_type)
            .body(text);
        self.send(request).await.map(drop)
    }

    /// DELETE.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(self.request(Method::DELETE, path))
            .await
            .map(drop)
    }

    /// The event stream after `last`, else from now on.
    async fn events(&self, path: &str, last: Option<&str>) -> Result<Response, Failure> {
        let mut request = self
            .request(Method::GET, path)
            .header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = self.send(request).await?;
        self.of_type(response, "text/event-stream")
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.server));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn respond(&self, request: RequestBuilder) -> Result<Response, Failure> {
        request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = self.respond(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        // A gateway in front of a daemon may require credentials or fail to reach it. Any other error that is not
        // a problem document comes from another program.
        let in_front = [401, 403, 407].contains(&status.as_u16()) || status.is_server_error();
        if !in_front && !is_of_type(&response, "application/problem+json") {
            return Err(self.foreign(NOT_SQUALL));
        }
        let body = response.bytes().await.unwrap_or_default();
        let problem = ProblemResponse::read(status, &body);
        if problem.is_the_proxys() {
            return Err(self.foreign("is Squall's proxy, not its control API"));
        }
        Err(problem.into())
    }

    async fn document<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failure> {
        let body = response
            .bytes()
            .await
            .map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body).map_err(|error| {
            tracing::debug!(%error, "the response cannot be parsed");
            self.foreign(NOT_SQUALL)
        })
    }

    /// The response, if it has the media type that was requested.
    fn of_type(&self, response: Response, media_type: &str) -> Result<Response, Failure> {
        if is_of_type(&response, media_type) {
            Ok(response)
        } else {
            Err(self.foreign(NOT_SQUALL))
        }
    }

    /// Another program is at the address.
    fn foreign(&self, what: &str) -> Failure {
        Failure::CouldNotRun(format!(
            "{} {what}; pass the address that `squall serve` prints as `api on http://…` with `--server`",
            self.server
        ))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        Failure::Unreachable {
            server: self.server.clone(),
            cause: innermost(error),
        }
    }
}

/// Whether the `Content-Type` of a response is a media type.
fn is_of_type(response: &Response, media_type: &str) -> bool {
    let header = response.headers().get(http::header::CONTENT_TYPE);
    header
        .and_then(|header| header.to_str().ok())
        .and_then(|header| header.split(';').next())
        .is_some_and(|found| found.trim().eq_ignore_ascii_case(media_type))
}

/// A client builder with our TLS provider in place.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// The address of the proxy in a response of `/readyz`.
pub(crate) fn proxy_of(ready: &Value) -> Option<SocketAddr> {
    let mut listeners = ready["listeners"].as_array()?.iter();
    let proxy = listeners.find(|one| one["name"] == "proxy")?;
    proxy["address"].as_str()?.parse().ok()
}

/// A path with a query. The first segment is written as it is; the others and the values are percent-encoded.
pub(crate) fn path(segments: &[&str], query: &[(&str, Option<String>)]) -> String {
    let encoded = segments
        .iter()
        .skip(1)
        .map(|name| format!("/{}", encode(name)));
    let first = segments.first().copied().unwrap_or_default().to_owned();
    let path: String = std::iter::once(first).chain(encoded).collect();
    let given = query
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let given: Vec<_> = given
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    let mark = if given.is_empty() { "" } else { "?" };
    format!("{path}{mark}{}", given.join("&"))
}
