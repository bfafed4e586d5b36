//! A worker's note of one exchange.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use squall_dialects::Tokens;
use squall_journal::id::ExchangeId;
use squall_journal::record::{
    AgentRecord, CanaryEvent, CanaryRecord, Encoding, ExchangeRecord, LlmRecord, Outcome, Place,
    RuleOutcome, RuleRecord, SocketRecord, SpentRecord,
};
use squall_journal::redact::Redactor;
use squall_journal::ring::{Entry, Traits};
use squall_journal::tape::Recorded;
use squall_journal::timestamp;
use squall_profiles::activation::Fingerprint;
use squall_profiles::canary::Canary;
use squall_profiles::facts::Kind;
use squall_profiles::payloads::PayloadName;
use squall_profiles::prices::Usd;
use squall_profiles::ruleset::RuleSet;
use squall_profiles::spending::{Charge, Spending, Spent, Used};
use squall_profiles::verdict::{RuleVerdict, VerdictOutcome};

use super::ModelTraffic;
use crate::peer::Peer;
use crate::run_mark::RunMark;

/// Most additional tools stored for a request.
const TOOLS: usize = 64;

/// Most rules listed in a record; the others are counted.
const RULES: usize = 64;

/// One exchange as its worker saw it: raw parts, formatted when read.
///
/// A worker's note may contain secrets; the collector redacts it before it is stored.
#[derive(Debug, Clone)]
pub struct ExchangeNote {
    /// From [`super::Recorder::begin`].
    pub id: ExchangeId,
    /// Its scope.
    pub scope: Arc<str>,
    /// Its kind.
    pub kind: Kind,
    /// Dialect, for kind `llm`.
    pub dialect: Option<&'static str>,
    /// Tool name, when one is known.
    pub tool: Option<Arc<str>>,
    /// Other tools that were called in the same request, at most [`TOOLS`].
    pub more_tools: Box<[Arc<str>]>,
    /// For a model call: the tools with new results in the request, at most [`TOOLS`]. The name is
    /// empty if the request does not name the tool. `None` if no rule in force needed them.
    pub results: Option<Box<[Arc<str>]>>,
    /// Request method.
    pub method: Method,
    /// Upstream URL; `host:port` for tunnels.
    pub url: String,
    /// Status the agent got.
    pub status: Option<StatusCode>,
    /// Status the upstream gave.
    pub upstream_status: Option<StatusCode>,
    /// Its outcome; [`Outcome::Open`] while it runs.
    pub outcome: Outcome,
    /// The error, in one sentence, for every outcome except `ok`, `open` and `injected`.
    pub error: Option<String>,
    /// When the request's head was complete.
    pub started: Instant,
    /// From `started` to the end of the response; while open, until this note.
    pub duration: Duration,
    /// Delay that faults added.
    pub injected: Duration,
    /// Time that Squall itself added, without injected delays.
    pub overhead: Duration,
    /// Encoded body bytes received from the agent.
    pub request_bytes: u64,
    /// Encoded body bytes sent to the agent.
    pub response_bytes: u64,
    /// The request's fingerprint, if a draw needed it.
    pub fingerprint: Option<Fingerprint>,
    /// Number of this request among those with the same fingerprint in its scope, from 1.
    pub attempt: Option<u64>,
    /// Seed of the activation in force.
    pub seed: u64,
    /// Outcomes of the eligible rules, in order of precedence. Rules that are still
    /// [`Chosen`](squall_profiles::verdict::VerdictOutcome::Chosen) at the end of the exchange were
    /// not reached.
    pub verdicts: Vec<RuleVerdict>,
    /// Number of eligible rules that are not among the verdicts.
    pub verdicts_more: u64,
    /// The program that sent the request.
    pub peer: Option<Arc<Peer>>,
    /// Id of the activation in force.
    pub activation: Option<Arc<str>>,
    /// The run that it belongs to.
    pub run: Option<Arc<RunMark>>,
    /// The exchange of the WebSocket that carried it.
    pub websocket: Option<ExchangeId>,
    /// What the WebSocket carried that it opened.
    pub messages: Option<Box<SocketRecord>>,
    /// The rules in force, while they exist, for nearest misses.
    pub rules: Weak<RuleSet>,
    /// Removes secrets: values of variables in the rules in force, and after collection also the
    /// recorder's.
    pub redactor: Redactor,
    /// Canaries planted in it, and canaries found in its request.
    pub canaries: Vec<CanaryNote>,
    /// The parsed data of a model call.
    pub llm: Option<Box<LlmRecord>>,
    /// The call between agents.
    pub agent: Option<Box<AgentRecord>>,
    /// Heads and bodies, if the activation captures bodies.
    pub recorded: Option<Arc<Recorded>>,
    /// Usage of the scope's model calls; set for model calls only.
    pub spending: Option<Arc<Spending>>,
}

