//! `no_duplicate_side_effects`: an operation that may have succeeded is not repeated.
//!
//! This applies after a failure that leaves the result unknown. A repeated unsafe request then needs the
//! `Idempotency-Key` of the first one, or a check before it. A check is a successful read at the same server, by
//! GET, HEAD or an MCP tool that reads. Model calls have no side effects.

use squall_journal::record::Kind as ExchangeKind;

use super::{Narrow, holds, is_nameless, no_retries};
use crate::count::count;
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::{Attempt, Trace};

/// `methods`, default POST, PUT, PATCH, DELETE.
pub(super) const NO_DUPLICATE_SIDE_EFFECTS: InvariantKind =
    InvariantKind::wire("no_duplicate_side_effects", |fields| {
        let narrow = Narrow::read(fields);
        let about = "Methods that change something; default POST, PUT, PATCH, DELETE.";
        let names = METHODS.map(|method| (method, method));
        let methods = fields.field("methods", about, |value| {
            value.list("request methods, like `[POST]`", |value| {
                value.word("request method", &names)
            })
        });
        let methods = methods.unwrap_or_else(|| vec!["POST", "PUT", "PATCH", "DELETE"]);
        let narrow = narrow?;
        Some(Check::new(move |subject| {
            judged(subject, &narrow, &methods)
        }))
    });

/// Request methods, and `WebDAV` methods with side effects.
#[rustfmt::skip]
const METHODS: [&str; 14] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND",
    "PROPPATCH", "UNLOCK",
];

fn judged(subject: &Subject<'_>, narrow: &Narrow, methods: &[&str]) -> Verdict {
    let trace = subject.trace;
    let mut unclear = 0_u64;
    let mut nameless = false;
    let attempts = narrow.attempts(trace);
    for attempt in attempts.filter(|one| is_unsafe(one, trace, methods)) {
        let Some(failure) = attempt.failure.as_ref().filter(|failure| failure.unclear) else {
            continue;
        };
        unclear += 1;
        nameless |= is_nameless(attempt);
        if let Some(again) = done_again(attempt, trace) {
            return Verdict::fails(format!(
                "{} {}: {}; it was called again ({}) without an idempotency key and without checking whether the \
                 first call had succeeded",
                attempt.method,
                attempt.name(),
                failure.why,
                again.id
            ))
            .at(attempt);
        }
    }
    match unclear {
        0 => Verdict::insufficient("no unsafe request had an unclear outcome"),
        _ if nameless => no_retries(narrow, trace),
        unclear => holds(
            trace,
            format!(
                "{}, and no call was repeated",
                count(unclear, "unclear outcome")
            ),
        ),
    }
}

fn is_unsafe(attempt: &Attempt, trace: &Trace, methods: &[&str]) -> bool {
    match attempt.kind {
        ExchangeKind::Llm | ExchangeKind::Other => false,
        // Other MCP messages have no side effects.
        ExchangeKind::Mcp => attempt.tools.iter().any(|tool| {
            let hints = trace.hints(attempt, tool);
            hints.reads_only != Some(true) && hints.is_idempotent != Some(true)
        }),
        ExchangeKind::Agent if !attempt.sends_message => false,
        ExchangeKind::Tool | ExchangeKind::Agent => methods.contains(&attempt.method.as_str()),
    }
}

/// A later attempt at the same request without the first one's key and without a check before it.
fn done_again<'a>(first: &Attempt, trace: &'a Trace) -> Option<&'a Attempt> {
    let ended = first.ended?;
    let attempts = trace.attempts().iter();
    let later = || attempts.clone().filter(|one| one.began >= ended);
    let carries_its_key = |one: &Attempt| first.key.is_some() && one.key == first.key;
    // Then an equal request with its own key is another call.
    let goes_on = later().any(carries_its_key);
    let again = later().find(|one| {
        let same = one.identity.is_some() && one.identity == first.identity;
        same && !carries_its_key(one) && !(goes_on && one.key.is_some())
    })?;
    let mut between = later().filter(|one| one.began <= again.began && one.id != again.id);
    let checked = between.any(|one| {
        one.host_and_port == first.host_and_port && one.failure.is_none() && reads(one, trace)
    });
    (!checked).then_some(again)
}

/// Prefixes of the names of tools that read.
const READS: [&str; 12] = [
    "get", "list", "find", "search", "read", "query", "show", "check", "fetch", "look", "describe",
    "retrieve",
];

