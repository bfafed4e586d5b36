//! `no_duplicate_side_effects`: what may have been done already is not done again.
//!
//! After an outcome that leaves open whether the upstream did it, the same unsafe request needs the
//! `Idempotency-Key` of the first one, or a look at the same thing in between. Model calls change
//! nothing.
//!
//! A look is a read that went well, at the same server: GET, HEAD, a POST whose path ends on a word for
//! reading, a tool of MCP that its server lists as one that reads or whose name says so. It is at the same
//! thing where its path is the first one's, one below or above it, or has a word of it; or where it names what
//! the first one sent, or its answer does.

use squall_documents::{Fields, did_you_mean};
use squall_journal::record::Kind as ExchangeKind;

use super::{Narrow, holds, is_nameless, no_retries, wire};
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::{About, Attempt, Trace, path_and_query, words};

/// `methods`, default POST, PUT, PATCH, DELETE.
pub(super) const NO_DUPLICATE_SIDE_EFFECTS: Kind = wire("no_duplicate_side_effects", |fields| {
    let narrow = Narrow::read(fields);
    let methods = methods(fields);
    Some(Box::new(NoDuplicates {
        narrow: narrow?,
        methods,
    }))
});

/// Methods of RFC 9110 §9 and RFC 5789, and those of `WebDAV` that change something.
const METHODS: [&str; 15] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "COPY",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PROPPATCH",
    "UNLOCK",
];

fn methods(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let about = "Methods that change something; default POST, PUT, PATCH, DELETE.";
    let written = fields.texts("methods", about, "request methods, like `[POST]`");
    let Some(written) = written else {
        return ["POST", "PUT", "PATCH", "DELETE"]
            .map(str::to_owned)
            .to_vec();
    };
    for method in &written {
        if !METHODS.contains(&method.value.to_ascii_uppercase().as_str()) {
            let nearest = did_you_mean(&method.value.to_ascii_uppercase(), METHODS);
            let message = format!("`{}` is no request method{nearest}", method.value);
            fields.reader.error(method.position, message);
        }
    }
    let methods = written
        .into_iter()
        .map(|method| method.value.to_ascii_uppercase());
    methods.collect()
}

#[derive(Debug)]
struct NoDuplicates {
    narrow: Narrow,
    methods: Vec<String>,
}

impl Check for NoDuplicates {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let trace = subject.trace;
        let mut unclear = 0;
        let mut nameless = false;
        let mut perhaps = None;
        for attempt in self
            .narrow
            .attempts(trace)
            .filter(|one| self.is_unsafe(one, trace))
        {
            if !attempt
                .failure
                .as_ref()
                .is_some_and(|failure| failure.unclear)
            {
                continue;
            }
            unclear += 1;
            nameless |= is_nameless(attempt);
            let Some((again, looked)) = done_again(attempt, trace) else {
                continue;
            };
            let why = attempt.failure.as_ref().map(|failure| failure.why.as_str());
            let told = format!(
                "{} {}: {}; it was called again ({}) without an idempotency key",
                attempt.method,
                attempt.name(),
                why.unwrap_or_default(),
                again.id
            );
            match looked {
                Looked::Yes => {}
                Looked::No => {
                    return Verdict::Fails(format!(
                        "{told} and without checking whether the first call had succeeded"
                    ));
                }
                Looked::Perhaps => perhaps = perhaps.or(Some(told)),
            }
        }
        if let Some(told) = perhaps {
            let told =
                format!("{told}; whether the calls in between checked the first one is not known");
            return Verdict::Insufficient(told);
        }
        match unclear {
            0 => Verdict::Insufficient("no unsafe request had an unclear outcome".to_owned()),
            _ if nameless => no_retries(&self.narrow, trace),
            unclear => holds(
                trace,
                format!("{unclear} unclear outcomes, and no call was repeated"),
            ),
        }
    }
}

impl NoDuplicates {
    fn is_unsafe(&self, attempt: &Attempt, trace: &Trace) -> bool {
        match attempt.kind {
            ExchangeKind::Llm | ExchangeKind::Other => false,
            // What else goes over MCP's one POST changes nothing.
            ExchangeKind::Mcp => attempt.tools.iter().any(|tool| {
                let hints = trace.hints(attempt, tool);
                hints.reads_only != Some(true) && hints.is_idempotent != Some(true)
            }),
            ExchangeKind::Tool => self.methods.contains(&attempt.method),
        }
    }
}

