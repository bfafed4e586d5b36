//! A rule: a match, a trigger and a fault.

use std::sync::Arc;

use serde_json::Value;
use squall_dialects::mcp::{Call, RpcRequest};

use crate::family::Family;
use crate::fault::{COUNTED_BY, Fault, FaultMode};
use crate::matching::{Match, Touches};
use crate::trigger::Trigger;
use squall_documents::Position;
use squall_journal::redact::Redactor;

/// One rule of a profile, checked and typed.
#[derive(Debug)]
pub struct Rule {
    /// Unique in its profile: the given id, or the mode and eight hex digits.
    pub id: String,
    /// Name of the profile that defines it.
    pub profile: String,
    /// The file and the place in it where the rule was written.
    pub origin: Origin,
    pub(crate) matching: Match,
    pub(crate) trigger: Trigger,
    pub(crate) fault_mode: &'static FaultMode,
    pub(crate) fault: Fault,
    /// Parameters that have no effect.
    pub(crate) ignored: Vec<&'static str>,
    /// Removes secrets from everything that is reported.
    pub(crate) redactor: Redactor,
    /// Hash of the rule's text without its id: rules with equal text keep their counters.
    pub(crate) text: u64,
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file name given to [`crate::profile::parse`].
    pub file: Arc<str>,
    /// Where the rule begins.
    pub position: Position,
    /// JSON pointer to the rule.
    pub pointer: Box<str>,
}

impl Rule {
    /// The fault's effective parameters with defaults and without secrets, for the journal.
    pub fn parameters(&self, redactor: &Redactor) -> Value {
        let mut parameters = self.fault.parameters.clone();
        if self.fault.counts_tokens {
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

    /// The mode's name in files.
    pub fn mode(&self) -> &'static str {
        self.fault_mode.name
    }

    /// The definition of its mode.
    pub fn fault_mode(&self) -> &'static FaultMode {
        self.fault_mode
    }

    /// The only tool that the rule names. A call that the rule matches is a call of that tool.
    pub fn tool(&self) -> Option<&str> {
        let tool = self.matching.tool.as_deref()?;
        let mut names = tool.name.literals()?;
        let name = names.next().filter(|_| names.next().is_none())?;
        (self.matching.touches == Touches::Calls).then_some(name)
    }

    /// Whether it matches only calls of tools on the wire: it has no `match_url`, and changes no results in the input of
    /// a model.
    pub fn needs_a_tool_call(&self) -> bool {
        let anywhere = self.matching.urls.alternatives().is_empty();
        self.family() == Family::Tool && anywhere && !self.matching.touches.in_results()
    }

    /// The calls of an MCP request that the rule applies to: those of the tools it names, or else
    /// those that its kind of fault affects.
    pub fn calls_meant(&self, request: &RpcRequest) -> Vec<Call> {
        let of = |is_meant: &dyn Fn(&Call) -> bool| -> Vec<Call> {
            let meant = request.requests().filter(|call| is_meant(call));
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

    /// The same rule, firing on exactly these of its matching calls.
    pub(crate) fn limited(&self, calls: Box<[u64]>) -> Self {
        Self {
            id: self.id.clone(),
            profile: self.profile.clone(),
            origin: self.origin.clone(),
            matching: self.matching.clone(),
            trigger: Trigger {
                calls: Some(calls),
                ..Trigger::default()
            },
            fault_mode: self.fault_mode,
            fault: self.fault.clone(),
            ignored: self.ignored.clone(),
            redactor: self.redactor.clone(),
            text: self.text,
        }
    }

    /// Whether a draw decides its effect; a draw needs the request's fingerprint.
    pub(crate) fn draws(&self) -> bool {
        self.trigger.chance.draws() || self.fault.needs_fingerprint
    }
}
