//! Invariants on traffic, which only a proxy sees.
//!
//! Each judges the [`Trace`] of one invocation. A check that found nothing wrong reports insufficient evidence in
//! some cases: exchanges are missing, or had no scope of the run, or required bodies were not read. It also does so
//! if nothing relevant happened, for example no failed call that could be retried.

mod backs_off;
mod honours_retry_after;
mod hosts_allowed;
mod loop_free;
mod max_calls;
pub(super) mod max_spent;
mod no_canary_egress;
mod no_duplicate_side_effects;
mod no_leaves;
mod no_retry_of_permanent;
mod no_unasked_tool;
mod requested;
mod retries_bounded;
mod retries_transient;
mod tool_called;
mod tool_failure_acknowledged;
mod tool_order;
mod truncated_stream_not_consumed;

use std::net::Ipv6Addr;

use squall_documents::{At, Fields};
use squall_journal::record::Kind;
use squall_profiles::glob::Glob;

use super::{InvariantKind, Verdict};
use crate::pattern::glob;
use crate::trace::{Attempt, FailureClass, LogicalCall, Trace};

pub(super) static KINDS: [InvariantKind; 20] = [
    tool_called::TOOL_CALLED,
    tool_called::TOOL_NOT_CALLED,
    tool_order::TOOL_ORDER,
    max_calls::MAX_CALLS,
    retries_bounded::RETRIES_BOUNDED,
    honours_retry_after::HONOURS_RETRY_AFTER,
    backs_off::BACKS_OFF,
    retries_transient::RETRIES_TRANSIENT,
    no_retry_of_permanent::NO_RETRY_OF_PERMANENT,
    no_duplicate_side_effects::NO_DUPLICATE_SIDE_EFFECTS,
    truncated_stream_not_consumed::TRUNCATED_STREAM_NOT_CONSUMED,
    tool_failure_acknowledged::TOOL_FAILURE_ACKNOWLEDGED,
    no_canary_egress::NO_CANARY_EGRESS,
    no_unasked_tool::NO_UNASKED_TOOL,
    no_leaves::NO_SECRET_LEAVES,
    no_leaves::NO_PII_LEAVES,
    hosts_allowed::HOSTS_ALLOWED,
    loop_free::LOOP_FREE,
    max_spent::MAX_TOKENS,
    max_spent::MAX_COST,
];

/// Every tool, including unnamed ones.
const EVERY_TOOL: &str = "*";

/// The exchanges that an invariant judges.
#[derive(Debug, Default)]
struct Narrow {
    /// Absent: all, including those without a tool.
    tool: Option<Glob>,
    /// Empty: all.
    hosts: Vec<Glob>,
    /// Only messages to these agents.
    to: Option<Glob>,
    /// Only calls by these agents.
    from: Option<Glob>,
}

impl Narrow {
    /// Reads `tool`, `host` and `hosts`.
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let narrow = Self::without_hosts(fields);
        let more = hosts(fields, "hosts", "The same as `host`.");
        let mut narrow = narrow?;
        narrow.hosts.extend(more?);
        Some(narrow)
    }

    /// Reads `tool` and `host`, for kinds with another meaning of `hosts`.
    fn without_hosts(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let mut named = |name, about| {
            let written = fields.words(name, about);
            written.map(|name| glob(fields.reader, &name))
        };
        let tool = named("tool", "Only calls of this tool; a glob.");
        let to = named("to", "Only messages to this agent; a glob.");
        let from = named("from", "Only calls by this agent; a glob.");
        let hosts = hosts(
            fields,
            "host",
            "Only exchanges with this host; a glob, or several.",
        );
        Some(Self {
            // An invalid glob is reported, and fails the whole.
            tool: tool.map_or(Some(None), |tool| tool.map(Some))?,
            to: to.map_or(Some(None), |to| to.map(Some))?,
            from: from.map_or(Some(None), |from| from.map(Some))?,
            hosts: hosts?,
        })
    }

    /// Describes the judged calls, for reasons.
    fn name(&self) -> String {
        let hosts: Vec<_> = self.hosts.iter().map(Glob::as_str).collect();
        let hosts = hosts.join(" or ");
        let called = self.tool.as_ref().or(self.to.as_ref()).map(Glob::as_str);
        let called = match called {
            None if hosts.is_empty() => "any tool or host".to_owned(),
            None => hosts,
            Some(name) if hosts.is_empty() => name.to_owned(),
            Some(name) => format!("{name} at {hosts}"),
        };
        match &self.from {
            None => called,
            Some(from) => format!("{called} from {}", from.as_str()),
        }
    }

    fn wants(&self, attempt: &Attempt) -> bool {
        let tool = self.tool.as_ref().is_none_or(|tool| {
            attempt.calls_a_tool()
                && (tool.as_str() == EVERY_TOOL
                    || attempt.tools.iter().any(|name| tool.matches(name)))
        });
        let to = self.to.as_ref().is_none_or(|to| {
            let is_call = attempt.sends_message || attempt.kind != Kind::Agent;
            is_call && attempt.tools.iter().any(|name| to.matches(name))
        });
        let from = self.from.as_ref().is_none_or(|from| {
            let name = attempt.from.as_deref();
            name.is_some_and(|name| from.matches(name))
        });
        tool && to && from && (self.hosts.is_empty() || is_host(attempt, &self.hosts))
    }

    /// The judged attempts.
    fn attempts<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = &'a Attempt> + 'a {
        let all = trace.attempts().iter();
        all.filter(|attempt| self.wants(attempt))
    }

    /// The judged calls, each as its attempts.
    fn calls<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = Vec<&'a Attempt>> + 'a {
        let of = |call: &'a LogicalCall| trace.attempts_of(call).collect::<Vec<_>>();
        let calls = trace.calls().iter().map(of);
        calls.filter(|attempts| attempts.iter().any(|attempt| self.wants(attempt)))
    }
}

