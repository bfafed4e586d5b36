//! Names of headers, parameters and members that mark secret values.

use percent_encoding::percent_decode_str;

/// Names in lower case without separators, or `*` and an ending. The letters are the places where they mark
/// secrets: `h`eaders (one part of the name), `p`arameters of URLs and forms, `m`embers of JSON, elements and
/// attributes.
///
/// Some names are too common for all places: `key` and `sig` are words in documents; providers sign a model's
/// reasoning, which agents must return; and tools call conversations sessions.
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("*accesskey", "pm"), ("*apikey", "hpm"), ("*passphrase", "hpm"), ("*passwd", "hpm"), ("*password", "hpm"),
    ("*privatekey", "pm"), ("*pwd", "hpm"), ("*secret", "hpm"), ("*secretkey", "pm"), ("*sessionid", "p"),
    ("*signature", "p"), ("*token", "p"), ("*accesstoken", "h"), ("*authtoken", "h"), ("*otp", "h"),
    ("assertion", "p"), ("auth", "hpm"), ("authorization", "hpm"), ("awsaccesskeyid", "p"), ("clientassertion", "pm"),
    ("cookie", "h"), ("cookie2", "h"), ("credential", "hpm"), ("credentials", "hpm"), ("jwt", "hpm"), ("key", "p"),
    ("otp", "pm"), ("passcode", "h"), ("sig", "p"), ("signature", "h"), ("subscriptionkey", "pm"), ("token", "h"),
    ("xamzcredential", "p"), ("xgoogcredential", "p"),
];

/// Headers that end in `-key` and are not secret.
#[rustfmt::skip]
const HARMLESS_KEYS: &[&str] =
    &["idempotency-key", "x-idempotency-key", "sec-websocket-key", "surrogate-key", "x-cache-key"];

/// Endings of cursors.
const CURSORS: &[&str] = &["pagetoken", "continuationtoken", "cursortoken", "nexttoken"];

/// Endings of members that are parts of texts, cursors or request ids.
#[rustfmt::skip]
const HARMLESS_TOKENS: &[&str] = &[
    "addedtoken", "audiotoken", "backwardtoken", "bostoken", "cachedtoken", "clstoken", "decodedtoken", "endtoken",
    "eostoken", "eottoken", "firsttoken", "forwardtoken", "idempotencytoken", "imagetoken", "inputtoken", "lasttoken",
    "masktoken", "maxtoken", "outputtoken", "padtoken", "paginationtoken", "pertoken", "progresstoken", "prompttoken",
    "requesttoken", "resumetoken", "resumptiontoken", "septoken", "specialtoken", "starttoken", "stoptoken",
    "subtoken", "synctoken", "texttoken", "toptoken", "unktoken", "videotoken",
];

/// Endings of members whose value is a secret even as a number.
const NUMBERS: &[&str] = &["otp", "passphrase", "passwd", "password", "pwd"];

/// Fewest characters of a secret under `token`: responses also list the tokens of a text.
const TOKEN: usize = 16;

/// A text that is a secret under every name that marks secret texts.
pub(super) const ANY: &str = "0123456789abcdef";

/// Whether a header's name marks a secret, in any letter case: `authorization`, `cookie`, `x-api-key` and similar
/// names.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    name.split('-').any(|part| is_listed(part, 'h'))
        || (name.ends_with("-key") && !HARMLESS_KEYS.contains(&&*name))
}

/// Whether a parameter's name marks a secret, percent-encoded or not.
pub(super) fn is_secret_parameter(name: &str) -> bool {
    let word = word(&percent_decode_str(name).decode_utf8_lossy());
    is_listed(&word, 'p') && !ends_with(&word, CURSORS)
}

/// Whether a text is a secret by the name of its member or of a member that contains it. `passwords` counts as
/// `password`.
pub(super) fn is_secret_member(name: &str, text: &str) -> bool {
    let word = word(name);
    let one = word.strip_suffix('s').unwrap_or(&word);
    if text.is_empty() || is_listed(&word, 'm') || is_listed(one, 'm') {
        return !text.is_empty();
    }
    if !one.ends_with("token") || ends_with(one, CURSORS) || ends_with(one, HARMLESS_TOKENS) {
        return false;
    }
    // As in `githubToken`; `token` or `tokens` alone is more often a part of a text.
    let says_whose = word == one && one != "token";
    let is_long = text.len() >= TOKEN && !text.contains(char::is_whitespace);
    says_whose || (is_long && text.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Whether a number is a secret by the name of its member or of a member that contains it.
pub(super) fn is_secret_number(name: &str) -> bool {
    let word = word(name);
    ends_with(word.strip_suffix('s').unwrap_or(&word), NUMBERS)
}

fn is_listed(word: &str, place: char) -> bool {
    let here = NAMES.iter().filter(|(_, places)| places.contains(place));
    let mut names = here.map(|(name, _)| *name);
    names.any(|name| match name.strip_prefix('*') {
        Some(ending) => word.ends_with(ending),
        None => word == name,
    })
}

/// A name in lower case without separators.
fn word(name: &str) -> String {
    let letters = name.chars().filter(|c| !"-_.[]".contains(*c));
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

fn ends_with(word: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| word.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_parameters_and_members_are_secrets_by_their_names() {
        for (is_secret, secret, harmless) in [
            (
                (|name| is_secret_header(name)) as fn(&str) -> bool,
                "Authorization proxy-authorization Cookie set-cookie x-api-key api-key X-Goog-Api-Key x-amz-security-token \
                 ocp-apim-subscription-key x-auth-token x-functions-key x-hub-signature api_key X-Otp x-pwd x-passphrase \
                 x-client-secret",
                "idempotency_key idempotency-key sec-websocket-key x-ratelimit-remaining-tokens content-type \
                 www-authenticate mcp-session-id",
            ),
            (
                |name| is_secret_parameter(name),
                "key api_key apiKey %6bey access_token client_secret password X-Amz-Signature x-amz-security-token \
                 user[token]",
                "next_page_token max_tokens keyword monkey design",
            ),
            (
                |name| is_secret_member(name, "x"),
                "password dbPassword webhookSecret githubToken github_token passwords apiKeys SessionToken",
                "eos_token token tokens stop_tokens nextPageToken progressToken signature session_id key",
            ),
            (
                |name| is_secret_member(name, "abcdefgh12345678"),
                "token tokens",
                "input_token nextForwardToken nextPageToken progressToken signature session_id",
            ),
        ] {
            let all = |names: &'static str| names.split_whitespace();
            assert!(all(secret).all(is_secret), "{secret}");
            assert!(!all(harmless).any(is_secret), "{harmless}");
        }
        for text in ["", " internationalisation2", "internationalisation"] {
            assert!(!is_secret_member("token", text), "{text}");
        }
    }
}
