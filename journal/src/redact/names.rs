//! Names of headers and query parameters whose values are secrets.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Words that make a secret of a header when they are one of its hyphenated parts.
const HEADER_WORDS: &[&str] = &[
    "auth",
    "authorization",
    "cookie",
    "cookie2",
    "credential",
    "credentials",
    "jwt",
    "passcode",
    "signature",
    "token",
];

/// Endings of such a part.
const HEADER_ENDINGS: &[&str] = &[
    "accesstoken",
    "apikey",
    "authtoken",
    "otp",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
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
    let name = name.to_ascii_lowercase().replace('_', "-");
    let mut parts = name.split('-');
    let has_word =
        parts.any(|part| HEADER_WORDS.contains(&part) || ends_with(part, HEADER_ENDINGS));
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
    let word = word(&decoded);
    let word = word.as_str();
    PARAMETERS.contains(&word) || (ends_with(word, PARAMETER_ENDINGS) && !ends_with(word, CURSORS))
}

/// A name in lower case without what separates its words.
fn word(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | '[' | ']'))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

fn ends_with(word: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| word.ends_with(ending))
}

/// Members of JSON whose text is a secret, written as [`PARAMETERS`]. Narrower: `key` and `sig` are common
/// words of answers.
const MEMBERS: &[&str] = &[
    "auth",
    "authorization",
    "clientassertion",
    "credential",
    "credentials",
    "jwt",
    "otp",
    "subscriptionkey",
];

/// Endings that make a secret of a member. Not `signature`: what models think is signed, and they want it
/// back. Not `sessionid`: agents and tools name their conversations so.
const MEMBER_ENDINGS: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authtoken",
    "bearertoken",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "refreshtoken",
    "secret",
    "secretkey",
    "securitytoken",
    "sessiontoken",
];

/// Members called tokens that let nobody in: places in lists, numbers of requests, and pieces of texts.
const HARMLESS_TOKENS: &[&str] = &[
    "addedtoken",
    "audiotoken",
    "backwardtoken",
    "bostoken",
    "cachedtoken",
    "clstoken",
    "decodedtoken",
    "endtoken",
    "eostoken",
    "eottoken",
    "firsttoken",
    "forwardtoken",
    "idempotencytoken",
    "imagetoken",
    "inputtoken",
    "lasttoken",
    "masktoken",
    "maxtoken",
    "outputtoken",
    "padtoken",
    "paginationtoken",
    "pertoken",
    "progresstoken",
    "prompttoken",
    "requesttoken",
    "resumetoken",
    "resumptiontoken",
    "septoken",
    "specialtoken",
    "starttoken",
    "stoptoken",
    "subtoken",
    "synctoken",
    "texttoken",
    "toptoken",
    "unktoken",
    "videotoken",
];

/// Endings that make a secret of a member even if its value is a number.
const NUMBER_ENDINGS: &[&str] = &["otp", "passphrase", "passwd", "password", "pwd"];

/// Fewest characters of a text under `token` that is a secret: answers tell the tokens of a text, too.
const TOKEN: usize = 16;

/// Whether a text is a secret by the name of the JSON member that it is, or stands somewhere in. Names of many
/// (`passwords`) are as the name of one.
pub(super) fn is_secret_member(name: &str, text: &str) -> bool {
    if text.is_empty() {
        return false;
    }
    let word = word(name);
    let one = word.strip_suffix('s').unwrap_or(&word);
    let is_secret = |word: &str| MEMBERS.contains(&word) || ends_with(word, MEMBER_ENDINGS);
    if is_secret(&word) || is_secret(one) {
        return true;
    }
    if !one.ends_with("token") || ends_with(one, CURSORS) || ends_with(one, HARMLESS_TOKENS) {
        return false;
    }
    // `githubToken`; what is called `token` or `tokens` alone is a piece of a text more often.
    let says_whose = word == one && one != "token";
    let is_long = text.len() >= TOKEN && !text.contains(char::is_whitespace);
    says_whose || (is_long && text.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Whether a number is a secret by the name of the JSON member that it is, or stands somewhere in.
pub(super) fn is_secret_number(name: &str) -> bool {
    let word = word(name);
    let one = word.strip_suffix('s').unwrap_or(&word);
    ends_with(one, NUMBER_ENDINGS)
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
            ("api_key", true),
            ("X-Otp", true),
            ("x-pwd", true),
            ("x-passphrase", true),
            ("x-client-secret", true),
            ("idempotency_key", false),
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
    fn members_that_carry_credentials_are_known() {
        for (name, text, secret) in [
            ("password", "x", true),
            ("dbPassword", "x", true),
            ("webhookSecret", "x", true),
            ("githubToken", "abcdefgh12345678", true),
            ("githubToken", "short", true),
            ("github_token", "short", true),
            ("passwords", "x", true),
            ("apiKeys", "x", true),
            ("eos_token", "</s>", false),
            ("input_token", "abcdefgh12345678", false),
            ("tokens", "short", false),
            ("stop_tokens", "short", false),
            ("nextForwardToken", "abcdefgh12345678", false),
            ("token", "abcdefgh12345678", true),
            ("token", " internationalisation2", false),
            ("token", "internationalisation", false),
            ("token", "short1", false),
            ("nextPageToken", "abcdefgh12345678", false),
            ("progressToken", "abcdefgh12345678", false),
            ("SessionToken", "x", true),
            ("signature", "abcdefgh12345678", false),
            ("session_id", "abcdefgh12345678", false),
            ("key", "colour", false),
            ("password", "", false),
        ] {
            assert_eq!(is_secret_member(name, text), secret, "{name}: {text}");
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
