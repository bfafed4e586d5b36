//! Globs that no URL matches.

use crate::glob::{UrlGlobs, is_stars};

/// Why no URL matches any of these globs, and what to write instead; `None`: some may.
pub(super) fn impossible(globs: &UrlGlobs) -> Option<String> {
    let globs = globs.alternatives();
    let glob = globs.first()?;
    let none = !globs.iter().any(|glob| can_be_a_url(glob));
    none.then(|| {
        format!(
            "`match_url` is matched against the whole URL (http or https, without a fragment), and \
             `{glob}` matches none; write `{}`",
            advised(glob)
        )
    })
}

/// Whether a glob matches the root of some `https` origin whatever path follows: such a rule is decided
/// at a CONNECT.
pub(super) fn is_of_an_https_origin(glob: &str) -> bool {
    if !begins_like(glob, "https://") || !glob.ends_with('*') {
        return false;
    }
    let Some((_, rest)) = glob.split_once("://") else {
        return true;
    };
    // Authorities have no `/`: the first one begins the path.
    rest.split_once('/').is_none_or(|(_, path)| is_stars(path))
}

fn can_be_a_url(glob: &str) -> bool {
    !glob.contains('#') && (begins_like(glob, "http://") || begins_like(glob, "https://"))
}

/// Whether the glob, up to its first star, matches some text with this beginning.
fn begins_like(glob: &str, begin: &str) -> bool {
    let head = glob.split('*').next().unwrap_or_default();
    let head = head.to_ascii_lowercase();
    head.starts_with(begin) || (head.len() < glob.len() && begin.starts_with(&head))
}

/// The nearest glob that a URL can match.
fn advised(glob: &str) -> String {
    // No URL on the wire has a fragment.
    let glob = glob.split('#').next().unwrap_or_default();
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-*".contains(&byte);
    let rest = match glob.split_once("://") {
        _ if glob.is_empty() => return "*".to_owned(),
        _ if can_be_a_url(glob) => return glob.to_owned(),
        Some((scheme, rest)) if scheme.bytes().all(is_scheme) => rest,
        Some(_) | None => glob.trim_start_matches("//"),
    };
    let any_host = if rest.starts_with('/') { "*" } else { "" };
    format!("*://{any_host}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_for_a_glob_that_no_url_matches_can_match() {
        for (glob, instead, url) in [
            ("/api/*", "*://*/api/*", "https://a.example/api/x"),
            ("//a.example/*", "*://a.example/*", "https://a.example/x"),
            ("a.example/*", "*://a.example/*", "http://a.example/x"),
            ("ftp://a.example/*", "*://a.example/*", "http://a.example/x"),
            (
                "grpc*://a.example/*",
                "*://a.example/*",
                "http://a.example/x",
            ),
            (
                "https://a.example/x#y",
                "https://a.example/x",
                "https://a.example/x",
            ),
            ("*/x#*", "*/x", "https://a.example/x"),
            (
                "ftp://a.example/x#y",
                "*://a.example/x",
                "http://a.example/x",
            ),
            ("#y", "*", "http://a.example/x"),
            (
                "a.example/?to=ftp://*",
                "*://a.example/?to=ftp://*",
                "http://a.example/?to=ftp://b",
            ),
        ] {
            assert!(!can_be_a_url(glob), "{glob}");
            assert_eq!(advised(glob), instead);
            assert!(can_be_a_url(instead), "{instead}");
            assert!(crate::glob::matches(instead, url, 0), "{instead} at {url}");
        }
    }

    fn written_globs() -> impl proptest::strategy::Strategy<Value = String> {
        "(https|http|h|\\*|ftp)?(\\*|:|://|://a)?(a|/|\\*|x|b:8){0,5}"
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2048))]

        /// What a glob is said to be is held against the URLs that there are.
        #[test]
        fn no_glob_that_matches_is_called_impossible(
            glob in written_globs(),
            scheme in "https?",
            authority in "[abx]{1,2}(:8)?",
            path in "/[abx/]{0,3}",
        ) {
            use crate::facts::CanonicalUrl;

            let Ok(globs) = UrlGlobs::new([&*glob]) else { return Ok(()) };
            if globs.matches(&CanonicalUrl::new(&scheme, &authority, &path)) {
                proptest::prop_assert_eq!(impossible(&globs), None);
            }
            if globs.match_all_of(&CanonicalUrl::new("https", &authority, "")) {
                let any = globs.alternatives().iter().any(|glob| is_of_an_https_origin(glob));
                proptest::prop_assert!(any, "{} at {}", glob, authority);
            }
        }
    }
}
