//! Which rules fire on one exchange, and the plan they write.

mod firing;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use smallvec::SmallVec;
use squall_dialects::{Target, mcp};

use self::firing::Firing;
use crate::activation::{Observe, Snapshot};
use crate::dice::Dice;
use crate::facts::{CanonicalUrl, Facts, Kind, Stage};
use crate::family::Family;
use crate::fault::AllowedUse;
use crate::faults::llm_stream::NO_STREAM;
use crate::faults::rpc_answer::OUT_OF_BAND;
use crate::fingerprint::Fingerprint;
use crate::index::Candidates;
use crate::matching::{Holds, Match};
use crate::plan::{Bypass, Plan, VerdictIndex};
use crate::rule::Rule;
use crate::ruleset::Candidate;
use crate::spending::{Charge, Spending};
use crate::verdict::{Draw, RuleVerdict, VerdictOutcome};

/// Most verdicts listed in one plan for rules that did not fire; further ones are only counted.
const LISTED_NOT_DRAWN: usize = 64;
/// Most verdicts listed in one plan.
const LISTED: usize = VerdictIndex::MAX as usize;

/// The rules that may match according to the request's head.
#[derive(Debug)]
pub struct Shortlist {
    /// A rule on it needs the request's body before [`Snapshot::decide`]: to match it, or for the
    /// fingerprint of a draw.
    pub needs_body: bool,
    /// A rule on it depends on the model call: its fault responds in the call's format, or it
    /// matches a dialect.
    pub depends_on_the_call: bool,
    candidates: Candidates,
    /// The exchange's kind at that time.
    kind: Kind,
    /// The exchange's tool names at that time.
    tools: Vec<String>,
}

impl Shortlist {
    /// True if no rule can match, so there is nothing to decide.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty() && !self.needs_body
    }
}

/// The decision for one exchange.
#[derive(Debug, Default)]
pub struct Decision {
    /// The faults to apply.
    pub plan: Plan,
    /// One entry for each eligible rule, in order of precedence.
    pub verdicts: Vec<RuleVerdict>,
    /// The request's fingerprint; `None` where no draw needed it.
    pub fingerprint: Option<Fingerprint>,
    /// Number of this request among those with the same fingerprint in the scope, from 1.
    pub attempt: Option<u64>,
    /// Number of eligible rules that did not fire and are not among the verdicts, which list at
    /// most 64.
    pub more: u64,
    /// The exchange's kind.
    kind: Kind,
    /// Whether the agent requests a stream, if known.
    stream: Option<bool>,
    /// It is an MCP request with an out-of-band reply.
    out_of_band: bool,
    /// Matching rules with a condition on the upstream's status.
    pending: SmallVec<[u32; 2]>,
    /// Matching watches with such a condition.
    pending_watches: SmallVec<[u32; 2]>,
    not_drawn: usize,
    /// Counters of the call's usage.
    charged: SmallVec<[Arc<Spending>; 1]>,
}

impl Decision {
    /// The call's share in the budgets of the rules that it matches; `None` if there are none. Set
    /// its usage before the agent gets the response.
    pub fn charge(&mut self) -> Option<Charge> {
        let charged = std::mem::take(&mut self.charged);
        (!charged.is_empty()).then(|| Charge::new(charged))
    }

    /// True if [`Snapshot::on_response`] must be called when the upstream's head arrives.
    pub fn awaits_response(&self) -> bool {
        !self.pending.is_empty() || !self.pending_watches.is_empty()
    }
}

impl Snapshot {
    /// The rules that may match according to the request's head.
    pub fn shortlist(&self, facts: &Facts<'_>, stage: Stage) -> Shortlist {
        let rules = &self.live.rules;
        let at_connect = matches!(stage, Stage::Connect);
        let connection = connection_url(facts, stage);
        let mut candidates = rules.find(facts);
        let mut needs_body = !at_connect && rules.may_find_more(facts);
        let mut depends_on_the_call = false;
        candidates.retain(|number| {
            let candidate = rules.candidate(*number);
            let (matching, tool_urls) = rules.conditions(candidate);
            let (family, draws) = match candidate {
                Candidate::Rule(rule) => {
                    let decided_at_connect = connection
                        .as_deref()
                        .is_some_and(|url| is_of_the_connection(&rules.rules()[rule], url));
                    if at_connect != decided_at_connect {
                        return false;
                    }
                    (
                        Some(rules.rules()[rule].family()),
                        rules.compiled(rule).draws,
                    )
                }
                Candidate::Watch(_) if at_connect => return false,
                Candidate::Watch(_) => (None, false),
            };
            let holds = matching.holds_beside_url(family, facts, tool_urls);
            let asks = draws || holds == Holds::Unknown || matching.asks_for_the_body();
            needs_body |= holds != Holds::No && asks && !at_connect;
            let in_kind = family.is_some_and(|family| family != Family::Network);
            depends_on_the_call |= holds != Holds::No && (in_kind || matching.dialect.is_some());
            holds != Holds::No
        });
        Shortlist {
            needs_body,
            depends_on_the_call,
            candidates,
            kind: facts.kind,
            tools: facts.tools.to_vec(),
        }
    }

