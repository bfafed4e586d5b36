//! What a request is about, as far as its words tell: where it goes, and what it says there.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use squall_journal::record::Kind;

use super::attempt::{Attempt, json};
use crate::reach::SeenExchange;

/// The words of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct About {
    /// Of its path; of an MCP message those of its tools, or of its method.
    pub(crate) place: BTreeSet<String>,
    /// What stands in its query and in its body, in lower case; numbers and words of a letter or two are none.
    pub(crate) values: BTreeSet<String>,
    /// Whether its body was read.
    pub(crate) is_read: bool,
}

/// Words of paths and of names that say nothing of the thing.
const SAY_NOTHING: [&str; 13] = [
    "api", "rest", "rpc", "mcp", "json", "http", "https", "www", "public", "service", "tool",
    "index", "php",
];

/// Shorter ones stand in many a request by chance.
const TELLING: usize = 3;

impl About {
    pub(super) fn of(attempt: &Attempt, seen: &SeenExchange) -> Self {
        let (path, query) = path_and_query(&attempt.url);
        let body = (seen.request.as_ref()).and_then(|request| request.body.as_ref());
        let document = seen.request.as_ref().and_then(json);
        let mut values = BTreeSet::new();
        for (_, value) in pairs(query) {
            keep(&value, &mut values);
        }
        let place = if attempt.kind == Kind::Mcp {
            let method = document.as_ref().and_then(|it| it.get("method")?.as_str());
            let names = attempt.tools.iter().map(String::as_str);
            let method = method.filter(|_| attempt.tools.is_empty());
            names.chain(method).flat_map(words).collect()
        } else {
            words(&decoded(path)).collect()
        };
        match (&document, body) {
            (Some(document), _) if attempt.kind == Kind::Mcp => {
                leaves(document.get("params").unwrap_or(&Value::Null), &mut values);
            }
            (Some(document), _) => leaves(document, &mut values),
            (None, Some(body)) => {
                let text = String::from_utf8_lossy(&body.bytes);
                for (name, value) in pairs(&text) {
                    keep(if value.is_empty() { &name } else { &value }, &mut values);
                }
            }
            (None, None) => {}
        }
        for tool in &attempt.tools {
            values.remove(&tool.to_lowercase());
        }
        Self {
            place,
            values,
            is_read: seen.record.request_bytes == 0 || body.is_some_and(|body| body.whole),
        }
    }

    /// Every word of it.
    pub(crate) fn words(&self) -> BTreeSet<String> {
        let of_values = self.values.iter().flat_map(|value| words(value));
        let long = of_values.filter(|word| word.chars().count() >= TELLING);
        long.chain(self.place.iter().cloned()).collect()
    }

    /// Whether all that one says the other says too; `false` where it says nothing.
    pub(crate) fn is_said_by(&self, other: &Self) -> bool {
        !self.values.is_empty() && self.values.is_subset(&other.values)
    }

    /// Whether a text names something that it says.
    pub(crate) fn is_named_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.values.iter().any(|value| text.contains(value))
    }
}

/// The path of a URL, `/` where it has none, and its query.
pub(crate) fn path_and_query(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    (place.find('/').map_or("/", |at| &place[at..]), query)
}

/// The words of a name or a path, in lower case and without a plural's `s`; versions, numbers and what every
/// API says left out.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + use<> {
    let mut parted = String::with_capacity(text.len());
    let mut was_lower = false;
    for letter in text.chars() {
        if letter.is_uppercase() && was_lower {
            parted.push(' ');
        }
        was_lower = letter.is_lowercase();
        parted.extend(letter.to_lowercase());
    }
    let words = parted.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| says_something(word)).collect();
    let singular = words.into_iter().map(|word| match word.strip_suffix('s') {
        Some(one) if one.chars().count() >= TELLING && !one.ends_with('s') => one.to_owned(),
        _ => word.to_owned(),
    });
    let told = singular.filter(|word| !SAY_NOTHING.contains(&word.as_str()));
    told.collect::<Vec<_>>().into_iter()
}

fn says_something(word: &str) -> bool {
    let is_version = |word: &str| {
        let number = word.strip_prefix('v').unwrap_or(word);
        number.chars().all(|c| c.is_ascii_digit())
    };
    !word.is_empty() && !is_version(word)
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " "))
        .decode_utf8_lossy()
        .into_owned()
}

/// `a=b&c` as names and values.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

/// Texts and numbers of a document.
fn leaves(document: &Value, values: &mut BTreeSet<String>) {
    match document {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => keep(&number.to_string(), values),
        Value::String(text) => keep(text, values),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, values)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, values)),
    }
}

fn keep(value: &str, values: &mut BTreeSet<String>) {
    let folded = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() >= TELLING {
        values.insert(folded.to_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testing::{Sent, trace};

    fn about(sent: Sent) -> (Vec<String>, Vec<String>) {
        let trace = trace(&[sent]);
        let about = trace.about(&trace.attempts()[0]);
        let list = |words: BTreeSet<String>| words.into_iter().collect();
        (list(about.place), list(about.values))
    }

    #[test]
    fn a_request_is_about_what_its_path_its_query_and_its_body_say() {
        let mcp = Sent::mcp("getOpen_orders", r#"{"who":"Ada L.","deep":["INV-1"]}"#, 7);
        for (sent, place, values) in [
            (
                Sent::get("https://a.test/api/v2/Orders/17?of=today&n=1#x"),
                &["order"][..],
                &["today"][..],
            ),
            (
                Sent::get("https://a.test?q=rain%20in+Kiel"),
                &[],
                &["rain in kiel"],
            ),
            (
                Sent::post(
                    "https://a.test/create_order",
                    r#"{"item":"Umbrella","n":504}"#,
                ),
                &["create", "order"],
                &["504", "umbrella"],
            ),
            (
                Sent::post("https://a.test/", "item=Umbrella&n=1"),
                &[],
                &["umbrella"],
            ),
            (mcp, &["get", "open", "order"], &["ada l.", "inv-1"]),
        ] {
            let found = about(sent.clone());
            let expected = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(found, (expected(place), expected(values)), "{sent:#?}");
        }
    }
}
