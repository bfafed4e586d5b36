//! `no_duplicate_side_effects`: what may have been done already is not done again.
//!
//! After an outcome that leaves open whether the upstream did it, the same unsafe request needs the
//! `Idempotency-Key` of the first one, or a read of the same host in between. Model calls change
//! nothing.

use squall_journal::record::Kind as ExchangeKind;
use squall_profiles::error::did_you_mean;

use super::{Narrow, holds, is_nameless, no_retries, wire};
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::suite::reader::Fields;
use crate::trace::{Attempt, Trace};

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
pub(crate) const METHODS: [&str; 15] = [
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

fn methods(fields: &mut Fields<'_, '_, '_>) -> Vec<String> {
    let written = fields.texts("methods", "request methods, like `[POST]`");
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
        for attempt in self
            .narrow
            .attempts(trace)
            .filter(|one| self.is_unsafe(one))
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
            if let Some(again) = done_again(attempt, trace) {
                let why = attempt.failure.as_ref().map(|failure| failure.why.as_str());
                return Verdict::Fails(format!(
                    "{} {}: {}, and {} did it again without a key or a look",
                    attempt.method,
                    attempt.name(),
                    why.unwrap_or_default(),
                    again.id
                ));
            }
        }
        match unclear {
            0 => Verdict::Insufficient("no unsafe request had an unclear outcome".to_owned()),
            _ if nameless => no_retries(&self.narrow, trace),
            unclear => holds(
                trace,
                format!("{unclear} unclear outcomes, and nothing done twice"),
            ),
        }
    }
}

impl NoDuplicates {
    fn is_unsafe(&self, attempt: &Attempt) -> bool {
        match attempt.kind {
            ExchangeKind::Llm | ExchangeKind::Other => false,
            // What else goes over MCP's one POST changes nothing.
            ExchangeKind::Mcp => attempt.calls_a_tool(),
            ExchangeKind::Tool => self.methods.contains(&attempt.method),
        }
    }
}

/// The same request later, that neither carries the first one's key nor follows a look.
fn done_again<'a>(first: &Attempt, trace: &'a Trace) -> Option<&'a Attempt> {
    let ended = first.ended?;
    let later = || {
        trace
            .attempts()
            .iter()
            .filter(move |one| one.began >= ended)
    };
    let again = later().find(|one| {
        let same = one.identity.is_some() && one.identity == first.identity;
        same && !(first.key.is_some() && one.key == first.key)
    })?;
    let looked = later().any(|one| {
        matches!(one.method.as_str(), "GET" | "HEAD")
            && one.host == first.host
            && one.began <= again.began
            && one.failure.is_none()
    });
    (!looked).then_some(again)
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
}
