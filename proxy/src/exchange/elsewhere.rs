//! Answers that come elsewhere than in the answer to their POST: on the stream of an MCP session.
//!
//! [`Exchange::elsewhere`] takes out of the plan what is to be done there and registers it before
//! the request goes upstream; [`settle`] waits for what comes of it and keeps the account open until
//! then. [`listening`](super::listening) is the other side: the GET that opens a stream.

mod sent;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use squall_dialects::mcp::{self, Asked, Call};
use squall_profiles::activation::Decision;
use squall_profiles::faults::mcp_answer::{Change, said};
use squall_profiles::plan::{Answer, Plan, Substitute, ToolSays, VerdictIndex};
use squall_profiles::rule::Family;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::listening::session_name;
use super::recalled::remembers;
use super::{Exchange, rule};
use crate::broken::Ledger as _;
use crate::carry_out::edit;
use crate::mcp_sessions::{Awaited, Name, Says, Session, Teller, Told};
use crate::request_body::RequestBody;

/// What rules do to answers that come on a stream of the session.
pub(super) struct Elsewhere {
    session: Arc<Session>,
    /// The session has a name of its own: its answers mostly come in the answer to the POST.
    mostly_here: bool,
    awaited: Vec<Arc<Awaited>>,
    instead: Option<Instead>,
    /// The rest is the session's: nothing is taken back when this is dropped.
    is_kept: bool,
    most: usize,
}

/// What comes in the place of answers that are never asked for.
struct Instead {
    verdict: VerdictIndex,
    /// `None`: nothing ever comes.
    says: Option<(Says, Teller)>,
    /// Nothing is left that goes upstream.
    is_all: bool,
}

/// What is done to the answer to one call, as it is taken out of the plan.
struct Draft {
    call: Call,
    changes: Vec<(VerdictIndex, Change)>,
    holds: Vec<(VerdictIndex, Duration)>,
    withheld: bool,
}

impl Exchange {
    /// Takes out of the plan what is to be done to answers on a stream of the session, and makes
    /// the session wait for them. `None`: nothing is, as for every exchange that is not MCP.
    pub(super) fn elsewhere(
        &mut self,
        request: &mut Request<RequestBody>,
        decision: &mut Decision,
    ) -> Option<Box<Elsewhere>> {
        if !self.seen.is_mcp() {
            return None;
        }
        let asked = self.seen.asked()?;
        // What is listed is read where it comes, whatever rules do.
        let decides = !decision.plan.verdicts.is_empty() || decision.awaits_response();
        if !decides && !asked.lists_tools() {
            return None;
        }
        let mut drafts: Vec<Draft> = asked.requests().map(Draft::of).collect();
        if drafts.is_empty() {
            return None;
        }
        let (session, mostly_here) = self.session(request.headers(), &decision.plan)?;
        self.answered_in_session = !mostly_here;
        let (to, told) = unbounded_channel();
        let mut instead = None;
        if self.answered_in_session {
            self.seen.is_answered_elsewhere();
            instead = self.draft_instead(request, decision, &to);
            self.draft_waits(decision, &mut drafts);
            self.draft_substitute(decision, &mut drafts);
        }
        let edits = self.draft_edits(decision, &mut drafts);
        if self.answered_in_session {
            let left = &mut decision.plan.edits;
            left.retain(|(verdict, _)| !edits.contains(verdict));
        }
        let awaited = self.await_all(&session, drafts, decision, &to);
        // Who is told hears of the end once all that tell are gone.
        drop(to);
        self.settles(&session, &awaited, instead.as_ref(), told);
        if mostly_here && awaited.is_empty() {
            return None;
        }
        Some(self.waits(session, mostly_here, awaited, instead))
    }

    /// The session with a name to whose streams an answer may move, where rules wait for the status of
    /// the POST.
    pub(super) fn session_for_later(
        &self,
        headers: &HeaderMap,
        decision: &Decision,
    ) -> Option<Arc<Session>> {
        if !decision.awaits_response() || !self.seen.is_mcp() {
            return None;
        }
        let key = (self.party(headers), Name::Given(session_name(headers)?));
        self.sessions().find(&key)
    }