/// Whether an agent looked what had become of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Looked {
    No,
    /// What it read may have shown it.
    Perhaps,
    Yes,
}

/// The same request later that does not carry the first one's key, and whether there was a look before it.
fn done_again<'a>(first: &Attempt, trace: &'a Trace) -> Option<(&'a Attempt, Looked)> {
    let ended = first.ended?;
    let later = || {
        trace
            .attempts()
            .iter()
            .filter(move |one| one.began >= ended)
    };
    let carries_its_key = |one: &Attempt| first.key.is_some() && one.key == first.key;
    // Then what has a key of its own is another thing that is wished, however equal.
    let goes_on = later().any(carries_its_key);
    let again = later().find(|one| {
        let same = one.identity.is_some() && one.identity == first.identity;
        same && !carries_its_key(one) && !(goes_on && one.key.is_some())
    })?;
    let between = later().filter(|one| one.began <= again.began && one.id != again.id);
    let looked = between.map(|one| look(first, one, trace)).max();
    Some((again, looked.unwrap_or(Looked::No)))
}

/// Words for reading, at the beginning of a tool's name or at the end of a path.
const READS: [&str; 14] = [
    "get", "list", "find", "search", "read", "query", "show", "check", "fetch", "lookup", "look",
    "statu", "describe", "retrieve",
];

/// Whether one request is a look at what became of another.
fn look(first: &Attempt, one: &Attempt, trace: &Trace) -> Looked {
    let here = one.host_and_port == first.host_and_port && one.failure.is_none();
    if !here || !reads(one, trace) {
        return Looked::No;
    }
    let (done, read) = (trace.about(first), trace.about(one));
    let is_same_path = one.kind == ExchangeKind::Tool && is_on_one_way(&first.url, &one.url);
    let is_named = read.values.iter().any(|value| done.is_named_in(value));
    if is_same_path || is_named || done.is_named_in(&one.url) || share_a_thing(&done, &read) {
        return Looked::Yes;
    }
    let answer = trace.exchange(one).response.as_ref();
    match answer.and_then(|answer| answer.body.as_ref()) {
        Some(body) if done.is_named_in(&String::from_utf8_lossy(&body.bytes)) => Looked::Yes,
        Some(body) if body.whole => Looked::No,
        Some(_) | None => Looked::Perhaps,
    }
}

/// Whether a request changes nothing, as far as it says.
fn reads(attempt: &Attempt, trace: &Trace) -> bool {
    let is_for_reading = |word: Option<String>| word.is_some_and(|it| READS.contains(&&*it));
    match attempt.kind {
        ExchangeKind::Llm | ExchangeKind::Other => false,
        ExchangeKind::Tool => {
            let (path, _) = path_and_query(&attempt.url);
            matches!(attempt.method.as_str(), "GET" | "HEAD") || is_for_reading(words(path).last())
        }
        ExchangeKind::Mcp if attempt.tools.is_empty() => {
            let method = trace.about(attempt).place;
            ["resource", "read"]
                .iter()
                .all(|word| method.contains(*word))
        }
        ExchangeKind::Mcp => attempt.tools.iter().all(|tool| {
            let hint = trace.hints(attempt, tool).reads_only;
            hint.unwrap_or_else(|| is_for_reading(words(tool).next()))
        }),
    }
}

/// Whether one path is the other, or the beginning of it.
fn is_on_one_way(one: &str, other: &str) -> bool {
    let steps = |url| -> Vec<_> {
        let (path, _) = path_and_query(url);
        path.split('/').filter(|step| !step.is_empty()).collect()
    };
    let (one, other): (Vec<&str>, Vec<&str>) = (steps(one), steps(other));
    // The root is above everything, and so says nothing of a thing below it.
    other.starts_with(&one) || (!other.is_empty() && one.starts_with(&other))
}