    /// Draws, counts and writes the plan. `elapsed` is the time since activation. It is pure except
    /// for the counters.
    ///
    /// `facts` may contain more than for the shortlist: the body, and from it the model, stream,
    /// MCP tool and a corrected kind. A request known to have no body has `Some(b"")`.
    pub fn decide(
        &self,
        shortlist: &Shortlist,
        facts: &Facts<'_>,
        stage: Stage,
        elapsed: Duration,
    ) -> Decision {
        let known = shortlist.kind == facts.kind && shortlist.tools == facts.tools;
        let again = (!known).then(|| self.shortlist(facts, stage));
        let candidates = &again.as_ref().unwrap_or(shortlist).candidates;
        let mut decision = Decision {
            kind: facts.kind,
            stream: facts.stream,
            out_of_band: replies_out_of_band(facts),
            ..Decision::default()
        };
        let mut watches: SmallVec<[u32; 2]> = SmallVec::new();
        let matching = self.matching(candidates, facts, &mut decision, &mut watches);
        let rules = &self.live.rules;
        if matching
            .iter()
            .any(|rule| rules.compiled(*rule as usize).draws)
        {
            let fingerprint = Fingerprint::of(facts);
            decision.fingerprint = Some(fingerprint);
            decision.attempt = Some(self.live.attempts.count(fingerprint));
        }
        let mut fired: SmallVec<[u32; 4]> = SmallVec::new();
        for rule in matching {
            if rules.rules()[rule as usize].matching.status.is_some() {
                decision.pending.push(rule);
            } else if self.consider(rule, Some(facts), &mut decision, stage, elapsed) {
                fired.push(rule);
            }
        }
        decision.settle();
        self.arm(&fired, &watches);
        decision
    }

    /// Decides the rules with a `status`, and lets the response arm others. Call it when the
    /// upstream's head has arrived, before any of it is passed on.
    pub fn on_response(&self, decision: &mut Decision, status: u16, elapsed: Duration) {
        let rules = &self.live.rules;
        let mut fired: SmallVec<[u32; 4]> = SmallVec::new();
        for rule in std::mem::take(&mut decision.pending) {
            let wanted = rules.rules()[rule as usize].matching.status.as_ref();
            let holds = wanted.is_some_and(|wanted| wanted.holds(status));
            let stage = Stage::Request {
                behind_connect: false,
            };
            if holds && self.consider(rule, None, decision, stage, elapsed) {
                fired.push(rule);
            }
        }
        decision.settle();
        let mut watches = std::mem::take(&mut decision.pending_watches);
        watches.retain(|watch| {
            let (matching, _) = rules.conditions(Candidate::Watch(*watch as usize));
            matching
                .status
                .as_ref()
                .is_some_and(|wanted| wanted.holds(status))
        });
        self.arm(&fired, &watches);
    }

    /// The verdicts for an exchange that rules cannot affect: those that may match are bypassed,
    /// because of `why`. Of a tunnel only the host is known, so rules for any of its URLs are; rules
    /// for models only if they name the host. It draws and counts nothing.
    pub fn bypass(&self, facts: &Facts<'_>, why: &str) -> Vec<RuleVerdict> {
        let is_tunnel = facts.method == Method::CONNECT;
        let stage = Stage::Request {
            behind_connect: true,
        };
        let connection = connection_url(facts, stage);
        let rules = &self.live.rules;
        let mut decision = Decision::default();
        for (number, rule) in rules.rules().iter().enumerate() {
            let (matching, tool_urls) = rules.conditions(Candidate::Rule(number));
            let of_models = matches!(rule.family(), Family::Llm | Family::Context);
            let is_here = if matching.urls.is_empty() {
                !(is_tunnel && of_models)
            } else if is_tunnel {
                matching.urls.may_match_at(facts.url)
            } else {
                matching.urls.matches(facts.url)
            };
            let decided_at_connect = connection
                .as_deref()
                .is_some_and(|url| is_of_the_connection(rule, url));
            let holds = |matching: &Match| {
                matching.holds_beside_url(Some(rule.family()), facts, tool_urls) != Holds::No
            };
            if is_here && !decided_at_connect && holds(matching) {
                decision.list(rule, 0, None, VerdictOutcome::Bypassed(why.to_owned()));
            }
        }
        decision.verdicts.truncate(LISTED_NOT_DRAWN);
        decision.verdicts
    }

