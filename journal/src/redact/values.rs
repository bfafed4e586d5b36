//! Known secrets: values of variables, and the credentials of an exchange.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Secret;
use super::names::is_secret_header;

/// Kind of such a secret.
pub(super) const VALUE: &str = "value";

/// Shortest value, in bytes, that is searched inside longer texts. A shorter one occurs in many words, so it is a
/// secret only as the whole text.
const SHORTEST: usize = 4;

/// Shortest credential of a header, in bytes, that is searched elsewhere.
const CREDENTIAL: usize = 8;

/// Without duplicates; of two values where one begins with the other, the longer is first.
pub(super) fn sorted(values: impl IntoIterator<Item = String>) -> Arc<[String]> {
    let all = values.into_iter().filter(|value| !value.is_empty());
    let mut values: Vec<_> = all.collect::<BTreeSet<_>>().into_iter().collect();
    values.sort_by_key(|value| Reverse(value.len()));
    values.into()
}

/// Their positions in a text.
pub(super) fn find(values: &[String], text: &str, found: &mut Vec<Secret>) {
    for value in values
        .iter()
        .filter(|it| it.len() >= SHORTEST || text == **it)
    {
        let places = text.match_indices(value.as_str());
        found.extend(places.map(|(at, _)| Secret::new(at..at + value.len(), VALUE)));
    }
}

/// The credentials in headers, in each form that a body may contain.
pub(super) fn of_headers<'h>(headers: impl Iterator<Item = (&'h str, &'h [u8])>) -> Vec<String> {
    let mut values = Vec::new();
    for (name, value) in headers.filter(|(name, _)| is_secret_header(name)) {
        let value = String::from_utf8_lossy(value).trim().to_owned();
        if let Some((scheme, credentials)) = value.split_once(' ') {
            values.push(credentials.to_owned());
            let is_basic = scheme.eq_ignore_ascii_case("basic");
            let user = STANDARD
                .decode(credentials.trim())
                .ok()
                .filter(|_| is_basic);
            let user = String::from_utf8_lossy(&user.unwrap_or_default()).into_owned();
            values.extend(
                user.split_once(':')
                    .map(|(_, password)| password.to_owned()),
            );
        }
        if name.to_ascii_lowercase().contains("cookie") {
            let pairs = value.split(';').filter_map(|pair| pair.split_once('='));
            values.extend(pairs.map(|(_, value)| value.to_owned()));
        }
        values.push(value);
    }
    let trimmed = values.iter().map(|value| value.trim());
    let long = trimmed.filter(|value| value.len() >= CREDENTIAL);
    long.map(str::to_owned).collect()
}
