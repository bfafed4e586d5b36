//! Which operations take what an answer tells: the id of a run that was made, the name of a suite that was put.

use http::Method;
use serde_json::{Map, Value, json};

use super::operation::{JSON, Operation};
use crate::access::Rule;

/// Writes into the answers of an operation what can be asked next, and with what of the answer.
pub(super) fn add(
    answers: &mut Value,
    rule: &Rule,
    operation: &Operation,
    all: &[(Rule, Operation)],
) {
    let links: Map<_, _> = all
        .iter()
        .filter_map(|(next, by)| link(rule, next, by))
        .collect();
    if links.is_empty() {
        return;
    }
    for answer in &operation.answers {
        let tells = answer
            .content
            .iter()
            .any(|(media_type, _)| *media_type == JSON);
        if tells && (200..300).contains(&answer.status) {
            answers[answer.status.to_string()]["links"] = json!(links);
        }
    }
}

/// From one route to another: to those of what it makes or lists, or of what it puts.
fn link(from: &Rule, to: &Rule, by: &Operation) -> Option<(String, Value)> {
    let rest = to.path.strip_prefix(from.path)?;
    let (parameter, told) = if *from.method == Method::PUT {
        let is_same = rest.is_empty() && *to.method == Method::PUT;
        let is_of_it = rest.is_empty() || rest.starts_with('/');
        let parameter = parameter(from.path).filter(|_| is_of_it && !is_same)?;
        (parameter, format!("$request.path.{parameter}"))
    } else if from.path.contains('{') {
        return None;
    } else {
        let parameter = parameter(rest).filter(|_| rest.starts_with("/{"))?;
        let place = if *from.method == Method::POST {
            ""
        } else {
            "/items/0"
        };
        (parameter, format!("$response.body#{place}/{parameter}"))
    };
    let link = json!({ "operationId": by.id, "parameters": { parameter: told } });
    Some((by.id.to_owned(), link))
}

/// The first parameter of a path.
fn parameter(path: &'static str) -> Option<&'static str> {
    let parameter = path.split('/').find_map(|part| part.strip_prefix('{'));
    parameter?.strip_suffix('}')
}
