//! Fingerprints: equal for requests that are the same apart from volatile parts.
//!
//! Draws depend on the fingerprint, so it must be equal when an agent repeats a request, in this
//! run or the next. It covers method, URL and body. Headers are excluded, so trace and idempotency
//! headers have no influence.
//!
//! In a JSON body, the order of object members does not matter, and these are excluded:
//! - members that name a call or a time (`tool_call_id`, `timestamp`, the `id` of a JSON-RPC call
//!   or of a tool call);
//! - `stream_id`, and the type `response.create`: the same call over HTTP has neither;
//! - generated strings (UUIDs, RFC 3339 times and, under `id` and `…_id`, long random ones).
//!
//! Any other body, and one with more than 100,000 values, counts byte for byte. A body that was not
//! read is excluded.

use std::fmt;

use http::Method;
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::facts::{Body, Facts};

/// A request without its volatile parts, as 64 bits. `Display` prints 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u64);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Members that are always excluded, at any depth.
const VOLATILE: &[&str] = &[
    "call_id",
    "created",
    "created_at",
    "event_id",
    "idempotency_key",
    "message_id",
    "messageid",
    "nonce",
    "progresstoken",
    "request_id",
    "run_id",
    "span_id",
    "timestamp",
    "tool_call_id",
    "tool_use_id",
    "trace_id",
    "traceparent",
    "tracestate",
    "updated_at",
];

impl Fingerprint {
    /// The fingerprint of the request that `facts` describe.
    pub fn of(facts: &Facts<'_>) -> Self {
        Self::of_body(facts.method, facts.url.as_str(), facts.body.as_ref())
    }

    /// The fingerprint of a request. `url` is in the form of
    /// [`CanonicalUrl`](crate::facts::CanonicalUrl), the body is decoded, and empty if it was not
    /// read.
    pub fn of_request(method: &Method, url: &str, body: &[u8]) -> Self {
        Self::of_body(method, url, Some(&body.into()))
    }

    fn of_body(method: &Method, url: &str, body: Option<&Body<'_>>) -> Self {
        let mut hash = Xxh3::new();
        part(&mut hash, method.as_str().as_bytes());
        part(&mut hash, url.as_bytes());
        if let Some(body) = body.filter(|body| !body.bytes.is_empty()) {
            let document = body.json().as_ref().map(|tree| &tree.value);
            match document {
                Ok(document @ (Value::Object(_) | Value::Array(_))) => {
                    value(&mut hash, document, is_json_rpc(document));
                }
                _ => part(&mut hash, body.bytes),
            }
        }
        Self(hash.digest())
    }
}

/// Hashes the bytes with their length, so that the boundaries of parts matter.
fn part(hash: &mut Xxh3, bytes: &[u8]) {
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// Hashes a value; `names_a_call` is true if its member `id` identifies a call.
fn value(hash: &mut Xxh3, value_: &Value, names_a_call: bool) {
    match value_ {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Number(number) => {
            hash.update(b"#");
            part(hash, number.to_string().as_bytes());
        }
        Value::String(text) if is_uuid(text) || is_time(text) => hash.update(b"v"),
        Value::String(text) => {
            hash.update(b"s");
            part(hash, text.as_bytes());
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                value(hash, item, is_tool_call(item) || is_json_rpc(item));
            }
            hash.update(b"]");
        }
        Value::Object(members) => {
            let mut kept: Vec<_> = members
                .iter()
                .filter(|(key, member)| !is_volatile(key, member, names_a_call))
                .collect();
            kept.sort_unstable_by_key(|(key, _)| *key);
            hash.update(b"{");
            for (key, member) in kept {
                part(hash, key.as_bytes());
                value(hash, member, false);
            }
            hash.update(b"}");
        }
    }
}

/// A JSON-RPC message or a list of them: its `id` is generated per call.
fn is_json_rpc(value: &Value) -> bool {
    value.get("jsonrpc").is_some()
}

/// An element of `tool_calls` or a `tool_use` block: its `id` is generated per call.
fn is_tool_call(value: &Value) -> bool {
    value.get("function").is_some()
        || value
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| {
                matches!(kind, "tool_use" | "function_call" | "function_call_output")
            })
}

