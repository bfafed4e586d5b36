//! Cassettes of VCR.py (YAML and JSON), and of Ruby's VCR.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use squall_documents::{At, Tree};

use super::http::{HttpExchange, HttpImport, HttpMessage, status};
use super::{ImportOptions, Imported, entries, words};

/// Member with the text of a `!!binary` scalar.
const BINARY: &str = "base64_string";

pub(super) fn read(text: &str, options: ImportOptions<'_>) -> Result<Imported, String> {
    let cassette = if text.trim_start().starts_with('{') {
        super::json(text.as_bytes())?
    } else {
        let mut tree = squall_documents::parse("", text)
            .map_err(|error| format!("line {}: {}", error.position.line, error.message))?;
        mark_binary(&mut tree, &binary_lines(text));
        tree.value.to_json()
    };
    let names = ["interactions", "http_interactions"];
    let interactions = names.iter().find_map(|name| cassette[name].as_array());
    let interactions = interactions.ok_or("it is not a cassette: it has no `interactions`")?;
    let by = words(&cassette, "recorded_with").unwrap_or("VCR.py");
    let mut import = HttpImport::new(format!("cassette of {by}"), options);
    for interaction in interactions {
        import.add(&exchange(interaction));
    }
    let first = interactions
        .first()
        .and_then(|one| words(one, "recorded_at"));
    Ok(import.finish(first, None))
}

fn exchange(interaction: &Value) -> HttpExchange {
    let (request, response) = (&interaction["request"], &interaction["response"]);
    let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
    let places = [
        &response["status"]["code"],
        &response["status_code"],
        &response["status"],
    ];
    let written = places.into_iter().find(|it| !it.is_null());
    HttpExchange {
        method: text("method"),
        url: text("uri"),
        http2: words(response, "http_version").is_some_and(|it| it.contains("/2")),
        request: message(request),
        response: message(response),
        // A cassette has only exchanges with a response: a status of 0 is invalid too.
        status: written.map_or(1, status).max(1),
        ..HttpExchange::default()
    }
}

fn message(message: &Value) -> HttpMessage {
    let headers = message["headers"].as_object().into_iter().flatten();
    let headers = headers.flat_map(|(name, values)| {
        let values = entries(values).iter().filter_map(Value::as_str);
        values.map(|value| (name.clone(), value.to_owned()))
    });
    let body = message.get("body").or_else(|| message.get("content"));
    let (body, is_text) = bytes(body.unwrap_or(&Value::Null));
    HttpMessage {
        headers: headers.collect(),
        body,
        is_text,
    }
}

/// The bytes of a body, and whether they were written as text.
fn bytes(body: &Value) -> (Vec<u8>, bool) {
    match body {
        Value::Null => (Vec::new(), true),
        Value::String(text) => (text.clone().into_bytes(), true),
        Value::Object(members) => match (members.get("string"), words(body, BINARY)) {
            (Some(text), _) => bytes(text),
            (None, Some(coded)) => {
                let coded: String = coded.split_whitespace().collect();
                match STANDARD.decode(&coded) {
                    Ok(bytes) => (bytes, false),
                    Err(_) => (coded.into_bytes(), true),
                }
            }
            (None, None) => (body.to_string().into_bytes(), true),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            (body.to_string().into_bytes(), true)
        }
    }
}

/// Lines where a value with the tag `!!binary` begins: a block begins on the line after its tag.
fn binary_lines(text: &str) -> BTreeSet<u32> {
    let begin = |(line, number): (&str, u32)| {
        let value = line.split_once(": ").map_or("", |(_, value)| value.trim());
        let tags = ["!!binary", "!binary"];
        let rest = tags.iter().find_map(|tag| value.strip_prefix(tag))?;
        let is_block = rest.trim_start().starts_with(['|', '>']);
        Some(number + u32::from(is_block))
    };
    text.lines().zip(1..).filter_map(begin).collect()
}

/// Replaces tagged scalars by `{base64_string: …}`.
fn mark_binary(node: &mut At<Tree>, tagged: &BTreeSet<u32>) {
    match &mut node.value {
        Tree::Null => {}
        Tree::Scalar { .. } => {
            if tagged.contains(&node.position.line) {
                let name = At {
                    value: BINARY.to_owned(),
                    position: node.position,
                };
                let scalar = node.clone();
                node.value = Tree::Map(vec![(name, scalar)]);
            }
        }
        Tree::List(items) => items.iter_mut().for_each(|item| mark_binary(item, tagged)),
        Tree::Map(members) => {
            let members = members.iter_mut();
            members.for_each(|(_, member)| mark_binary(member, tagged));
        }
    }
}
