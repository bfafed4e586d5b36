//! Secrets that are known as they are: what variables stand for, and the credentials of an exchange.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::detect::Found;
use super::names::is_secret_header;

/// What such a secret is called.
pub(super) const VALUE: &str = "value";

/// Shortest value, in bytes, that is found inside longer texts. A shorter one stands in half of all
/// words; it is a secret only where it is the whole text.
const SHORTEST: usize = 4;

/// Shortest credential of a header, in bytes, that is looked for elsewhere.
const CREDENTIAL: usize = 8;

/// Each once, of two that begin alike the longer one first; `None`: there is none.
pub(super) fn sorted(values: impl IntoIterator<Item = String>) -> Option<Arc<[String]>> {
    let all = values.into_iter().filter(|value| !value.is_empty());
    let mut values: Vec<_> = all.collect::<BTreeSet<_>>().into_iter().collect();
    values.sort_by_key(|value| Reverse(value.len()));
    (!values.is_empty()).then(|| values.into())
}

/// Where they stand in a text.
pub(super) fn find(values: &[String], text: &str, found: &mut Vec<Found>) {
    for value in values {
        if text == value {
            found.push(Found::new(0..text.len(), VALUE));
        } else if value.len() >= SHORTEST {
            let places = text.match_indices(value.as_str());
            found.extend(places.map(|(at, _)| Found::new(at..at + value.len(), VALUE)));
        }
    }
}

/// The credentials among headers, in each form in which a body may hold them.
pub(super) fn of_headers<'h>(
    headers: impl Iterator<Item = (&'h str, &'h [u8])>,
) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for (name, value) in headers.filter(|(name, _)| is_secret_header(name)) {
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        let mut add = |value: &str| {
            if value.len() >= CREDENTIAL {
                values.insert(value.to_owned());
            }
        };
        add(value);
        if let Some((scheme, credentials)) = value.split_once(' ') {
            add(credentials.trim());
            let basic = scheme.eq_ignore_ascii_case("basic");
            let decoded = basic.then(|| STANDARD.decode(credentials.trim()).ok());
            let decoded = decoded.flatten().unwrap_or_default();
            let user = String::from_utf8_lossy(&decoded);
            user.split_once(':')
                .into_iter()
                .for_each(|(_, password)| add(password));
        }
        if name.to_ascii_lowercase().contains("cookie") {
            let pairs = value.split(';').filter_map(|pair| pair.split_once('='));
            pairs.for_each(|(_, value)| add(value.trim()));
        }
    }
    values
}
