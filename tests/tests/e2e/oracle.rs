//! What each client stack reports when a connection or an answer breaks in a certain way.
//!
//! Confirmed against the simulator without Squall (see [`crate::breaks`]), then frozen: an injected
//! failure counts as the real thing when every stack reports the same for it.

use squall_tests::program::Way;

/// One way to break, as five stacks report it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Oracle {
    /// curl's exit code.
    pub(crate) curl: i32,
    /// The class that `requests` raises; through a proxy it may call it `ProxyError`, a kind of
    /// `ConnectionError`.
    pub(crate) requests: &'static str,
    /// The class that `httpx` raises.
    pub(crate) httpx: &'static str,
    /// The class that `aiohttp` raises.
    pub(crate) aiohttp: &'static str,
    /// Node's `fetch`: the code of the error's cause.
    pub(crate) fetch: &'static str,
}

/// RST where a head was due.
pub(crate) const RESET: Oracle = Oracle {
    curl: 56,
    requests: "ConnectionError",
    httpx: "ReadError",
    aiohttp: "ClientOSError",
    fetch: "ECONNRESET",
};

/// FIN where a head was due.
pub(crate) const CLOSED: Oracle = Oracle {
    curl: 52,
    requests: "ConnectionError",
    httpx: "RemoteProtocolError",
    aiohttp: "ServerDisconnectedError",
    fetch: "UND_ERR_SOCKET",
};

/// FIN before a body of announced length was whole.
pub(crate) const SHORT: Oracle = Oracle {
    curl: 18,
    requests: "ChunkedEncodingError",
    httpx: "RemoteProtocolError",
    aiohttp: "ClientPayloadError",
    fetch: "UND_ERR_SOCKET",
};

/// FIN before the last chunk.
pub(crate) const UNFINISHED: Oracle = Oracle {
    curl: 18,
    requests: "ChunkedEncodingError",
    httpx: "RemoteProtocolError",
    aiohttp: "ClientPayloadError",
    fetch: "UND_ERR_SOCKET",
};

impl Oracle {
    /// What every stack reports that does not report what it should, for a GET that goes `way`.
    pub(crate) fn disagreements(&self, way: &Way) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |stack: &str, found: String, expected: String| {
            if found != expected {
                wrong.push(format!("{way:?}: {stack} reports {found}, not {expected}"));
            }
        };
        let output = way.curl(&["--output", "/dev/null"]);
        let code = output.status.code().unwrap_or(-1);
        check("curl", code.to_string(), self.curl.to_string());
        // An RST that comes while httpx still writes is only noticed as an end.
        let late = |found: &str| self.httpx == "ReadError" && found == "RemoteProtocolError";
        for (stack, script, field, expected) in [
            ("requests", "requests_get.py", "error", self.requests),
            ("httpx", "httpx_get.py", "error", self.httpx),
            ("aiohttp", "aiohttp_get.py", "error", self.aiohttp),
            ("fetch", "fetch.mjs", "cause", self.fetch),
        ] {
            let told = way.ask(script, &[]);
            let found = told[field]
                .as_str()
                .map_or_else(|| told.to_string(), str::to_owned);
            let as_good = match stack {
                "requests" => way.proxy.is_some() && found == "ProxyError",
                "httpx" => way.url.starts_with("https:") && late(&found),
                // Node's TLS tells of an RST either way, without Squall as well.
                "fetch" => way.url.starts_with("https:") && found == "UND_ERR_SOCKET",
                _ => false,
            };
            if !as_good {
                check(stack, found, expected.to_owned());
            }
        }
        wrong
    }
}
