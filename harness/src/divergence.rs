//! What an agent calls in a replay, beside what it called when the session was recorded.
//!
//! ```text
//! recorded calls ─┐
//!                 ├─▶ aligned in order, first with equal arguments, then by name ─▶ same, changed, missing, new
//! made calls ─────┘
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::run::{ArgumentChange, CallDivergence, DivergenceState};

/// Most changes that are listed of one call.
const MOST_CHANGES: usize = 20;

/// Longest value in a change, in characters.
const MOST_VALUE: usize = 500;

/// A call in a session or in a replay.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionCall {
    /// What is called; calls with the same name are compared.
    pub(crate) name: String,
    /// Its arguments; `None`: they are not known, and count as equal to any.
    pub(crate) arguments: Option<Value>,
}

/// Aligns two lists of calls. Each call of both is in the result once, and those of one list are in its order. Pairs
/// are the places in `recorded` and in `made`.
pub(crate) fn align(
    recorded: &[SessionCall],
    made: &[SessionCall],
) -> Vec<(Option<usize>, Option<usize>)> {
    let whole = |call: &SessionCall| {
        let arguments = call.arguments.as_ref().map(Value::to_string);
        format!("{}\n{}", call.name, arguments.unwrap_or_default())
    };
    let whole = |calls: &[SessionCall]| calls.iter().map(whole).collect::<Vec<_>>();
    let name = |calls: &[SessionCall]| {
        let names = calls.iter().map(|call| call.name.clone());
        names.collect::<Vec<_>>()
    };
    let mut pairs = Vec::new();
    for run in diff(&whole(recorded), &whole(made)) {
        if let DiffOp::Equal { .. } = run {
            pairs.extend(matched(&run, 0, 0));
            continue;
        }
        let (old, new) = (run.old_range(), run.new_range());
        let (from, to) = (old.start, new.start);
        for run in diff(&name(&recorded[old]), &name(&made[new])) {
            pairs.extend(matched(&run, from, to));
        }
    }
    pairs
}

fn diff(recorded: &[String], made: &[String]) -> Vec<DiffOp> {
    capture_diff_slices(Algorithm::Myers, recorded, made)
}

/// The calls in a run of equal or different ones.
fn matched(run: &DiffOp, from: usize, to: usize) -> Vec<(Option<usize>, Option<usize>)> {
    let old = run.old_range().map(|at| Some(from + at));
    let new = run.new_range().map(|at| Some(to + at));
    if let DiffOp::Equal { .. } = run {
        return old.zip(new).collect();
    }
    let missing = old.map(|at| (at, None));
    missing.chain(new.map(|at| (None, at))).collect()
}

/// Compares two lists of calls. `recorded` have their numbers in the session, and `made` the ids of their exchanges.
pub(crate) fn divergence(
    recorded: &[(u64, SessionCall)],
    made: &[(String, SessionCall)],
) -> Vec<CallDivergence> {
    let call = |call: &SessionCall| call.clone();
    let (old, new): (Vec<_>, Vec<_>) = (
        recorded.iter().map(|(_, one)| call(one)).collect(),
        made.iter().map(|(_, one)| call(one)).collect(),
    );
    let pairs = align(&old, &new).into_iter();
    pairs
        .map(|(before, now)| {
            let before = before.map(|at| &recorded[at]);
            let now = now.map(|at| &made[at]);
            let of = |call: &SessionCall| call.arguments.clone();
            let mut changes = Vec::new();
            if let (Some((_, before)), Some((_, now))) = (before, now)
                && let (Some(before), Some(now)) = (of(before), of(now))
            {
                compare(Some(&before), Some(&now), "", &mut changes);
            }
            let state = match (before, now) {
                (Some(_), Some(_)) if changes.is_empty() => DivergenceState::Same,
                (Some(_), Some(_)) => DivergenceState::Changed,
                (Some(_), None) => DivergenceState::Missing,
                (None, _) => DivergenceState::New,
            };
            let name = now.map(|(_, call)| call).or(before.map(|(_, call)| call));
            CallDivergence {
                state,
                call: name.map_or_else(String::new, |call| call.name.clone()),
                recorded: before.map(|(number, _)| *number),
                made: now.map(|(id, _)| id.clone()),
                changes,
            }
        })
        .collect()
}