impl ExchangeNote {
    /// Records the tools that a request calls; `named` is the one under which it is listed.
    pub(crate) fn calls(&mut self, named: Option<&str>, all: &[&str]) {
        self.tool = named.map(Arc::from);
        let others = all.iter().filter(|tool| Some(**tool) != named);
        self.more_tools = others.take(TOOLS).map(|tool| Arc::from(*tool)).collect();
    }

    /// Records the calling agent, if it is known.
    pub(crate) fn comes_from(&mut self, agent: Option<&str>) {
        if let Some(agent) = agent {
            self.agent.get_or_insert_default().from = Some(agent.to_owned());
        }
    }

    /// Records the method with which an agent is called.
    pub(crate) fn calls_agent(&mut self, method: Option<&str>) {
        if self.kind == Kind::Agent {
            self.agent.get_or_insert_default().method = method.map(str::to_owned);
        }
    }

    /// Records the tools whose results a model call contains.
    pub(crate) fn brings(&mut self, tools: &[String]) {
        let first = tools.iter().take(TOOLS);
        self.results = Some(first.map(|tool| Arc::from(tool.as_str())).collect());
    }

    /// Removes secrets from its texts, and shortens texts and URLs to `most` bytes.
    pub(super) fn redact(&mut self, redactor: &Redactor, most: usize) {
        redactor.url(&mut self.url, most);
        let messages = self.messages.as_deref_mut();
        let close = messages.and_then(|messages| messages.close.as_mut());
        let reason = close.map(|close| &mut close.reason);
        let agent = self.agent.as_deref_mut();
        let method = agent.and_then(|agent| agent.method.as_mut());
        for text in self.error.iter_mut().chain(reason).chain(method) {
            redactor.text(text, most);
        }
        let results = self.results.iter_mut().flatten();
        let tools = self
            .tool
            .iter_mut()
            .chain(&mut self.more_tools)
            .chain(results);
        for tool in tools {
            let mut redacted = tool.to_string();
            redactor.text(&mut redacted, usize::MAX);
            if *redacted != **tool {
                *tool = redacted.into();
            }
        }
        if let Some(llm) = &mut self.llm {
            for text in llm.model.iter_mut().chain(&mut llm.tool_calls) {
                redactor.text(text, usize::MAX);
            }
        }
    }

    /// Records the data of a model call, unless its body shows that it is none.
    pub(super) fn read_call(&mut self, mut call: ModelTraffic) {
        let Some(dialect) = call.confirm() else {
            (self.kind, self.dialect) = (Kind::Tool, None);
            return;
        };
        self.dialect = Some(dialect.name());
        let (llm, tokens) = call.read();
        self.spend(llm.model.as_deref(), tokens);
        self.llm = Some(Box::new(llm));
    }

    /// Adds the call's usage to that of its scope.
    pub(crate) fn spend(&self, model: Option<&str>, tokens: Tokens) {
        Charge::new(self.spending.clone()).set(model, used(tokens));
    }