fn is_volatile(key: &str, member: &Value, names_a_call: bool) -> bool {
    let key = key.to_ascii_lowercase();
    if VOLATILE.contains(&key.as_str()) || (key == "id" && names_a_call) {
        return true;
    }
    // Only a WebSocket's messages have these.
    if key == "stream_id" || (key == "type" && member == "response.create") {
        return true;
    }
    let named_id = key == "id" || key.ends_with("_id");
    named_id && member.as_str().is_some_and(looks_random)
}

/// A long single word with letters and several digits, unlike a name chosen by a person.
fn looks_random(text: &str) -> bool {
    let word = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.bytes().filter(u8::is_ascii_alphabetic).count();
    text.len() >= 20 && word && digits >= 3 && letters >= 3
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A date with a time, as in RFC 3339.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    (19..=40).contains(&bytes.len())
        && bytes[..19].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            10 => b"Tt ".contains(byte),
            13 | 16 => *byte == b':',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Fingerprint {
        Fingerprint::of_request(
            &Method::POST,
            "https://api.example/v1/chat",
            body.as_bytes(),
        )
    }

    #[test]
    #[rustfmt::skip]
    fn what_is_volatile_does_not_count() {
        for (one, other, same) in [
            (r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, true),
            (r#"{"a":1}"#, r#"{"a":2}"#, false),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#, false),
            (r#"{"timestamp":1}"#, r#"{"timestamp":2}"#, true),
            (r#"{"timestamp":1}"#, "{}", true),
            (r#"{"id":"acct_1"}"#, r#"{"id":"acct_2"}"#, false),
            (r#"{"id":7}"#, r#"{"id":8}"#, false),
            (r#"{"jsonrpc":"2.0","id":7}"#, r#"{"jsonrpc":"2.0","id":8}"#, true),
            (
                r#"{"jsonrpc":"2.0","id":7,"params":{"id":1}}"#,
                r#"{"jsonrpc":"2.0","id":7,"params":{"id":2}}"#,
                false,
            ),
            (
                r#"[{"jsonrpc":"2.0","id":7,"method":"a"},{"jsonrpc":"2.0","id":8,"method":"b"}]"#,
                r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#,
                true,
            ),
            (
                r#"[{"jsonrpc":"2.0","id":7,"method":"a"},{"jsonrpc":"2.0","id":8,"method":"b"}]"#,
                r#"[{"jsonrpc":"2.0","id":7,"method":"b"},{"jsonrpc":"2.0","id":8,"method":"a"}]"#,
                false,
            ),
            (
                r#"{"tool_calls":[{"id":"call_1","function":{}}]}"#,
                r#"{"tool_calls":[{"id":"call_2","function":{}}]}"#,
                true,
            ),
            (r#"{"user_id":"usr_8fJ2kd93Lsl20dkWq1"}"#, r#"{"user_id":"usr_1Ba7xk03Pqm44zzTy8"}"#, true),
            (
                r#"{"x":"9f2c1a34-0000-4000-8000-0123456789ab"}"#,
                r#"{"x":"9f2c1a34-1111-4000-8000-0123456789ab"}"#,
                true,
            ),
            (r#"{"x":"2026-11-21T10:00:00Z"}"#, r#"{"x":"2026-11-22T11:30:00.5Z"}"#, true),
            (r#"{"x":"2026-11-21"}"#, r#"{"x":"2026-11-22"}"#, false),
            (r#"{"x":12345678901234567890}"#, r#"{"x":12345678901234567891}"#, false),
            ("a=1&b=2", "b=2&a=1", false),
            ("", "{}", false),
        ] {
            assert_eq!(of(one) == of(other), same, "{one} and {other}");
        }
    }

    /// Golden values: draws depend on them, and a seed must replay in every later release.
    #[test]
    fn fingerprints_never_change_between_releases() {
        for (body, expected) in [
            ("", "6fc4ed855fc8bd1a"),
            ("plain text", "f1beff7e434a6161"),
            (
                r#"{"model":"gpt-4o","stream":true,"n":1.50,"user":null}"#,
                "65b585fff5fccc1a",
            ),
        ] {
            assert_eq!(of(body).to_string(), expected, "{body}");
        }
    }

    #[test]
    fn method_and_url_count() {
        let url = |path| format!("https://api.example{path}");
        let base = Fingerprint::of_request(&Method::GET, &url("/a?b=1"), b"");
        assert_ne!(
            base,
            Fingerprint::of_request(&Method::PUT, &url("/a?b=1"), b"")
        );
        assert_ne!(
            base,
            Fingerprint::of_request(&Method::GET, &url("/a?b=2"), b"")
        );
    }
}
