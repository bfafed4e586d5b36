//! Which rules fire on one exchange, and the plan they write.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use squall_dialects::tokens::{self, Counting};
use squall_dialects::{Target, mcp};

use crate::activation::{Counter, Observe, Snapshot};
use crate::allowance::OverAllowance;
use crate::budget::{Budget, BudgetState};
use crate::dice::{Dice, MILLION};
use crate::facts::{CanonicalUrl, Facts, Kind, Stage};
use crate::family::Family;
use crate::faults::llm_stream::gaps;
use crate::faults::mcp_answer::OUT_OF_BAND;
use crate::fingerprint::Fingerprint;
use crate::index::Candidates;
use crate::matching::Holds;
use crate::plan::{Bypass, Plan, VerdictIndex};
use crate::rule::Rule;
use crate::ruleset::Candidate;
use crate::spending::{Charge, Spending, Spent};
use crate::trigger::NotDrawn;
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
            depends_on_the_call |= holds != Holds::No && (in_kind || matching.asks_for_a_dialect());
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
        let asked = RequestUse { facts: Some(facts) };
        let mut fired: SmallVec<[u32; 4]> = SmallVec::new();
        for rule in matching {
            if rules.rules()[rule as usize].matching.status.is_some() {
                decision.pending.push(rule);
            } else if self.consider(rule, &asked, &mut decision, stage, elapsed) {
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
            if holds && self.consider(rule, &RequestUse { facts: None }, decision, stage, elapsed) {
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

    /// The verdicts for a tunnel without interception: rules that would affect every exchange with
    /// its host are bypassed, because of `why`. It draws and counts nothing.
    pub fn bypass_tunnel(&self, facts: &Facts<'_>, why: &str) -> Vec<RuleVerdict> {
        let stage = Stage::Request {
            behind_connect: true,
        };
        let mut decision = Decision::default();
        let mut watches = SmallVec::new();
        let candidates = self.shortlist(facts, stage).candidates;
        for rule in self.matching(&candidates, facts, &mut decision, &mut watches) {
            let rule = &self.live.rules.rules()[rule as usize];
            decision.list(rule, 0, None, VerdictOutcome::Bypassed(why.to_owned()));
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
                        VerdictOutcome::Bypassed(unknown(facts)),
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
        asked: &RequestUse<'_>,
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
        if rule.fault.budget().is_some() && read {
            decision.charged.push(counter.spending.clone());
        }
        let used = match rule.trigger.permits(call, elapsed, counter.is_armed()) {
            Ok(()) => use_so_far(rule, counter, asked, elapsed, read),
            Err(reason) => Use::NotDrawn(reason, None),
        };
        let (over, spent, permitted) = match used {
            Use::Fires(over, spent) => (over, spent, Ok(())),
            Use::NotDrawn(reason, spent) => (None, spent, Err((reason, None))),
            Use::Bypassed(why, spent) => {
                let listed = decision.list(rule, call, None, VerdictOutcome::Bypassed(why));
                decision.note_spent(listed, spent);
                return false;
            }
        };
        let (drawn, outcome) = match permitted.and_then(|()| draw(rule, &dice, elapsed)) {
            Err((reason, drawn)) => (drawn, Err(reason)),
            Ok(drawn) if counter.fire(rule.trigger.limit) => (drawn, Ok(())),
            Ok(drawn) => {
                let limit = rule.trigger.limit.unwrap_or_default();
                (drawn, Err(NotDrawn::Limit { limit }))
            }
        };
        if let Err(reason) = outcome {
            let listed = decision.list_not_drawn(rule, call, drawn, reason);
            decision.note_spent(listed, spent);
            return false;
        }
        let listed = decision.list(rule, call, drawn, VerdictOutcome::Chosen);
        decision.note_spent(listed, spent);
        if let Some(verdict) = listed {
            decision.write(rule, verdict, dice, stage);
            if let Some(over) = over {
                decision.plan.limited(verdict, over);
            }
        }
        true
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
        let fault = &*rule.fault;
        let gap = (self.stream == Some(false) && fault.decides_the_answer())
            // A fault that cannot apply must not block other rules from deciding the response.
            .then(|| gaps::gap(rule.mode(), false, None))
            .flatten();
        let written = if rule.fault_mode.is_of_the_handshake() && !handshake {
            Err("there is no TLS handshake of the agent's left to fail".into())
        } else if self.out_of_band && rule.family() != Family::Network {
            // Network faults affect the HTTP exchange, whatever its content.
            Err(OUT_OF_BAND.into())
        } else if let Some(gap) = gap {
            Err(gap.why.into())
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
                "{name} decides the answer and leaves nothing of it to change"
            ));
        }
    }

    /// Adds a verdict of a rule that did not fire; `None` if it is only counted.
    fn list_not_drawn(
        &mut self,
        rule: &Arc<Rule>,
        call: u64,
        drawn: Option<Draw>,
        why: NotDrawn,
    ) -> Option<VerdictIndex> {
        if self.not_drawn == LISTED_NOT_DRAWN {
            self.more += 1;
            return None;
        }
        self.not_drawn += 1;
        self.list(rule, call, drawn, VerdictOutcome::NotDrawn(why))
    }

    /// Adds the usage so far to a verdict.
    fn note_spent(&mut self, listed: Option<VerdictIndex>, spent: Option<Box<Spent>>) {
        if let Some(verdict) = listed {
            self.verdicts[usize::from(verdict)].spent = spent;
        }
    }

    /// Adds a verdict; `None` if the list is full.
    fn list(
        &mut self,
        rule: &Arc<Rule>,
        ordinal: u64,
        drawn: Option<Draw>,
        outcome: VerdictOutcome,
    ) -> Option<VerdictIndex> {
        let index = self.verdicts.len();
        if index >= LISTED {
            self.more += 1;
            return None;
        }
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

/// Facts of an exchange that only some rules use.
struct RequestUse<'a> {
    facts: Option<&'a Facts<'a>>,
}

impl RequestUse<'_> {
    /// Number of tokens in the request.
    fn tokens(&self) -> u64 {
        let body = self.facts.and_then(|facts| facts.body.as_ref());
        let text = body.and_then(|body| std::str::from_utf8(body.bytes).ok());
        let counting = Counting::of(self.model());
        text.map(|text| tokens::count(counting, text))
            .unwrap_or_default()
    }

    fn model(&self) -> Option<&str> {
        self.facts?.model
    }
}

/// Whether a permitted rule fires, by its usage so far.
enum Use {
    /// It fires, with the exceeded limit or the usage of its budget.
    Fires(Option<OverAllowance>, Option<Box<Spent>>),
    NotDrawn(NotDrawn, Option<Box<Spent>>),
    Bypassed(String, Option<Box<Spent>>),
}

/// Checks a rule's limit or budget against the usage so far.
fn use_so_far(
    rule: &Rule,
    counter: &Counter,
    asked: &RequestUse<'_>,
    elapsed: Duration,
    read: bool,
) -> Use {
    if let Some(allowance) = rule.fault.allowance() {
        return match counter.take(allowance, asked.tokens(), elapsed) {
            Ok(()) => Use::NotDrawn(NotDrawn::Allowed, None),
            Err(over) => Use::Fires(Some(over), None),
        };
    }
    let Some(budget) = rule.fault.budget() else {
        return Use::Fires(None, None);
    };
    if !read {
        let why = "with `observe: headers` nobody reads what calls use up; put it in force with \
                   `observe: model`";
        return Use::Bypassed(why.to_owned(), None);
    }
    let spent = Box::new(counter.spending.now());
    match budget.standing(&spent, asked.model()) {
        BudgetState::Exhausted => Use::Fires(None, Some(spent)),
        BudgetState::Within => Use::NotDrawn(within(budget, &spent), Some(spent)),
        BudgetState::Unknown(why) => Use::Bypassed(why, Some(spent)),
    }
}

fn within(budget: Budget, spent: &Spent) -> NotDrawn {
    NotDrawn::WithinBudget {
        tokens: budget.tokens.map(|most| (spent.tokens(), most)),
        cost: budget.cost.map(|most| (spent.cost, most)),
    }
}

/// The trigger's draw, if its probability requires one.
fn draw(
    rule: &Rule,
    dice: &Dice,
    elapsed: Duration,
) -> Result<Option<Draw>, (NotDrawn, Option<Draw>)> {
    if !rule.trigger.chance.draws() {
        let certain = rule.trigger.chance.at(elapsed) == MILLION;
        return if certain {
            Ok(None)
        } else {
            Err((NotDrawn::Impossible, None))
        };
    }
    let drawn = Draw {
        value: dice.trigger(),
        below: rule.trigger.chance.at(elapsed),
    };
    if drawn.value < drawn.below {
        Ok(Some(drawn))
    } else {
        Err((
            NotDrawn::Drew {
                value: drawn.value,
                below: drawn.below,
            },
            Some(drawn),
        ))
    }
}

/// Why it is unknown whether a rule matches.
fn unknown(facts: &Facts<'_>) -> String {
    let why = match &facts.body {
        _ if facts.brings_nameless_results() => {
            return "the request brings results of calls that neither it nor an answer which Squall saw under these \
                    rules names the tools of, so it is not known whether the rule matches; `*` is every tool"
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
fn is_of_the_connection(rule: &Rule, origin: &CanonicalUrl) -> bool {
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