    /// The record for the API.
    pub fn to_record(&self) -> ExchangeRecord {
        let ended = self.outcome != Outcome::Open;
        let (rules, left_out) = self.rules_by_outcome();
        ExchangeRecord {
            id: self.id.to_string(),
            scope: self.scope.to_string(),
            kind: self.kind,
            dialect: self.dialect.map(str::to_owned),
            tool: self.tool.as_deref().map(str::to_owned),
            more_tools: self.more_tools.iter().map(ToString::to_string).collect(),
            method: self.method.to_string(),
            url: self.url.clone(),
            status: self.status.map(|status| status.as_u16()),
            upstream_status: self.upstream_status.map(|status| status.as_u16()),
            outcome: self.outcome,
            error: self.error.clone(),
            started_at: timestamp::rfc3339(self.id.started_ms()),
            duration_ms: ended.then(|| milliseconds(self.duration)),
            injected_ms: milliseconds(self.injected),
            overhead_us: u64::try_from(self.overhead.as_micros()).unwrap_or(u64::MAX),
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            fingerprint: self.fingerprint.map(|fingerprint| fingerprint.to_string()),
            attempt: self.attempt,
            seed: self.seed,
            rules,
            rules_more: self.verdicts_more + left_out,
            activation: self.activation.as_deref().map(str::to_owned),
            run: self.run.as_ref().map(|run| run.id().to_string()),
            websocket: self.websocket.map(|id| id.to_string()),
            messages: self.messages.as_deref().cloned(),
            canaries: self.canaries.iter().map(CanaryNote::to_record).collect(),
            llm: self.llm.as_deref().cloned(),
            agent: self.agent.as_deref().cloned(),
        }
    }

    /// The first [`RULES`] eligible rules, applied ones first, and the number of others.
    fn rules_by_outcome(&self) -> (Vec<RuleRecord>, u64) {
        let ended = self.outcome != Outcome::Open;
        let mut all: Vec<(RuleOutcome, &RuleVerdict)> = self
            .verdicts
            .iter()
            .map(|verdict| (outcome(verdict), verdict))
            .collect();
        all.sort_by_key(|(outcome, _)| *outcome);
        let left_out = all.len().saturating_sub(RULES) as u64;
        all.truncate(RULES);
        let rules = all
            .into_iter()
            .map(|(outcome, verdict)| self.rule(outcome, verdict, ended));
        (rules.collect(), left_out)
    }

    /// A text without secrets.
    pub(super) fn redacted(&self, mut text: String) -> String {
        self.redactor.text(&mut text, usize::MAX);
        text
    }

    fn rule(&self, outcome: RuleOutcome, verdict: &RuleVerdict, ended: bool) -> RuleRecord {
        let reason = match &verdict.outcome {
            VerdictOutcome::Applied => None,
            VerdictOutcome::NotDrawn(why) => Some(verdict.not_drawn(*why)),
            VerdictOutcome::Bypassed(why) => Some(why.clone()),
            VerdictOutcome::Chosen if ended => {
                Some("the exchange ended before it was reached".to_owned())
            }
            VerdictOutcome::Chosen => Some("not reached yet".to_owned()),
        };
        let tools = verdict.tools_told_of().iter().cloned();
        RuleRecord {
            profile: verdict.rule.profile.clone(),
            rule: verdict.rule.id.clone(),
            family: verdict.rule.family().as_str().to_owned(),
            mode: verdict.rule.mode().to_owned(),
            outcome,
            reason: reason.map(|reason| self.redacted(reason)),
            ordinal: verdict.ordinal,
            drawn: verdict.drawn.map(|draw| f64::from(draw.value) / 1e6),
            parameters: verdict.rule.parameters(&self.redactor),
            spent: verdict.spent.as_deref().map(spent),
            told_of: tools.map(|tool| self.redacted(tool)).collect(),
        }
    }
}

/// Where a canary was planted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryOrigin {
    /// The exchange in which the agent received it.
    pub exchange: ExchangeId,
    /// Id of the rule that planted it.
    pub rule: String,
    /// The payload that carried it; `None` for the payload given in the rule.
    pub payload: Option<PayloadName>,
}

/// A canary that was planted in an exchange or found in its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryNote {
    /// The canary.
    pub canary: Canary,
    /// Where it was planted.
    pub origin: CanaryOrigin,
    /// Where it was found, and its encoding; `None` if it was planted here.
    pub left: Option<(Place, Encoding)>,
}