/// The arguments of an HTTP request: the parameters of its query in order, and its body, base64 if it is no text. The name of a JSON-RPC call has its
/// method and its tool, and its id is left out, because it differs between clients.
pub(crate) fn request(method: &str, url: &str, body: Option<&[u8]>) -> SessionCall {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let mut name = format!("{method} {address}");
    let mut arguments = Map::new();
    if !query.is_empty() {
        arguments.insert("query".to_owned(), query.split('&').collect());
    }
    if let Some(body) = body.filter(|body| !body.is_empty()) {
        let read = serde_json::from_slice::<Value>(body).ok();
        let mut body = read.unwrap_or_else(|| match std::str::from_utf8(body) {
            Ok(text) => text.into(),
            Err(_) => format!("{} bytes, {}", body.len(), STANDARD.encode(body)).into(),
        });
        if body.get("jsonrpc").is_some() {
            let called = [body.get("method"), body.pointer("/params/name")];
            for part in called.into_iter().flatten().filter_map(Value::as_str) {
                name.push(' ');
                name.push_str(part);
            }
            if let Some(members) = body.as_object_mut() {
                members.remove("id");
            }
        }
        arguments.insert("body".to_owned(), body);
    }
    SessionCall {
        name,
        arguments: Some(arguments.into()),
    }
}

