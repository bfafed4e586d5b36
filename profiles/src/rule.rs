//! A rule: a match, a trigger and a fault.

use std::sync::Arc;

use serde_json::Value;
use squall_dialects::mcp::{Asked, Call};
use squall_dialects::tokens::Counting;

use crate::family::Family;
use crate::fault::{COUNTED_BY, Fault, FaultMode};
use crate::matching::{Match, Touches};
use crate::trigger::Trigger;
use squall_documents::Position;
use squall_journal::redact::Redactor;

/// One rule of a profile, checked and typed.
#[derive(Debug)]
pub struct Rule {
    /// Unique in its profile: given, or mode and eight hex digits.
    pub id: String,
    /// Name of the profile it was written in.
    pub profile: String,
    /// The file and the place in it where the rule was written.
    pub origin: Origin,
    pub(crate) matching: Match,
    pub(crate) trigger: Trigger,
    pub(crate) fault_mode: &'static FaultMode,
    pub(crate) fault: Box<dyn Fault>,
    /// Parameters that stand there as flakestorm lets them, and that the mode does not use.
    pub(crate) without_effect: Vec<&'static str>,
    /// A parameter that another one that stands there takes the place of: it, and that one.
    pub(crate) eclipsed: Option<(&'static str, &'static str)>,
    /// Knows what is carried out and not told.
    pub(crate) redactor: Redactor,
    /// Hash of everything that was written in it but its id: equal texts keep their counters.
    pub(crate) text: u64,
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file as it was named to [`crate::profile::parse`].
    pub file: Arc<str>,
    /// Where it begins.
    pub position: Position,
    /// JSON pointer to it.
    pub pointer: Box<str>,
}

impl Rule {
    /// The fault's parameters as they are used, defaults filled in, without secrets: for the journal.
    pub fn parameters(&self, redactor: &Redactor) -> Value {
        let mut parameters = self.fault.parameters();
        if self.fault.depends_on_tokens() {
            parameters.insert("counted_by".into(), COUNTED_BY.into());
        }
        let mut parameters = Value::Object(parameters);
        redactor.and(&self.redactor).document(&mut parameters);
        parameters
    }

    /// `network_faults`, `tool_faults`, `llm_faults` or `context_attacks`.
    pub fn family(&self) -> Family {
        self.fault_mode.family
    }

    /// The mode as written in files.
    pub fn mode(&self) -> &'static str {
        self.fault_mode.name
    }

    /// The row of its mode.
    pub fn fault_mode(&self) -> &'static FaultMode {
        self.fault_mode
    }

    /// The one tool that the rule is about by name: a call that it matches is that tool's.
    pub fn tool(&self) -> Option<&str> {
        let tool = self.matching.tool.as_deref()?;
        let mut names = tool.name.literals()?;
        let name = names.next().filter(|_| names.next().is_none())?;
        (self.matching.touches == Touches::Calls).then_some(name)
    }

    /// The calls of an MCP request that the rule is about: those of the tools it names, else those
    /// that its kind of fault touches.
    pub fn calls_meant(&self, asked: &Asked) -> Vec<Call> {
        let of = |is_meant: &dyn Fn(&Call) -> bool| -> Vec<Call> {
            let meant = asked.requests().filter(|call| is_meant(call));
            meant.cloned().collect()
        };
        if self.matching.touches == Touches::Lists {
            return of(&Call::is_tool_list);
        }
        if let Some(tool) = &self.matching.tool {
            let named = of(&|call| {
                let name = call.tool.as_deref();
                call.is_tool_call() && name.is_some_and(|name| tool.name.matches(name))
            });
            if !named.is_empty() {
                return named;
            }
        }
        if self.matching.touches == Touches::Sessions {
            return of(&|_| true);
        }
        let calls = of(&Call::is_tool_call);
        let by_url = !self.matching.urls.is_empty();
        let of_tools = matches!(self.family(), Family::Tool | Family::Context);
        if calls.is_empty() || by_url || !of_tools {
            return of(&|_| true);
        }
        calls
    }

    /// The vocabularies that it may count by: of models that it matches, as far as its match names
    /// them. Where it names none, that of today's models; another is read when it is first needed.
    pub fn vocabularies(&self) -> Vec<Counting> {
        if !self.fault.counts_tokens() {
            return Vec::new();
        }
        let more = self.matching.more.as_ref();
        let Some(model) = more.and_then(|more| more.model.as_ref()) else {
            return vec![Counting::O200k];
        };
        let known = [
            ("gpt-4o", Counting::O200k),
            ("gpt-4o-mini", Counting::O200k),
            ("gpt-4.1", Counting::O200k),
            ("gpt-5", Counting::O200k),
            ("o1", Counting::O200k),
            ("o3", Counting::O200k),
            ("o3-mini", Counting::O200k),
            ("o4-mini", Counting::O200k),
            ("gpt-4", Counting::Cl100k),
            ("gpt-4-turbo", Counting::Cl100k),
            ("gpt-3.5-turbo", Counting::Cl100k),
        ];
        let mut found: Vec<_> = known
            .into_iter()
            .filter(|(name, _)| model.matches(name))
            .map(|(_, counting)| counting)
            .collect();
        found.dedup();
        found
    }

    /// Whether some draw decides what it does: then the request's fingerprint is wanted.
    pub(crate) fn draws(&self) -> bool {
        self.trigger.chance.draws() || self.fault.needs_fingerprint()
    }
}