/// Whether a request declares that it has no side effects.
fn reads(attempt: &Attempt, trace: &Trace) -> bool {
    let is_named_so = |tool: &str| {
        let name = tool.to_ascii_lowercase();
        READS.iter().any(|word| name.starts_with(word))
    };
    match attempt.kind {
        ExchangeKind::Llm | ExchangeKind::Other => false,
        ExchangeKind::Tool => matches!(attempt.method.as_str(), "GET" | "HEAD"),
        ExchangeKind::Agent => !attempt.sends_message,
        ExchangeKind::Mcp => {
            let reads_only = |tool: &String| trace.hints(attempt, tool).reads_only;
            let mut tools = attempt.tools.iter();
            !attempt.tools.is_empty()
                && tools.all(|tool| reads_only(tool).unwrap_or_else(|| is_named_so(tool)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    #[rustfmt::skip]
    fn a_second_order_needs_a_key_or_a_look() {
        let order = || Sent::post("https://shop.test/orders", r#"{"item":1}"#);
        let look = || Sent::get("https://shop.test/orders?item=1");
        let keyed = |key: &str| order().header("Idempotency-Key", key);
        let written = "{type: no_duplicate_side_effects}";
        for (sent, expected) in [
            (vec![order().status(504), order()], Fails),
            (vec![order().reset(), order()], Fails),
            (vec![order().cut(), order()], Fails),
            (vec![order().status(504)], Holds),
            (vec![order().status(504), look(), order()], Holds),
            (vec![order().status(504), look().status(500), order()], Fails),
            (vec![keyed("k").status(504), keyed("k")], Holds),
            (vec![keyed("k").status(504), keyed("l")], Fails),
            (vec![keyed("k").status(504), keyed("l").status(504), keyed("k"), keyed("l")], Holds),
            (vec![order().status(504), Sent::post("https://shop.test/orders", r#"{"item":2}"#)], Holds),
            (vec![order().status(429), order()], Unproven),
            (vec![order(), order()], Unproven),
            (vec![look().status(504), look()], Unproven),
            (vec![order().unread().status(504), order().unread()], Unproven),
            (vec![Sent::model("[]").status(504), Sent::model("[]")], Unproven),
            (vec![Sent::mcp("pay", "{}", 1).status(502), Sent::mcp("pay", "{}", 2)], Fails),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
        let only = "{type: no_duplicate_side_effects, methods: [put]}";
        assert_eq!(judged(only, &[order().status(504), order()]), Unproven);
    }

    #[test]
    #[rustfmt::skip]
    fn a_check_is_a_successful_read_at_the_same_server() {
        let order = || Sent::post("https://shop.test/orders", r#"{"item":"umbrella"}"#);
        let pay = |id| Sent::mcp("pay", r#"{"invoice":"INV-2231"}"#, id);
        let listed = |hint: &str| {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":9,"result":{{"tools":[{{"name":"ledger","annotations":{{"readOnlyHint":{hint}}}}}]}}}}"#
            );
            Sent::mcp("x", "{}", 9).no_tool().answer_body(&body)
        };
        for (before, first, check, expected) in vec![
            (vec![], order(), Sent::get("https://shop.test/orders/17"), Holds),
            (vec![], order(), Sent::get("https://shop.test/history"), Holds),
            (vec![], order(), Sent::get("https://shop.test/orders").status(404), Fails),
            (vec![], order(), Sent::get("https://shop.test:8443/orders/17"), Fails),
            (vec![], order(), Sent::post("https://shop.test/other", "{}"), Fails),
            (vec![], order(), Sent::model("[]"), Fails),
            (vec![], pay(1), Sent::mcp("get_payment", "{}", 2), Holds),
            (vec![], pay(1), Sent::mcp("list-payments", "{}", 2), Holds),
            (vec![], pay(1), Sent::mcp("getPayment", "{}", 2).status(500), Fails),
            (vec![], pay(1), Sent::mcp("ledger", "{}", 2), Fails),
            (vec![listed("true")], pay(1), Sent::mcp("ledger", "{}", 2), Holds),
            (vec![listed("false")], pay(1), Sent::mcp("get_ledger", "{}", 2), Holds),
        ] {
            let again = first.clone();
            let sent = [before, vec![first.status(504), check, again]].concat();
            let found = judged("{type: no_duplicate_side_effects}", &sent);
            assert_eq!(found, expected, "{sent:#?}");
        }
        let ledger = |id| Sent::mcp("ledger", "{}", id);
        let twice = |hint| [listed(hint), ledger(1).status(504), ledger(2)];
        let judged = |sent: &[Sent]| judged("{type: no_duplicate_side_effects}", sent);
        assert_eq!(judged(&twice("true")), Unproven, "it changes nothing");
        assert_eq!(judged(&twice("false")), Fails);
    }
}
