//! The upgrade of a WebSocket of model calls: what it is for, and which extensions it uses.

use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, Method, StatusCode, Uri};
use squall_dialects::{Dialect, Target, endpoint};

use super::frames::MessageInflater;
use super::protocol::Protocol;
use crate::compiled::CompiledConfig;
use crate::config::WebSocketCalls;
use crate::headers;
use crate::problem::Problem;
use squall_profiles::activation::Snapshot;
use squall_profiles::facts::{CanonicalUrl, Facts, Kind};
use squall_profiles::verdict::RuleVerdict;

/// Fields of the upgrade that the calls on it do not have.
const OF_THE_UPGRADE: [HeaderName; 8] = [
    CONNECTION,
    UPGRADE,
    CONTENT_LENGTH,
    SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION,
];

/// An upgrade to a WebSocket that carries model calls.
pub(crate) struct ModelSocket {
    pub(super) protocol: Protocol,
    /// The dialect of the calls on it.
    pub(crate) dialect: &'static dyn Dialect,
    /// Their URL.
    url: CanonicalUrl,
    /// The request target, as the agent wrote it.
    pub(super) target: Uri,
    /// The fields of each call on it: those of the upgrade, as a POST has them.
    pub(super) headers: HeaderMap,
    /// The configuration lets it pass unread.
    pub(crate) passes: bool,
}

impl ModelSocket {
    /// Recognises such an upgrade by its URL; `Err` if the configuration refuses it.
    pub(crate) fn of(
        config: &CompiledConfig,
        url: &CanonicalUrl,
        target: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<Box<Self>>, Problem> {
        if !headers::wants_websocket(headers) {
            return Ok(None);
        }
        let Some((dialect, protocol)) = protocol(config, url, headers) else {
            return Ok(None);
        };
        let calls = config.websocket_calls(url);
        if calls == WebSocketCalls::Refuse {
            return Err(refused(url));
        }
        let mut headers = headers.clone();
        for name in OF_THE_UPGRADE {
            headers.remove(name);
        }
        // HTTP/2 has none.
        if let Some(authority) = target.authority().filter(|_| !headers.contains_key(HOST))
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            headers.insert(HOST, host);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Some(Box::new(Self {
            protocol,
            dialect,
            url: url.clone(),
            target: target.clone(),
            headers,
            passes: calls == WebSocketCalls::Pass,
        })))
    }
}

impl ModelSocket {
    /// Why the calls on it are not read if the upstream accepts with `answer`; `None`: they are.
    pub(crate) fn unread(&self, answer: &HeaderMap) -> Option<String> {
        if self.passes {
            let why = "the WebSocket passes unread: `llm:` has `websocket: pass` for it";
            return Some(why.to_owned());
        }
        let extension = extensions(answer).err()?;
        Some(format!(
            "the WebSocket passes unread: its extension `{extension}` is unknown"
        ))
    }

    /// The verdicts of rules for its calls, which are bypassed because of `why`.
    pub(crate) fn bypassed(&self, rules: &Snapshot, why: &str) -> Vec<RuleVerdict> {
        let facts = Facts {
            kind: Kind::Llm,
            dialect: Some(self.dialect.name()),
            tools: &[],
            rpc_tool_call: false,
            mcp_tool_list: false,
            from: None,
            may_be_rpc: false,
            method: &Method::POST,
            url: &self.url,
            headers: &self.headers,
            model: None,
            stream: None,
            results: None,
            body: None,
        };
        rules.bypass(&facts, why)
    }
}

fn protocol(
    config: &CompiledConfig,
    url: &CanonicalUrl,
    headers: &HeaderMap,
) -> Option<(&'static dyn Dialect, Protocol)> {
    let path = Target::new(url.path_and_query());
    let dialect = match config.llm_dialect(url) {
        Some(named) => endpoint::at(named, &Method::POST, path, headers),
        None => squall_dialects::recognise(&Method::POST, path),
    };
    let dialect = dialect?;
    Some((dialect, Protocol::of(dialect)?))
}

fn refused(url: &CanonicalUrl) -> Problem {
    Problem::new(
        StatusCode::UPGRADE_REQUIRED,
        "websocket-refused",
        "WebSocket refused",
        format!(
            "`llm:` has `websocket: refuse` for {}: use HTTP",
            url.as_str()
        ),
    )
}

/// The decompressors of both directions, agent first, by the extensions that the upstream accepted;
/// an error names an extension that cannot be read.
pub(super) fn extensions(answer: &HeaderMap) -> Result<[Option<MessageInflater>; 2], String> {
    let mut accepted = [None, None];
    for value in answer.get_all(SEC_WEBSOCKET_EXTENSIONS) {
        let value = String::from_utf8_lossy(value.as_bytes());
        for extension in value.split(',') {
            let mut pieces = extension.split(';').map(str::trim);
            match pieces.next() {
                Some("permessage-deflate") => {
                    let parameters: Vec<_> = pieces.collect();
                    let resets = |name| parameters.contains(&name);
                    accepted = [
                        Some(MessageInflater::new(resets("client_no_context_takeover"))),
                        Some(MessageInflater::new(resets("server_no_context_takeover"))),
                    ];
                }
                Some("") | None => {}
                Some(other) => return Err(other.to_owned()),
            }
        }
    }
    Ok(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_extensions_are_read() {
        for (accepted, compresses) in [
            (&[][..], Ok(false)),
            (&["permessage-deflate"][..], Ok(true)),
            (
                &["permessage-deflate; server_no_context_takeover"],
                Ok(true),
            ),
            (&["x-webkit-deflate-frame"], Err("x-webkit-deflate-frame")),
            (&["permessage-deflate", "mux; max=4"], Err("mux")),
        ] {
            let headers = accepted
                .iter()
                .map(|value| (SEC_WEBSOCKET_EXTENSIONS, HeaderValue::from_static(value)));
            let read = extensions(&headers.collect());
            let read = read.map(|both| both.iter().all(Option::is_some));
            assert_eq!(
                read.as_ref().map_err(String::as_str),
                compresses.as_ref().map_err(|name| *name),
                "{accepted:?}"
            );
        }
    }
}