    /// The rules whose match holds with all facts; matching watches go to the decision.
    fn matching(
        &self,
        candidates: &Candidates,
        facts: &Facts<'_>,
        decision: &mut Decision,
        watches: &mut SmallVec<[u32; 2]>,
    ) -> SmallVec<[u32; 8]> {
        let rules = &self.live.rules;
        let mut matching = SmallVec::new();
        for number in candidates {
            let candidate = rules.candidate(*number);
            let (conditions, tool_urls) = rules.conditions(candidate);
            let family = match candidate {
                Candidate::Rule(rule) => Some(rules.rules()[rule].family()),
                Candidate::Watch(_) => None,
            };
            match (
                candidate,
                conditions.holds_beside_url(family, facts, tool_urls),
            ) {
                (_, Holds::No) | (Candidate::Watch(_), Holds::Unknown) => {}
                (Candidate::Rule(rule), Holds::Unknown) => {
                    decision.list(
                        &rules.rules()[rule],
                        0,
                        None,
                        VerdictOutcome::Bypassed(unknown(conditions, facts)),
                    );
                }
                (Candidate::Rule(_), Holds::Yes) => matching.push(*number),
                (Candidate::Watch(watch), Holds::Yes) => {
                    let watch = u32::try_from(watch).expect("numbers are 32 bits");
                    let list = match conditions.status {
                        Some(_) => &mut decision.pending_watches,
                        None => &mut *watches,
                    };
                    list.push(watch);
                }
            }
        }
        matching
    }

    /// Counts a call of a matching rule, checks its trigger, and lets its fault write into the
    /// plan. True if the trigger fired.
    fn consider(
        &self,
        number: u32,
        facts: Option<&Facts<'_>>,
        decision: &mut Decision,
        stage: Stage,
        elapsed: Duration,
    ) -> bool {
        let rule = &self.live.rules.rules()[number as usize];
        let counter = &self.live.counters[number as usize];
        let call = counter.call();
        let dice = match (decision.fingerprint, decision.attempt) {
            (Some(fingerprint), Some(attempt)) => self.live.dice(rule, fingerprint, attempt),
            // No part of the rule draws, or there would be a fingerprint.
            _ => Dice::unrolled(),
        };
        let read = self.live.observe != Observe::Headers;
        if let Some(AllowedUse::Budget(_)) = rule.fault.allowed
            && read
        {
            decision.charged.push(counter.spending.clone());
        }
        let firing = Firing::of(rule, call, counter, &dice, facts, elapsed, read);
        let fires = firing.outcome == VerdictOutcome::Chosen;
        let listed = decision.list(rule, call, firing.drawn, firing.outcome);
        if let Some(verdict) = listed {
            decision.verdicts[usize::from(verdict)].spent = firing.spent;
            if fires {
                decision.write(rule, verdict, dice, stage);
            }
            if let Some(over) = firing.over {
                decision.plan.limited(verdict, over);
            }
        }
        fires
    }

    /// Arms the rules that wait for these rules or watches. It is called after an exchange is
    /// decided, so that an exchange only affects later ones.
    fn arm(&self, fired: &[u32], watches: &[u32]) {
        let rules = &self.live.rules;
        let by_rule = fired
            .iter()
            .flat_map(|rule| rules.compiled(*rule as usize).arms.iter());
        let by_watch = watches
            .iter()
            .map(|watch| &rules.watch(*watch as usize).arms);
        for armed in by_rule.chain(by_watch) {
            self.live.counters[*armed as usize].arm();
        }
    }
}

impl Decision {
    /// Lets a fault that fired write into the plan.
    fn write(&mut self, rule: &Rule, verdict: VerdictIndex, mut dice: Dice, stage: Stage) {
        let handshake = matches!(stage, Stage::Connect);
        let fault = &rule.fault;
        let written = if rule.fault_mode.is_of_the_handshake() && !handshake {
            Err("there is no TLS handshake of the agent's left to fail".into())
        } else if self.out_of_band && rule.family() != Family::Network {
            // Network faults affect the HTTP exchange, whatever its content.
            Err(OUT_OF_BAND.into())
        } else if fault.needs_a_stream && self.stream == Some(false) {
            // It must not block other rules from deciding the response.
            Err(NO_STREAM.into())
        } else if let Some(on) = rule.matching.websocket {
            let mut alone = Plan::default();
            let applied = fault.apply(&mut alone, verdict, self.kind, &mut dice);
            applied.map(|()| self.plan.on_websocket(verdict, on.message, alone))
        } else {
            fault.apply(&mut self.plan, verdict, self.kind, &mut dice)
        };
        let why = match written {
            Ok(()) => return,
            Err(Bypass::Taken(first, what)) => format!("{} already {what}", self.rule_name(first)),
            Err(Bypass::Because(why)) => why,
        };
        self.verdicts[usize::from(verdict)].outcome = VerdictOutcome::Bypassed(why);
    }