/// Adds the differences between two values, at most [`MOST_CHANGES`].
fn compare(
    recorded: Option<&Value>,
    made: Option<&Value>,
    pointer: &str,
    changes: &mut Vec<ArgumentChange>,
) {
    if recorded == made || changes.len() == MOST_CHANGES {
        return;
    }
    match (recorded, made) {
        (Some(Value::Object(before)), Some(Value::Object(now))) => {
            let added = now.keys().filter(|name| !before.contains_key(*name));
            for name in before.keys().chain(added) {
                let step = name.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{step}");
                compare(before.get(name), now.get(name), &pointer, changes);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(now))) => {
            for at in 0..before.len().max(now.len()) {
                let pointer = format!("{pointer}/{at}");
                compare(before.get(at), now.get(at), &pointer, changes);
            }
        }
        (recorded, made) => changes.push(ArgumentChange {
            pointer: pointer.to_owned(),
            recorded: recorded.map(shortened),
            made: made.map(shortened),
        }),
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MOST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::run::DivergenceState::*;

    fn calls() -> impl Strategy<Value = Vec<SessionCall>> {
        let call =
            (0..3_u8, proptest::option::of(0..3_u8)).prop_map(|(name, argument)| SessionCall {
                name: name.to_string(),
                arguments: argument.map(Value::from),
            });
        proptest::collection::vec(call, 0..12)
    }

    fn numbered(calls: Vec<SessionCall>) -> Vec<(u64, SessionCall)> {
        (1..).zip(calls).collect()
    }

    fn named(calls: Vec<SessionCall>) -> Vec<(String, SessionCall)> {
        (0..).map(|id: u64| id.to_string()).zip(calls).collect()
    }

    proptest! {
        #[test]
        fn every_call_is_listed_once_and_in_order(recorded in calls(), made in calls()) {
            let pairs = align(&recorded, &made);
            let old: Vec<_> = pairs.iter().filter_map(|(old, _)| *old).collect();
            let new: Vec<_> = pairs.iter().filter_map(|(_, new)| *new).collect();
            prop_assert_eq!(old, (0..recorded.len()).collect::<Vec<_>>());
            prop_assert_eq!(new, (0..made.len()).collect::<Vec<_>>());
            for (old, new) in pairs {
                if let (Some(old), Some(new)) = (old, new) {
                    prop_assert_eq!(&recorded[old].name, &made[new].name);
                }
            }
        }

        #[test]
        fn equal_calls_are_all_the_same(calls in calls()) {
            let found = divergence(&numbered(calls.clone()), &named(calls));
            prop_assert!(found.iter().all(|one| one.state == Same));
        }
    }

    #[test]
    fn a_call_that_was_dropped_does_not_change_the_others() {
        let search = |query: &str| request("POST", "http://t/s", Some(query.as_bytes()));
        let book = request(
            "POST",
            "http://t/book",
            Some(br#"{"seats": 2, "to": "Rome"}"#),
        );
        let recorded = numbered(vec![search("1"), search("2"), search("3"), book]);
        let other = request(
            "POST",
            "http://t/book",
            Some(br#"{"seats": 3, "to": "Rome"}"#),
        );
        let ask = request("GET", "http://t/ask?q=x", None);
        let made = named(vec![search("1"), search("3"), ask, other]);
        let found = divergence(&recorded, &made);
        let found: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.state,
                    one.call.as_str(),
                    one.recorded,
                    one.made.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (Same, "POST http://t/s", Some(1), Some("0")),
                (Missing, "POST http://t/s", Some(2), None),
                (Same, "POST http://t/s", Some(3), Some("1")),
                (New, "GET http://t/ask", None, Some("2")),
                (Changed, "POST http://t/book", Some(4), Some("3")),
            ]
        );
    }

    #[test]
    #[rustfmt::skip]
    fn changes_are_told_with_their_place() {
        for (recorded, made, expected) in [
            (json!({"a": [1, 2]}), json!({"a": [1, 3, 4]}), vec![("/a/1", Some("2"), Some("3")), ("/a/2", None, Some("4"))]),
            (json!({"a/b": "x"}), json!({}), vec![("/a~1b", Some("\"x\""), None)]),
            (json!({}), json!({"n": {"m": 1}}), vec![("/n", None, Some("{\"m\":1}"))]),
            (json!([1]), json!("1"), vec![("", Some("[1]"), Some("\"1\""))]),
            (json!({"k": null}), json!({"k": null}), vec![]),
        ] {
            let mut found = Vec::new();
            compare(Some(&recorded), Some(&made), "", &mut found);
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.pointer.as_str(), one.recorded.as_deref(), one.made.as_deref()))
                .collect();
            assert_eq!(found, expected);
        }
        let (long, mut found) = ("é".repeat(600), Vec::new());
        compare(Some(&json!(long)), None, "", &mut found);
        assert_eq!(found[0].recorded.as_ref().map(|text| text.chars().count()), Some(MOST_VALUE + 1));
    }

    #[test]
    fn what_a_tape_tells_apart_is_changed() {
        let get = |query: &str| request("GET", &format!("http://t/s?{query}"), None);
        let post = |body: &[u8]| request("POST", "http://t/s", Some(body));
        for (recorded, made) in [
            (get("a=1&b=2"), get("b=2&a=1")),
            (get("a=1&a=2"), get("a=2")),
            (post(b"\xff\x01"), post(b"\xfe\x01")),
        ] {
            let found = divergence(&numbered(vec![recorded]), &named(vec![made]));
            assert_eq!(found[0].state, Changed, "{found:?}");
        }
    }

    #[test]
    fn calls_of_mcp_are_told_apart_by_their_tool_and_not_by_their_id() {
        let call = |id: u64, tool: &str| {
            let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}});
            request("POST", "http://t/mcp", Some(body.to_string().as_bytes()))
        };
        assert_eq!(call(1, "book"), call(2, "book"));
        assert_eq!(call(1, "book").name, "POST http://t/mcp tools/call book");
        assert_ne!(call(1, "book").name, call(1, "search").name);
    }
}