impl CanaryNote {
    fn to_record(&self) -> CanaryRecord {
        CanaryRecord {
            canary: self.canary.to_string(),
            event: match self.left {
                None => CanaryEvent::Planted,
                Some(_) => CanaryEvent::Egress,
            },
            place: self.left.map(|(place, _)| place),
            encoding: self.left.map(|(_, encoding)| encoding),
            planted_by: self.origin.exchange.to_string(),
            rule: self.origin.rule.clone(),
            payload: self.origin.payload.map(|name| name.to_string()),
            category: self
                .origin
                .payload
                .and_then(PayloadName::category)
                .map(str::to_owned),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.origin.rule.len()
    }
}

/// Memory that the record of a WebSocket takes.
fn size_of_messages(messages: &SocketRecord) -> usize {
    let close = messages.close.as_ref();
    size_of::<SocketRecord>() + close.map_or(0, |close| close.reason.len())
}

/// A call's usage, for sums.
pub(crate) fn used(tokens: Tokens) -> Used {
    Used {
        input: tokens.input.unwrap_or_default(),
        output: tokens.output.unwrap_or_default(),
        estimated: tokens.estimated,
    }
}

/// The usage of calls, for the API.
pub(crate) fn spent(spent: &Spent) -> SpentRecord {
    SpentRecord {
        calls: spent.calls,
        input_tokens: spent.input,
        output_tokens: spent.output,
        estimated_tokens: spent.estimated,
        usd: spent.usd().map(Usd::dollars),
    }
}

fn outcome(verdict: &RuleVerdict) -> RuleOutcome {
    match verdict.outcome {
        VerdictOutcome::Applied => RuleOutcome::Applied,
        VerdictOutcome::NotDrawn(_) => RuleOutcome::NotDrawn,
        VerdictOutcome::Chosen | VerdictOutcome::Bypassed(_) => RuleOutcome::Bypassed,
    }
}

/// Milliseconds with three decimals.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

impl Entry for ExchangeNote {
    fn id(&self) -> ExchangeId {
        self.id
    }

    fn size(&self) -> usize {
        let texts = self.url.len()
            + self.tool.as_deref().map_or(0, str::len)
            + self
                .more_tools
                .iter()
                .chain(self.results.iter().flatten())
                .map(|tool| tool.len() + size_of::<Arc<str>>())
                .sum::<usize>()
            + self.error.as_ref().map_or(0, String::len)
            + self.messages.as_deref().map_or(0, size_of_messages)
            + self.canaries.iter().map(CanaryNote::size).sum::<usize>();
        let llm = self.llm.as_ref().map_or(0, |llm| {
            size_of::<LlmRecord>()
                + llm
                    .tool_calls
                    .iter()
                    .map(|name| name.len() + size_of::<String>())
                    .sum::<usize>()
        });
        let agent = self.agent.as_deref().map_or(0, |agent| {
            let texts = agent.from.iter().chain(&agent.method);
            size_of::<AgentRecord>() + texts.map(String::len).sum::<usize>()
        });
        // A reason is a short sentence.
        let verdicts = self.verdicts.len() * (size_of::<RuleVerdict>() + 48);
        let told_of = self.verdicts.iter().flat_map(RuleVerdict::tools_told_of);
        let told_of: usize = told_of.map(|tool| size_of::<String>() + tool.len()).sum();
        let recorded = self.recorded.as_ref().map_or(0, |it| it.weight());
        let user_agent = self.peer.as_ref().and_then(|peer| peer.user_agent());
        let peer = size_of::<Peer>() + user_agent.map_or(0, str::len);
        size_of::<ExchangeNote>() + texts + llm + agent + verdicts + told_of + recorded + peer
    }

    fn traits(&self) -> Traits<'_> {
        Traits {
            scope: &self.scope,
            kind: self.kind,
            tool: self.tool.as_deref(),
            more_tools: &self.more_tools,
            tool_calls: self.llm.as_ref().map_or(&[], |llm| &llm.tool_calls),
            url: &self.url,
            status: self.status.map(|status| status.as_u16()),
            outcome: self.outcome,
            run: self.run.as_ref().map(|run| &**run.id()),
        }
    }

    fn had_fault(&self, name: &str) -> bool {
        self.verdicts.iter().any(|verdict| {
            verdict.outcome == VerdictOutcome::Applied
                && (name == "*" || name == verdict.rule.mode() || name == verdict.rule.id)
        })
    }

    fn told_of(&self, tool: &str) -> bool {
        let tools = self.verdicts.iter().flat_map(RuleVerdict::tools_told_of);
        tools.into_iter().any(|told| told == tool)
    }
}
