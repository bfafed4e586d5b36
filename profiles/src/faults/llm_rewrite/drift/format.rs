//! The same in another format.

use squall_dialects::json::{Document, JsonKind, NodeId, quote};

use super::object;
use crate::changes::Severity;

/// The same said in another format. JSON becomes fenced JSON, a list of its fields, or prose;
/// prose becomes a list, a document with a heading, or JSON.
pub(super) fn format(text: &str, severity: Severity) -> String {
    let trimmed = text.trim();
    let Some(place) = object(trimmed).filter(|place| is_all_json(trimmed, place)) else {
        let list = || -> String {
            let lines = trimmed.lines().filter(|line| !line.trim().is_empty());
            let lines: Vec<String> = lines.map(|line| format!("- {}", line.trim())).collect();
            lines.join("\n")
        };
        return match severity {
            Severity::Subtle => list(),
            Severity::Moderate => format!("## Answer\n\n{}", list()),
            Severity::Significant => format!("{{\"answer\": {}}}", quote(trimmed)),
        };
    };
    let json = &trimmed[place];
    if severity == Severity::Subtle {
        let fenced = trimmed.starts_with("```");
        return if fenced {
            json.to_owned()
        } else {
            format!("```json\n{json}\n```")
        };
    }
    let Ok(document) = Document::parse(json.as_bytes()) else {
        return text.to_owned();
    };
    let fields: Vec<String> = leaves(&document)
        .into_iter()
        .map(|(name, value)| match severity {
            Severity::Subtle | Severity::Moderate => format!("{name}: {value}"),
            Severity::Significant => format!("the {} is {value}", name.replace(['_', '.'], " ")),
        })
        .collect();
    match severity {
        Severity::Subtle | Severity::Moderate => fields.join("\n"),
        Severity::Significant => format!("Sure! Here is what I found: {}.", fields.join(", ")),
    }
}

/// Whether there is nothing around the JSON but a fence.
fn is_all_json(text: &str, place: &std::ops::Range<usize>) -> bool {
    let before = text[..place.start].trim();
    let after = text[place.end..].trim();
    let fence = before.strip_prefix("```").map(str::trim);
    (before.is_empty() && after.is_empty())
        || (fence.is_some_and(|word| word.chars().all(char::is_alphanumeric)) && after == "```")
}

/// Every value of a document that holds no other, under the names that lead to it.
fn leaves(document: &Document<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<(String, NodeId)> = vec![(String::new(), document.root().id())];
    while let Some((path, id)) = open.pop() {
        let value = document.value(id);
        let below = |name: &str| match path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let first = open.len();
        match value.kind() {
            JsonKind::Object => open.extend(value.members().map(|member| {
                let name = member.key().unwrap_or_default();
                (below(&name), member.id())
            })),
            JsonKind::Array => {
                let items = value.items().enumerate();
                open.extend(items.map(|(at, item)| (below(&(at + 1).to_string()), item.id())));
            }
            JsonKind::String
            | JsonKind::Number
            | JsonKind::True
            | JsonKind::False
            | JsonKind::Null => {
                let text = value.as_str().map(std::borrow::Cow::into_owned);
                found.push((path, text.unwrap_or_else(|| value.raw().to_owned())));
            }
        }
        open[first..].reverse();
    }
    found
}