    /// Lets rules that the status of the POST has brought act on what the agent fetches by resuming.
    /// Nothing of it can have come: the head of the POST's answer has not been passed on yet. Where all
    /// answers come on the session's stream, one may have come. `before`: the verdicts there were before
    /// the status.
    pub(super) fn elsewhere_by_status(
        &self,
        session: Option<Arc<Session>>,
        elsewhere: &mut Option<Box<Elsewhere>>,
        decision: &mut Decision,
        before: usize,
    ) {
        if self.answered_in_session {
            decision.plan.edits.retain(|(verdict, _)| {
                let in_time = usize::from(*verdict) < before;
                if !in_time {
                    let why = "the answer comes on the session's stream, which does not wait for the \
                               status of the POST";
                    self.log.bypassed(*verdict, why.to_owned());
                }
                in_time
            });
            return;
        }
        let (Some(session), Some(asked)) = (session, self.seen.asked()) else {
            return;
        };
        let mut drafts: Vec<Draft> = asked.requests().map(Draft::of).collect();
        let known: Vec<VerdictIndex> = elsewhere.iter().flat_map(|it| it.verdicts()).collect();
        let edits = self.draft_edits(decision, &mut drafts);
        if is_decided(&decision.plan) || edits.iter().all(|verdict| known.contains(verdict)) {
            return;
        }
        if let Some(earlier) = elsewhere {
            earlier.withdraw();
        }
        let (to, told) = unbounded_channel();
        let awaited = self.await_all(&session, drafts, decision, &to);
        drop(to);
        self.settles(&session, &awaited, None, told);
        *elsewhere = Some(self.waits(session, true, awaited, None));
    }

    fn waits(
        &self,
        session: Arc<Session>,
        mostly_here: bool,
        awaited: Vec<Arc<Awaited>>,
        instead: Option<Instead>,
    ) -> Box<Elsewhere> {
        Box::new(Elsewhere {
            session,
            mostly_here,
            awaited,
            instead,
            is_kept: false,
            most: self.sessions().bounds().answers,
        })
    }

    /// The session on whose streams the answers come (`false`), or may (`true`).
    fn session(&self, headers: &HeaderMap, plan: &Plan) -> Option<(Arc<Session>, bool)> {
        let sessions = self.sessions();
        if let Some(name) = session_name(headers) {
            let remembers = || plan.verdicts.iter().any(|it| remembers(&it.rule));
            if is_decided(plan) || (plan.edits.is_empty() && !remembers()) {
                return None;
            }
            let key = (self.party(headers), Name::Given(name));
            return sessions.find(&key).map(|session| (session, true));
        }
        let name = Name::Endpoint(self.target.called().to_owned());
        let key = (self.party(headers), name);
        sessions.find(&key).map(|session| (session, false))
    }

    /// The calls that a rule is about.
    fn meant(&self, decision: &Decision, verdict: VerdictIndex) -> Vec<Call> {
        let call = self.seen.mcp_call(rule(decision, verdict));
        call.map(|call| call.meant).unwrap_or_default()
    }

    /// An answer in the server's place comes on the stream; the server hears of other calls alone.
    fn draft_instead(
        &self,
        request: &mut Request<RequestBody>,
        decision: &mut Decision,
        to: &UnboundedSender<Told>,
    ) -> Option<Instead> {
        let (verdict, made) = decision.plan.instead.as_ref()?;
        let verdict = *verdict;
        let of_tools = rule(decision, verdict).is_some_and(|rule| rule.family == Family::Tool);
        let calls = self.meant(decision, verdict);
        let first = calls.first().filter(|_| of_tools)?;
        let says = match made {
            Answer::Tool(made) if !matches!(made.says, ToolSays::Status(_)) => {
                Some(Says::Once(events(&made.says, &calls)))
            }
            Answer::EndlessProgress(apart) => Some(Says::Progress(first.clone(), *apart)),
            Answer::Hold(_) => None,
            Answer::Tool(_)
            | Answer::Reply(_)
            | Answer::ModelError(_)
            | Answer::SessionExpired
            | Answer::RedirectToSelf(_)
            | Answer::Refuse
            | Answer::DnsFailure
            | Answer::Tls(_) => return None,
        };
        let is_all = self.in_part(verdict, decision).is_none();
        if !is_all {
            let left = Asked::without(request.body().whole()?, &calls)?;
            edit::fits(request.headers_mut(), left.len() as u64);
            request.body_mut().replace(left.into());
        }
        decision.plan.instead = None;
        Some(Instead {
            verdict,
            says: says.map(|says| (says, Teller::new(to.clone()))),
            is_all,
        })
    }

    /// A slow tool's answer is held back; the POST only says that the call was taken.
    fn draft_waits(&self, decision: &mut Decision, drafts: &mut [Draft]) {
        let mut waits = std::mem::take(&mut decision.plan.wait_before);
        let before = waits.len();
        waits.append(&mut decision.plan.wait_after);
        for (at, (verdict, wait)) in waits.into_iter().enumerate() {
            let of_tools = rule(decision, verdict).is_some_and(|rule| rule.family == Family::Tool);
            let calls = self.meant(decision, verdict);
            if of_tools && !calls.is_empty() {
                for draft in of(drafts, &calls) {
                    draft.holds.push((verdict, wait));
                }
            } else if at < before {
                decision.plan.wait_before.push((verdict, wait));
            } else {
                decision.plan.wait_after.push((verdict, wait));
            }
        }
    }