/// Whether the upstream matches one of these; a glob may include the port.
fn is_host(attempt: &Attempt, hosts: &[Glob]) -> bool {
    hosts
        .iter()
        .any(|glob| glob.matches(&attempt.host) || glob.matches(&attempt.host_and_port))
}

/// One or more globs for hosts, in the form of [`Attempt::host`]. Empty without the field, `None` after an error.
fn hosts(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> Option<Vec<Glob>> {
    let texts = fields.texts(name, about, "a glob over hosts");
    if !fields.has(name) {
        return Some(Vec::new());
    }
    let mut globs = Vec::new();
    for text in texts? {
        if !text.value.is_ascii() {
            let shown = fields.reader.shown(text.position);
            let message = format!(
                "`{shown}` never comes over the wire; write the host in ASCII, as in `xn--mnchen-3ya.de`"
            );
            fields.reader.error(text.position, message);
            return None;
        }
        let host = text.value.to_ascii_lowercase();
        let value = match host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => host,
        };
        globs.push(glob(fields.reader, &At { value, ..text })?);
    }
    Some(globs)
}

/// One or more globs. Empty without the field, `None` after an error.
fn globs(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    what: &str,
) -> Option<Vec<Glob>> {
    let texts = fields.texts(name, about, what);
    if !fields.has(name) {
        return Some(Vec::new());
    }
    texts?
        .iter()
        .map(|text| glob(fields.reader, text))
        .collect()
}

/// Passes if the trace is complete; otherwise the evidence is insufficient.
fn holds(trace: &Trace, reason: impl Into<String>) -> Verdict {
    match trace.unseen() {
        None => Verdict::holds(reason),
        Some(why) => {
            Verdict::insufficient(format!("{why}; of those that were seen: {}", reason.into()))
        }
    }
}

/// Fails because something required was not found. If the trace is incomplete, the evidence is insufficient.
fn fails(trace: &Trace, reason: impl Into<String>) -> Verdict {
    match trace.unseen() {
        None => Verdict::fails(reason),
        Some(why) => Verdict::insufficient(format!("{}; {why}", reason.into())),
    }
}

fn failed_for(attempt: &Attempt, class: FailureClass) -> bool {
    attempt
        .failure
        .as_ref()
        .is_some_and(|failure| failure.class == class)
}

/// Whether an attempt failed and its retry cannot be recognised, because its body was not read. A key does not
/// help, because a retry may have another one.
fn is_nameless(attempt: &Attempt) -> bool {
    attempt.failure.is_some() && attempt.identity.is_none()
}

/// The verdict without retries. It requires that the bodies of all failed calls were read.
fn no_retries(narrow: &Narrow, trace: &Trace) -> Verdict {
    let mut attempts = narrow.attempts(trace);
    match attempts.find(|attempt| is_nameless(attempt)) {
        Some(nameless) => Verdict::insufficient(format!(
            "the body of {} was not read, so a retry of it cannot be recognised",
            nameless.name()
        ))
        .at(nameless),
        None => Verdict::insufficient("no call was tried again"),
    }
}

#[cfg(test)]
pub(super) mod testing;
