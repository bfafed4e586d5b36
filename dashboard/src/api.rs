//! The client of the control API in this process: it sends what a client on the network would send.

use std::collections::VecDeque;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::ConnectInfo;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, ORIGIN, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use squall_control_api::access::{ByPage, OF_PROXIES};
use squall_dialects::stream::{Frame, Framing, Splitter};
use tower::ServiceExt as _;

/// Headers of the visitor on which access depends, or which identify the request.
const PASSED: [HeaderName; 4] = [
    HOST,
    ORIGIN,
    USER_AGENT,
    HeaderName::from_static("x-request-id"),
];

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A segment of a path, or a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// `path` with a query of the parameters.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    match query.extend_pairs(parameters).finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// The API, as one visitor may use it.
#[derive(Debug, Clone)]
pub(crate) struct ApiClient {
    router: Router,
    headers: HeaderMap,
    peer: Option<SocketAddr>,
}

/// Why the API did not do it: its problem document (RFC 9457).
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct ApiError {
    #[serde(default)]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) detail: String,
    #[serde(default)]
    pub(crate) errors: Vec<ApiErrorDetail>,
}

/// One of the problems of a document.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ApiErrorDetail {
    pub(crate) detail: String,
    #[serde(default)]
    pub(crate) pointer: Option<String>,
}

impl ApiError {
    /// An error of the dashboard itself.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status: status.as_u16(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            detail: detail.into(),
            errors: Vec::new(),
        }
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn of(status: StatusCode, body: &[u8]) -> Self {
        serde_json::from_slice(body)
            .ok()
            .filter(|error: &Self| error.status == status.as_u16())
            .unwrap_or_else(|| Self::new(status, String::from_utf8_lossy(body)))
    }
}

/// A document as it was written.
#[derive(Debug)]
pub(crate) struct ApiText {
    pub(crate) text: String,
    /// Its entity tag.
    pub(crate) tag: Option<String>,
}

/// A list of the API.
#[derive(Debug, Deserialize)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    #[serde(default)]
    pub(crate) next_cursor: Option<String>,
}

impl ApiClient {
    /// For the visitor that sent `parts`, with the token of its session.
    pub(crate) fn of(router: Router, parts: &Parts, token: Option<&str>) -> Self {
        let mut headers = HeaderMap::new();
        let of_proxies = OF_PROXIES.map(HeaderName::from_static);
        for name in PASSED.iter().chain(&of_proxies) {
            for value in parts.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        // HTTP/2 has no Host.
        if let Some(authority) = parts.uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            headers.insert(HOST, host);
        }
        let bearer = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}")));
        if let Some(Ok(mut bearer)) = bearer {
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Self {
            router,
            headers,
            peer: peer.map(|peer| peer.0),
        }
    }

    /// The same API for the visitor that sent `parts`.
    pub(crate) fn for_visitor(&self, parts: &Parts, token: Option<&str>) -> Self {
        Self::of(self.router.clone(), parts, token)
    }

    /// The document at `path`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        let (_, body) = self.whole(self.request(Method::GET, path)).await?;
        serde_json::from_slice(&body).map_err(|error| {
            let detail = format!("GET {path} cannot be read: {error}");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        })
    }

    /// The text at `path`, such as metrics.
    pub(crate) async fn text(&self, path: &str) -> Result<String, ApiError> {
        let (_, body) = self.whole(self.request(Method::GET, path)).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends a JSON document, or nothing; returns the response's.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        document: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let mut request = self.request(method, path);
        if let Some(document) = document {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            *request.body_mut() = Body::from(document.to_string());
        }
        let (_, body) = self.whole(request).await?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The document at `path` as it was written.
    pub(crate) async fn document(&self, path: &str) -> Result<ApiText, ApiError> {
        let mut request = self.request(Method::GET, path);
        let yaml = HeaderValue::from_static("application/yaml");
        request.headers_mut().insert(ACCEPT, yaml);
        let (headers, body) = self.whole(request).await?;
        let tag = headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        Ok(ApiText {
            text: String::from_utf8_lossy(&body).into_owned(),
            tag: tag.map(str::to_owned),
        })
    }

    /// Sends a text in YAML, on a condition; returns the response's.
    pub(crate) async fn send_text(
        &self,
        method: Method,
        path: &str,
        text: &str,
        condition: Option<(HeaderName, &str)>,
    ) -> Result<String, ApiError> {
        let mut request = self.request(method, path);
        let yaml = HeaderValue::from_static("application/yaml");
        request.headers_mut().insert(CONTENT_TYPE, yaml);
        if let Some((name, value)) = condition
            && let Ok(value) = HeaderValue::from_str(value)
        {
            request.headers_mut().insert(name, value);
        }
        *request.body_mut() = Body::from(text.to_owned());
        let (_, body) = self.whole(request).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// A stream of events.
    pub(crate) async fn events(&self, path: &str) -> Result<Events, ApiError> {
        let response = self.answered(self.request(Method::GET, path)).await?;
        Ok(Events {
            body: response.into_body().into_data_stream(),
            splitter: Splitter::new(Framing::Sse, usize::MAX),
            frames: VecDeque::new(),
        })
    }

    /// The response with its headers, for the visitor.
    pub(crate) async fn download(&self, path: &str) -> Result<Response, ApiError> {
        self.answered(self.request(Method::GET, path)).await
    }

    /// A request of the visitor, without a body.
    fn request(&self, method: Method, path: &str) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        // Paths are made of encoded segments, so this cannot fail.
        *request.uri_mut() = path.parse().unwrap_or_default();
        request.headers_mut().extend(self.headers.clone());
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(ACCEPT, json);
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        request.extensions_mut().insert(ByPage("dashboard"));
        request
    }

    /// The response, if it is not an error.
    async fn answered(&self, request: Request<Body>) -> Result<Response, ApiError> {
        let answered = self.router.clone().oneshot(request).await;
        let response = answered.unwrap_or_else(|never| match never {});
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(ApiError::of(status, &whole(response.into_body()).await?))
    }

    async fn whole(&self, request: Request<Body>) -> Result<(HeaderMap, Bytes), ApiError> {
        let (parts, body) = self.answered(request).await?.into_parts();
        Ok((parts.headers, whole(body).await?))
    }
}

async fn whole(body: Body) -> Result<Bytes, ApiError> {
    let collected = body.collect().await.map_err(|error| {
        let detail = format!("the response broke off: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(collected.to_bytes())
}

/// Events of the API, parsed as they arrive.
pub(crate) struct Events {
    body: BodyDataStream,
    splitter: Splitter,
    frames: VecDeque<Frame>,
}

impl Events {
    /// The next event's name and document; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some(frame) = self.frames.pop_front() {
                let name = frame.name().unwrap_or_default().to_owned();
                let data = frame.data().map(|data| serde_json::from_slice(&data));
                if let Some(Ok(data)) = data {
                    return Some((name, data));
                }
            }
            let chunk = self.body.next().await?.ok()?;
            self.frames.extend(self.splitter.push(&chunk));
        }
    }
}