    fn rule_name(&self, verdict: VerdictIndex) -> String {
        format!("rule `{}`", self.verdicts[usize::from(verdict)].rule.id)
    }

    /// Removes the parts of the plan that the decided response makes ineffective, and updates the
    /// verdicts.
    fn settle(&mut self) {
        let Some((by, idle)) = self.plan.settle() else {
            return;
        };
        let name = self.rule_name(by);
        for verdict in idle {
            self.verdicts[usize::from(verdict)].outcome = VerdictOutcome::Bypassed(format!(
                "{name} decides the answer, so there is nothing to change"
            ));
        }
    }

    /// Adds a verdict; `None` if it is only counted, because the list is full.
    fn list(
        &mut self,
        rule: &Arc<Rule>,
        ordinal: u64,
        drawn: Option<Draw>,
        outcome: VerdictOutcome,
    ) -> Option<VerdictIndex> {
        let index = self.verdicts.len();
        let is_not_drawn = matches!(outcome, VerdictOutcome::NotDrawn(_));
        if index >= LISTED || (is_not_drawn && self.not_drawn >= LISTED_NOT_DRAWN) {
            self.more += 1;
            return None;
        }
        self.not_drawn += usize::from(is_not_drawn);
        self.verdicts.push(RuleVerdict {
            rule: rule.clone(),
            outcome,
            ordinal,
            drawn,
            spent: None,
            told_of: None,
        });
        VerdictIndex::try_from(index).ok()
    }
}

/// Why a rule with `from` may not match.
const NO_CALLER: &str = "the calling agent is unknown: neither the header `x-squall-agent` nor the password in the \
     proxy's URL names one under `agents:`";

/// Why it is unknown whether a rule with these conditions matches.
fn unknown(conditions: &Match, facts: &Facts<'_>) -> String {
    if conditions.from.is_some() && facts.from.is_none() {
        return NO_CALLER.to_owned();
    }
    let why = match &facts.body {
        _ if facts.brings_nameless_results() => {
            return "the request has tool results whose tools are named neither in it nor in an earlier answer, so it \
                    is not known whether the rule matches; `*` is every tool"
                .to_owned();
        }
        Some(body) => body.why_not_looked_at(),
        None => "the request's body was not read (it is only up to `inspect_limit`, while `limits.inspect_memory` \
                 lasts, and not compressed)"
            .to_owned(),
    };
    format!("{why}, so it is not known whether the rule matches")
}

/// Whether it is an MCP request with an out-of-band reply.
fn replies_out_of_band(facts: &Facts<'_>) -> bool {
    let target = Target::new(facts.url.path_and_query());
    facts.kind == Kind::Mcp && mcp::replies_out_of_band(target, facts.headers)
}

/// Whether a rule is decided at the CONNECT to an origin: it only matches on scheme and authority.
pub(crate) fn is_of_the_connection(rule: &Rule, origin: &CanonicalUrl) -> bool {
    rule.fault_mode.is_of_the_connection
        && !rule.matching.asks_for_an_exchange()
        && (rule.matching.urls.is_empty() || rule.matching.urls.match_all_of(origin))
}

/// The URL for deciding connection faults, if there was a CONNECT.
fn connection_url<'a>(facts: &'a Facts<'_>, stage: Stage) -> Option<Cow<'a, CanonicalUrl>> {
    let behind_connect = match stage {
        Stage::Connect => false,
        Stage::Request {
            behind_connect: false,
        } => return None,
        Stage::Request {
            behind_connect: true,
        } => true,
    };
    if !behind_connect || facts.url.scheme() == "https" {
        return Some(Cow::Borrowed(facts.url));
    }
    // At the CONNECT it was unknown that no TLS would follow.
    let authority = match facts.url.authority() {
        host if host == facts.url.host() => format!("{host}:80"),
        authority => authority.to_owned(),
    };
    Some(Cow::Owned(CanonicalUrl::new("https", &authority, "")))
}
