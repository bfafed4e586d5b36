//! Names of headers and query parameters whose values are secrets.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Words that make a secret of a header when they are one of its hyphenated parts.
const HEADER_WORDS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "cookie2",
    "credential",
    "credentials",
    "jwt",
    "passwd",
    "password",
    "secret",
    "signature",
    "token",
];

/// Headers that end in `-key` and hold none.
const HARMLESS_KEYS: &[&str] = &[
    "idempotency-key",
    "x-idempotency-key",
    "sec-websocket-key",
    "surrogate-key",
    "x-cache-key",
];

/// Whether a header's value is a secret by the header's name, in any letter case: `authorization`,
/// `cookie`, `x-api-key` and everything named like them.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has_word = name
        .split(['-', '_'])
        .any(|part| HEADER_WORDS.contains(&part));
    has_word || (name.ends_with("-key") && !HARMLESS_KEYS.contains(&name.as_str()))
}

/// Parameters whose value is a secret, in lower case without `-`, `_` and `.`.
const PARAMETERS: &[&str] = &[
    "assertion",
    "auth",
    "authorization",
    "awsaccesskeyid",
    "clientassertion",
    "credential",
    "credentials",
    "jwt",
    "key",
    "otp",
    "passwd",
    "pwd",
    "sig",
    "xamzcredential",
    "xgoogcredential",
    "subscriptionkey",
];

/// Endings that make a secret of a parameter.
const PARAMETER_ENDINGS: &[&str] = &[
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "passphrase",
    "password",
    "sessionid",
    "secret",
    "signature",
    "token",
];

/// Cursors are called tokens too.
const CURSORS: &[&str] = &["pagetoken", "continuationtoken", "cursortoken", "nexttoken"];

/// Whether a query parameter's value is a secret by its name, percent-encoded or not.
pub(super) fn is_secret_parameter(name: &str) -> bool {
    let decoded: Cow<'_, str> = percent_decode_str(name).decode_utf8_lossy();
    let word: String = decoded
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | '[' | ']'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let ends_with = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    PARAMETERS.contains(&word.as_str()) || (ends_with(PARAMETER_ENDINGS) && !ends_with(CURSORS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_carry_credentials_are_known() {
        for (name, secret) in [
            ("Authorization", true),
            ("proxy-authorization", true),
            ("Cookie", true),
            ("set-cookie", true),
            ("x-api-key", true),
            ("api-key", true),
            ("X-Goog-Api-Key", true),
            ("ocp-apim-subscription-key", true),
            ("x-amz-security-token", true),
            ("x-auth-token", true),
            ("x-functions-key", true),
            ("x-hub-signature", true),
            ("idempotency-key", false),
            ("sec-websocket-key", false),
            ("x-ratelimit-remaining-tokens", false),
            ("content-type", false),
            ("www-authenticate", false),
            ("mcp-session-id", false),
        ] {
            assert_eq!(is_secret_header(name), secret, "{name}");
        }
    }

    #[test]
    fn parameters_that_carry_credentials_are_known() {
        for (name, secret) in [
            ("key", true),
            ("api_key", true),
            ("apiKey", true),
            ("%6bey", true),
            ("access_token", true),
            ("client_secret", true),
            ("password", true),
            ("X-Amz-Signature", true),
            ("x-amz-security-token", true),
            ("user[token]", true),
            ("next_page_token", false),
            ("max_tokens", false),
            ("keyword", false),
            ("monkey", false),
            ("design", false),
        ] {
            assert_eq!(is_secret_parameter(name), secret, "{name}");
        }
    }
}
