//! The scope of a request.
//!
//! In order of priority: the `x-squall-scope` header, the path prefix `/_scope/SCOPE/` in reverse
//! mode, proxy credentials, the W3C `baggage` member `squall.scope`, a `traceparent` whose trace a
//! run has registered, the scope of the listener or route, the default scope.
//!
//! The name of a run's slot has lower priority than baggage and trace. It selects the slot's
//! current invocation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{HeaderName, PROXY_AUTHORIZATION};
use squall_journal::redact::Redactor;

use crate::headers::{AGENT, SCOPE};

const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
const PREFIX: &str = "/_scope/";
/// Longest scope name.
const MAX_LENGTH: usize = 128;

/// An invalid scope in a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadScope {
    /// An invalid name.
    #[error(
        "{place} names the scope `{given}`; a scope is 1 to {MAX_LENGTH} characters of a-z, A-Z, 0-9, `.`, `_` and `-`, \
         the first no `.`, and no key"
    )]
    Name { place: &'static str, given: String },
    /// Malformed credentials. They may be secret, so the error does not repeat them.
    #[error(
        "the credentials in Proxy-Authorization are not the base64 of `SCOPE:password`; write the \
         proxy's URL as http://SCOPE:x@HOST:PORT"
    )]
    Credentials,
}

/// Whether `name` is a valid scope name: 1 to 128 characters of `a-z A-Z 0-9 . _ -`, the first not
/// a dot. Clients remove `.` and `..` from paths. Names that look like keys are invalid, because
/// scope names are logged everywhere.
pub fn is_scope_name(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && Redactor::default().find(name).is_empty()
}

/// Validates a name at the ingress; all other code relies on it.
fn checked<'a>(name: &'a str, place: &'static str) -> Result<&'a str, BadScope> {
    if is_scope_name(name) {
        return Ok(name);
    }
    let mut given = name.chars().filter(|c| !c.is_control()).collect();
    Redactor::default().text(&mut given, 32);
    Err(BadScope::Name { place, given })
}

/// The scope of the `x-squall-scope` header, if any.
pub(crate) fn of_header(headers: &HeaderMap) -> Result<Option<&str>, BadScope> {
    let Some(value) = headers.get(SCOPE) else {
        return Ok(None);
    };
    let name = value.to_str().unwrap_or("\u{fffd}");
    checked(name.trim(), "the x-squall-scope header").map(Some)
}

/// The scope in a path `/_scope/SCOPE/rest`, and the rest including its `/`.
pub(crate) fn of_path(path: &str) -> Result<Option<(&str, &str)>, BadScope> {
    let Some(rest) = path.strip_prefix(PREFIX) else {
        return Ok(None);
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    Ok(Some((checked(name, "the path")?, rest)))
}

/// The user name of proxy credentials; `Some("")` for credentials without one.
pub(crate) fn of_credentials(headers: &HeaderMap) -> Result<Option<String>, BadScope> {
    let Some(decoded) = credentials(headers)? else {
        return Ok(None);
    };
    let user = decoded
        .split_once(':')
        .map_or(decoded.as_str(), |(user, _)| user);
    if user.is_empty() {
        return Ok(Some(String::new()));
    }
    checked(user, "the proxy user name").map(|user| Some(user.to_owned()))
}

/// The names that a request gives the calling agent, to be compared with those of `agents:`: the header, then the
/// password of proxy credentials.
pub(crate) fn agents_of(headers: &HeaderMap) -> impl Iterator<Item = String> + use<> {
    let header = headers.get(AGENT).and_then(|value| value.to_str().ok());
    let header = header.map(|name| name.trim().to_owned());
    let decoded = credentials(headers).ok().flatten();
    let password = decoded.and_then(|decoded| Some(decoded.split_once(':')?.1.to_owned()));
    header.into_iter().chain(password)
}

/// User name and password of proxy credentials.
fn credentials(headers: &HeaderMap) -> Result<Option<String>, BadScope> {
    let Some(value) = headers
        .get(PROXY_AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
    else {
        return Ok(None);
    };
    let Some((scheme, encoded)) = value.split_once(' ') else {
        return Ok(None);
    };
    if !scheme.eq_ignore_ascii_case("basic") {
        return Ok(None);
    }
    let decoded = STANDARD
        .decode(encoded.trim())
        .ok()
        .and_then(|raw| String::from_utf8(raw).ok())
        .ok_or(BadScope::Credentials)?;
    Ok(Some(decoded))
}

/// The scope in W3C baggage.
pub(crate) fn of_baggage(headers: &HeaderMap) -> Result<Option<&str>, BadScope> {
    for value in headers.get_all(BAGGAGE) {
        let Ok(value) = value.to_str() else { continue };
        for member in value.split(',') {
            let member = member.split(';').next().unwrap_or_default();
            let Some((key, name)) = member.split_once('=') else {
                continue;
            };
            if key.trim() == "squall.scope" {
                return checked(name.trim(), "the baggage member squall.scope").map(Some);
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_path_prefix_names_a_scope_and_is_taken_off() {
        for (path, expected) in [
            ("/_scope/cell-1/v1/x?y", Ok(Some(("cell-1", "/v1/x?y")))),
            ("/_scope/a", Ok(Some(("a", "")))),
            ("/v1/_scope/a", Ok(None)),
            ("/_scope//x", Err("")),
            ("/_scope/a%20b/x", Err("a%20b")),
        ] {
            assert_eq!(
                of_path(path),
                expected.map_err(|given| BadScope::Name {
                    place: "the path",
                    given: given.to_owned()
                })
            );
        }
    }

    #[test]
    fn credentials_name_a_scope_by_their_user() {
        for (value, expected) in [
            ("Basic Y2VsbDp4", Some("cell")),
            ("basic Y2VsbDp4", Some("cell")),
            ("Basic Ong=", Some("")),
            ("Bearer abc", None),
        ] {
            let found = of_credentials(&with(PROXY_AUTHORIZATION, value)).unwrap();
            assert_eq!(found.as_deref(), expected, "{value}");
        }
        let mute = of_credentials(&with(PROXY_AUTHORIZATION, "Basic ???"));
        assert_eq!(mute, Err(BadScope::Credentials));
    }

    #[test]
    fn baggage_is_searched_member_by_member() {
        for (value, expected) in [
            ("a=b, squall.scope=s1;p=1, c=d", Some("s1")),
            ("squall.scopes=x", None),
        ] {
            assert_eq!(of_baggage(&with(BAGGAGE, value)).unwrap(), expected);
        }
    }

    #[test]
    fn a_name_that_cannot_be_a_scope_is_said_so() {
        let error = of_header(&with(SCOPE, "a b")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the x-squall-scope header names the scope `a b`; a scope is 1 to 128 characters of \
             a-z, A-Z, 0-9, `.`, `_` and `-`, the first no `.`, and no key"
        );
        let error = of_header(&with(SCOPE, "sk-ant-api03-abcdefghijklmnopqrstuvwxyz")).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("the scope `REDACTED`;"), "{said}");
    }
}