/// Whether two places have a word for the same thing, `pay` and `payment` among them.
fn share_a_thing(one: &About, other: &About) -> bool {
    const DEEDS: [&str; 14] = [
        "create", "add", "new", "make", "post", "put", "update", "set", "place", "submit", "send",
        "do", "run", "delete",
    ];
    let is_thing =
        |word: &&String| !READS.contains(&word.as_str()) && !DEEDS.contains(&word.as_str());
    let related = |one: &str, other: &str| {
        let is_long = one.len().min(other.len()) >= 3;
        one == other || (is_long && (one.starts_with(other) || other.starts_with(one)))
    };
    let others: Vec<_> = other.place.iter().filter(is_thing).collect();
    let mut things = one.place.iter().filter(is_thing);
    things.any(|thing| others.iter().any(|other| related(thing, other)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
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
            (
                vec![order().status(504), look().status(500), order()],
                Fails,
            ),
            (vec![keyed("k").status(504), keyed("k")], Holds),
            (vec![keyed("k").status(504), keyed("l")], Fails),
            (
                vec![
                    keyed("k").status(504),
                    keyed("l").status(504),
                    keyed("k"),
                    keyed("l"),
                ],
                Holds,
            ),
            (
                vec![
                    order().status(504),
                    Sent::post("https://shop.test/orders", r#"{"item":2}"#),
                ],
                Holds,
            ),
            (vec![order().status(429), order()], Unproven),
            (vec![order(), order()], Unproven),
            (vec![look().status(504), look()], Unproven),
            (
                vec![order().unread().status(504), order().unread()],
                Unproven,
            ),
            (
                vec![Sent::model("[]").status(504), Sent::model("[]")],
                Unproven,
            ),
            (
                vec![
                    Sent::mcp("pay", "{}", 1).status(502),
                    Sent::mcp("pay", "{}", 2),
                ],
                Fails,
            ),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
        let only = "{type: no_duplicate_side_effects, methods: [put]}";
        assert_eq!(judged(only, &[order().status(504), order()]), Unproven);
    }

    #[test]
    fn a_look_is_one_at_the_same_thing() {
        let order = || {
            Sent::post(
                "https://shop.test/v1/create_order",
                r#"{"item":"umbrella"}"#,
            )
        };
        for (look, expected) in [
            (Sent::get("https://shop.test/v1/orders/17"), Holds),
            (Sent::get("https://shop.test/v1/find?q=umbrella"), Holds),
            (Sent::get("https://shop.test/v1/create_order"), Holds),
            (
                Sent::get("https://shop.test/v1/history").answer_body(r#"["an Umbrella"]"#),
                Holds,
            ),
            (
                Sent::post("https://shop.test/v1/orders/search", r#"{"day":"today"}"#),
                Holds,
            ),
            (Sent::get("https://shop.test/zzz/unrelated"), Fails),
            (Sent::get("https://shop.test/"), Fails),
            (Sent::get("https://shop.test:8443/v1/orders/17"), Fails),
            (
                Sent::get("https://shop.test/v1/history").answer_unread(),
                Unproven,
            ),
        ] {
            let sent = [order().status(504), look, order()];
            let found = judged("{type: no_duplicate_side_effects}", &sent);
            assert_eq!(found, expected, "{:#?}", sent[1]);
        }
    }

    #[test]
    fn an_mcp_tool_that_reads_is_a_look() {
        let listed = |hint: &str| {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":9,"result":{{"tools":[{{"name":"ledger","annotations":{{"readOnlyHint":{hint}}}}}]}}}}"#
            );
            Sent::mcp("x", "{}", 9).no_tool().answer_body(&body)
        };
        let pay = |id| Sent::mcp("pay", r#"{"invoice":"INV-2231"}"#, id);
        let about = r#"{"number":"INV-2231"}"#;
        for (hint, look, expected) in [
            ("false", Sent::mcp("get_payment", "{}", 2), Holds),
            ("false", Sent::mcp("list-payments", "{}", 2), Holds),
            ("false", Sent::mcp("getPayment", "{}", 2).status(500), Fails),
            (
                "false",
                Sent::mcp("get_weather", r#"{"town":"Kiel"}"#, 2),
                Fails,
            ),
            ("false", Sent::mcp("ledger", about, 2), Fails),
            ("true", Sent::mcp("ledger", about, 2), Holds),
            ("true", Sent::mcp("ledger", "{}", 2), Fails),
        ] {
            let sent = [listed(hint), pay(1).status(504), look, pay(3)];
            let found = judged("{type: no_duplicate_side_effects}", &sent);
            assert_eq!(found, expected, "{hint} {:#?}", sent[2]);
        }
        let ledger = |id| Sent::mcp("ledger", about, id);
        let twice = |hint| [listed(hint), ledger(1).status(504), ledger(2)];
        let judged = |sent: &[Sent]| judged("{type: no_duplicate_side_effects}", sent);
        assert_eq!(judged(&twice("true")), Unproven, "it changes nothing");
        assert_eq!(judged(&twice("false")), Fails);
    }
}