    /// What takes the place of the server's answer takes it on the stream, unless HTTP says it.
    fn draft_substitute(&self, decision: &mut Decision, drafts: &mut [Draft]) {
        let Some((verdict, substitute)) = &decision.plan.afterwards else {
            return;
        };
        let verdict = *verdict;
        let calls = self.meant(decision, verdict);
        let change = match substitute {
            Substitute::Answer(Answer::Tool(made))
                if !matches!(made.says, ToolSays::Status(_)) && !calls.is_empty() =>
            {
                Change::Instead(made.says.clone())
            }
            // The POST says that it failed: then no answer may follow.
            Substitute::Answer(_) | Substitute::Reset => {
                for draft in of(drafts, &calls) {
                    draft.withheld = true;
                }
                return;
            }
            Substitute::Stale | Substitute::Swapped => {
                let Some(id) = self.seen.only_call() else {
                    return;
                };
                let kept = self.kept(verdict, substitute, decision);
                let Some(message) = kept.and_then(|(_, kept)| kept.into_message(id)) else {
                    decision.plan.afterwards = None;
                    let why = "there is no earlier answer to give again";
                    return self.log.bypassed(verdict, why.to_owned());
                };
                Change::Given(message)
            }
        };
        decision.plan.afterwards = None;
        for draft in of(drafts, &calls) {
            draft.changes.push((verdict, change.clone()));
        }
    }

    /// Changes to answers; gives the rules whose changes those are.
    fn draft_edits(&self, decision: &Decision, drafts: &mut [Draft]) -> Vec<VerdictIndex> {
        let mut drafted = Vec::new();
        for (verdict, edit) in &decision.plan.edits {
            let calls = self.meant(decision, *verdict);
            let Some(change) = edit::mcp::change(edit).filter(|_| !calls.is_empty()) else {
                continue;
            };
            drafted.push(*verdict);
            for draft in of(drafts, &calls) {
                draft.changes.push((*verdict, change.clone()));
            }
        }
        drafted
    }

    fn await_all(
        &self,
        session: &Session,
        drafts: Vec<Draft>,
        decision: &Decision,
        to: &UnboundedSender<Told>,
    ) -> Vec<Arc<Awaited>> {
        let single = self.seen.only_call().is_some();
        let rules = decision.plan.verdicts.iter().map(|verdict| &verdict.rule);
        let remember = rules.filter(|rule| single && remembers(rule));
        let remember: Vec<_> = remember
            .map(|rule| (self.owner(rule), self.call(decision)))
            .collect();
        let typed = self.seen.mcp_call(None).is_some_and(|call| call.typed());
        let most = self.sessions().bounds().answers;
        let mut all = Vec::new();
        for draft in drafts {
            let lists = self.answered_in_session && draft.call.is_tool_list();
            let awaited = Awaited {
                lists: lists.then(|| self.mcp_tools()),
                call: draft.call,
                typed,
                changes: draft.changes,
                holds: draft.holds,
                withheld: draft.withheld,
                remember: remember.clone(),
                recall: self.connection.worker.engine.recall.clone(),
                teller: Teller::new(to.clone()),
            };
            if awaited.does_something() {
                let awaited = Arc::new(awaited);
                session.await_answer(Arc::clone(&awaited), most);
                all.push(awaited);
            }
        }
        all
    }
}

/// Whether rules give an answer in the place of the server's: that is there before any stream could be
/// resumed.
fn is_decided(plan: &Plan) -> bool {
    let instead = matches!(
        plan.afterwards,
        Some((_, Substitute::Answer(_) | Substitute::Reset))
    );
    plan.instead.is_some() || instead
}

/// The made-up answers to calls, as events.
fn events(says: &ToolSays, calls: &[Call]) -> Bytes {
    let messages = calls
        .iter()
        .filter_map(|call| mcp::message(call, said(says, call).as_says(), false));
    let events: Vec<Bytes> = messages.map(|message| mcp::event(&message)).collect();
    events.concat().into()
}

/// The drafts of these calls.
fn of<'d>(drafts: &'d mut [Draft], calls: &[Call]) -> impl Iterator<Item = &'d mut Draft> {
    drafts
        .iter_mut()
        .filter(|draft| calls.iter().any(|call| call.id == draft.call.id))
}

impl Draft {
    fn of(call: &Call) -> Self {
        Self {
            call: call.clone(),
            changes: Vec::new(),
            holds: Vec::new(),
            withheld: false,
        }
    }
}
