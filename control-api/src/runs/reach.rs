//! Gives runs access to the proxy of this process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use squall_documents::Variables;
use squall_harness::reach::{
    Late, LateCall, NearestMiss, Pending, Reach, ReachError, RequestedChaos, Rules, Seen, SeenBody,
    SeenExchange, SeenMessage, TapeCounts,
};
use squall_journal::activation::ActivationRecord;
use squall_journal::record::Outcome;
use squall_journal::ring::Filter;
use squall_journal::tape::{Otherwise, Recorded, Session};
use squall_profiles::activation::Observe;
use squall_profiles::profile;
use squall_proxy::chaos::{
    Chaos, ChaosRequest, DEFAULT_SCOPE, INLINE, NO_CHAOS, PutError, RuleSource, RunMark, ScopeChaos,
};
use squall_proxy::recorder::{ExchangeNote, Recorder};
use squall_proxy::tape::{Playing, PlayingOptions};

use super::stop::OVER;
use crate::lock;
use crate::store::DEFAULT_WORKSPACE;
use crate::tasks;

/// Newest closed activations of a run that can still be queried, and whose scopes still identify late exchanges.
const CLOSED: usize = 256;

/// Exchanges read from the journal at a time.
const AT_ONCE: usize = 500;

/// The proxy of this process, for runs.
pub(super) struct OwnProxy {
    chaos: Arc<Chaos>,
    recorder: Recorder,
    runs: Mutex<HashMap<String, OpenRun>>,
}

/// A run in progress.
struct OpenRun {
    /// The workspace whose profiles it uses.
    workspace: String,
    mark: Arc<RunMark>,
    /// Activations in force.
    begun: Vec<Under>,
    /// Closed activations, newest first.
    closed: VecDeque<Closed>,
    /// Counters of late exchanges of activations that were dropped from `closed`.
    late: Vec<Under>,
    /// Scopes that have an alias.
    aliased: BTreeSet<String>,
    /// Scopes that play a tape.
    taped: BTreeSet<String>,
}

/// An activation of a run.
#[derive(Clone)]
struct Under {
    chaos: Arc<ScopeChaos>,
    since: Instant,
    tape: Option<Arc<Playing>>,
}

/// A closed activation, and the one that receives its late exchanges.
struct Closed {
    was: Under,
    rest: Option<Under>,
}

impl OpenRun {
    fn find(&self, activation: &str) -> Option<&Under> {
        let closed = self.closed.iter().map(|closed| &closed.was);
        let mut all = self.begun.iter().chain(closed);
        all.find(|under| is_of(&under.chaos, activation))
    }

    /// Stores a closed activation, and returns the oldest if there are too many.
    fn keep(&mut self, closed: Closed) -> Option<Closed> {
        self.closed.push_front(closed);
        if self.closed.len() <= CLOSED {
            return None;
        }
        let oldest = self.closed.pop_back()?;
        let took = |rest: &&Under| rest.chaos.exchanges_begun() > 0;
        self.late.extend(oldest.rest.iter().filter(took).cloned());
        Some(oldest)
    }

    /// Activations with late exchanges, in the order of closing.
    fn late(&self) -> impl Iterator<Item = &Under> {
        let known = self.closed.iter().rev();
        let known = known.filter_map(|closed| closed.rest.as_ref());
        let all = self.late.iter().chain(known);
        all.filter(|rest| rest.chaos.exchanges_begun() > 0)
    }
}

impl OwnProxy {
    pub(super) fn new(chaos: Arc<Chaos>, recorder: Recorder) -> Arc<Self> {
        Arc::new(Self {
            chaos,
            recorder,
            runs: Mutex::default(),
        })
    }

    /// Allows a run to put chaos in force from now on. Its exchanges are those of `whole`: the spread run that it is
    /// part of, or the run itself.
    pub(super) fn open(&self, run: &str, whole: &str, workspace: &str) -> Arc<RunMark> {
        let mark = RunMark::new(whole);
        let open = OpenRun {
            workspace: workspace.to_owned(),
            mark: Arc::clone(&mark),
            begun: Vec::new(),
            closed: VecDeque::new(),
            late: Vec::new(),
            aliased: BTreeSet::new(),
            taped: BTreeSet::new(),
        };
        self.runs().insert(run.to_owned(), open);
        mark
    }

    /// Ends a run's chaos, and allows it none from now on.
    pub(super) fn close(&self, run: &str) {
        let closed = self.runs().remove(run);
        if let Some(open) = closed {
            open.mark.cut_short(OVER);
            open.mark.end();
            self.chaos.end_for_run(None, &open.mark);
            for scope in &open.aliased {
                self.chaos.aliases().forget(scope);
            }
            for scope in &open.taped {
                self.chaos.take_out_tape(scope);
            }
        }
    }

    fn mark(&self, run: &str) -> Result<Arc<RunMark>, ReachError> {
        self.find(run).map(|(mark, _)| mark)
    }

    /// A run's mark and workspace.
    fn find(&self, run: &str) -> Result<(Arc<RunMark>, String), ReachError> {
        let runs = self.runs();
        let open = runs.get(run);
        let open = open.map(|open| (Arc::clone(&open.mark), open.workspace.clone()));
        open.ok_or_else(|| ReachError::Refused(format!("there is no run `{run}` under way")))
    }

    fn put(&self, scope: &str, requested: RequestedChaos) -> Result<ActivationRecord, ReachError> {
        let run = requested.run.clone();
        let (mark, workspace) = self.find(&run)?;
        let refused = |why: &str| ReachError::Refused(why.to_owned());
        if let Some(why) = mark.why() {
            return Err(refused(why));
        }
        if requested.connects_anew {
            mark.connect_anew();
        }
        let (trace, slot) = (requested.trace, requested.slot.clone());
        let after = requested.after.as_deref().map(|after| self.under(after));
        let after = after.transpose()?;
        let tape = requested.tape.as_deref().map(playing);
        let request = request(requested, workspace)?;
        self.set_tape(&run, scope, tape.clone());
        let since = Instant::now();
        let (chaos, record) = if let Some((after, _)) = after {
            self.chaos.go_on_for_run(scope, &after.chaos, &mark)
        } else {
            let put = self.chaos.put_for_run(scope, request, &mark);
            put.map_err(|error| match error {
                PutError::UnknownProfile(name) => ReachError::UnknownProfile(name),
                error @ (PutError::Profile(_) | PutError::Quota(_)) => {
                    ReachError::BadRules(error.to_string())
                }
            })?
        };
        if let Some(why) = mark.why() {
            // It was ended while this activation was prepared.
            self.chaos.end_for_run(None, &mark);
            return Err(refused(why));
        }
        match trace {
            Some(trace) => self.chaos.aliases().trace(trace, scope),
            None => self.chaos.aliases().forget(scope),
        }
        if let Some(slot) = slot {
            self.chaos.aliases().slot(&slot, scope);
        }
        if let Some(open) = self.runs().get_mut(&run) {
            open.aliased.insert(scope.to_owned());
            // The previous activation of the scope can no longer be queried.
            open.begun.retain(|under| **under.chaos.scope() != *scope);
            open.begun.push(Under { chaos, since, tape });
        } else {
            self.chaos.aliases().forget(scope);
        }
        Ok(record)
    }

    /// An activation that can be queried, and its workspace.
    fn under(&self, activation: &str) -> Result<(Under, String), ReachError> {
        let runs = self.runs();
        let found = runs.values().find_map(|open| {
            let under = open.find(activation)?.clone();
            Some((under, open.workspace.clone()))
        });
        found.ok_or_else(|| ReachError::UnknownActivation(activation.to_owned()))
    }

    /// Closes an activation, unless it is closed already.
    fn shut(&self, activation: &str) -> Result<(), ReachError> {
        let (was, _) = self.under(activation)?;
        let since = Instant::now();
        let rest = self.chaos.close_for_run(&was.chaos);
        // The tape plays on until the scope is forgotten, so that late exchanges are not dialled either.
        let rest = rest.map(|chaos| Under {
            chaos,
            since,
            tape: None,
        });
        let mut forgotten = None;
        for (run, open) in &mut *self.runs() {
            let all = open.begun.len();
            open.begun.retain(|under| !is_of(&under.chaos, activation));
            if open.begun.len() < all {
                let closed = open.keep(Closed {
                    was: was.clone(),
                    rest: rest.clone(),
                });
                forgotten = closed.map(|closed| (run.clone(), closed));
            }
        }
        if let Some((run, closed)) = forgotten
            && let Some(rest) = closed.rest
        {
            self.forget(&run, &rest.chaos);
        }
        Ok(())
    }

    /// Plays a tape in a scope of a run, or takes out the one that the run plays there.
    fn set_tape(&self, run: &str, scope: &str, tape: Option<Arc<Playing>>) {
        let mut runs = self.runs();
        let Some(open) = runs.get_mut(run) else {
            return;
        };
        match tape {
            Some(tape) => {
                open.taped.insert(scope.to_owned());
                self.chaos.play_in_run(scope, tape);
            }
            None if open.taped.remove(scope) => self.chaos.take_out_tape(scope),
            None => {}
        }
    }

    /// Stops identifying late exchanges by this activation.
    fn forget(&self, run: &str, rest: &ScopeChaos) {
        self.set_tape(run, rest.scope(), None);
        let is_it = |found: &ScopeChaos| std::ptr::eq(found, rest);
        self.chaos.forget_closed(is_it);
        if rest.is_named() {
            self.chaos.aliases().forget(rest.scope());
        }
    }

    /// The late exchanges in a run's scopes.
    async fn look_for_late(&self, run: &str) -> Result<Late, ReachError> {
        let late: Vec<_> = match self.runs().get(run) {
            Some(open) => open.late().cloned().collect(),
            None => Vec::new(),
        };
        let count = late.iter().map(|rest| rest.chaos.exchanges_begun()).sum();
        if count > 0 {
            tasks::flushed(&self.recorder).await;
        }
        let first = late.iter().find_map(|rest| {
            let activation = rest.chaos.id()?;
            let mut exchanges = self.exchanges_under(&rest.chaos, rest.since, activation);
            exchanges.pop()
        });
        Ok(Late {
            count,
            first: first.map(|seen| LateCall {
                exchange: seen.record.id,
                scope: seen.record.scope,
                method: seen.record.method,
                url: seen.record.url,
            }),
        })
    }

    async fn look(&self, activation: &str, patience: Duration) -> Result<Seen, ReachError> {
        let (Under { chaos, since, tape }, workspace) = self.under(activation)?;
        let unnamed = workspace_scope(&workspace).to_owned();
        // An exchange still open after this is reported as open; as lost if it is too new to be listed.
        let _ = tokio::time::timeout(patience, chaos.idle()).await;
        tasks::flushed(&self.recorder).await;
        let mut exchanges = self.exchanges_under(&chaos, since, activation);
        exchanges.reverse();
        let found = exchanges.len() as u64;
        let begun = chaos.exchanges_begun();
        if self.is_closed(activation) {
            chaos.ended().cancel();
        }
        Ok(Seen {
            exchanges,
            lost: begun.saturating_sub(found),
            elsewhere: self.under_no_run(&unnamed, since),
            tape: tape.map(|tape| {
                let counts = tape.counts();
                TapeCounts {
                    served: counts.served,
                    missed: counts.missed,
                    dialled: counts.dialled,
                    used: tape.used(),
                }
            }),
        })
    }

    /// Number of exchanges without a run that began in the default scope since then.
    fn under_no_run(&self, scope: &str, since: Instant) -> u64 {
        let notes = self.listed(scope, since);
        let meanwhile = notes.filter(|note| note.run.is_none() && note.started >= since);
        meanwhile.count() as u64
    }

    fn is_closed(&self, activation: &str) -> bool {
        let runs = self.runs();
        let mut closed = runs.values().flat_map(|open| &open.closed);
        closed.any(|closed| is_of(&closed.was.chaos, activation))
    }

    /// Newest first.
    fn exchanges_under(
        &self,
        chaos: &ScopeChaos,
        since: Instant,
        activation: &str,
    ) -> Vec<SeenExchange> {
        let its = |note: &Arc<ExchangeNote>| note.activation.as_deref() == Some(activation);
        let scope = chaos.scope().to_string();
        let notes = self.listed(&scope, since).filter(its);
        notes.map(|note| seen_exchange(&note, since)).collect()
    }

    /// Listed exchanges of a scope since then, newest first.
    fn listed(
        &self,
        scope: &str,
        since: Instant,
    ) -> impl Iterator<Item = Arc<ExchangeNote>> + use<> {
        let filter = Filter {
            scope: Some(scope.to_owned()),
            since_ms: Some(self.recorder.unix_ms(since).saturating_sub(1)),
            ..Filter::default()
        };
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.recorder.exchanges(&filter, after, AT_ONCE);
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                return found.into_iter();
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, OpenRun>> {
        lock(&self.runs)
    }
}

impl Reach for OwnProxy {
    fn begin<'a>(
        &'a self,
        scope: &'a str,
        chaos: RequestedChaos,
    ) -> Pending<'a, Result<ActivationRecord, ReachError>> {
        Box::pin(async move { self.put(scope, chaos) })
    }

    fn end<'a>(&'a self, scope: &'a str) -> Pending<'a, Result<bool, ReachError>> {
        Box::pin(async move {
            let marks: Vec<_> = self
                .runs()
                .iter()
                .map(|(run, open)| (run.clone(), Arc::clone(&open.mark)))
                .collect();
            let ended = marks.iter().map(|(run, mark)| {
                let ended = self.chaos.end_for_run(Some(scope), mark);
                if ended > 0 {
                    self.set_tape(run, scope, None);
                }
                ended
            });
            Ok(ended.sum::<usize>() > 0)
        })
    }

    fn end_run<'a>(&'a self, run: &'a str) -> Pending<'a, Result<usize, ReachError>> {
        Box::pin(async move {
            let mark = self.mark(run)?;
            Ok(self.chaos.end_for_run(None, &mark))
        })
    }

    fn close<'a>(&'a self, activation: &'a str) -> Pending<'a, Result<(), ReachError>> {
        Box::pin(async move { self.shut(activation) })
    }

    fn seen<'a>(
        &'a self,
        activation: &'a str,
        patience: Duration,
    ) -> Pending<'a, Result<Seen, ReachError>> {
        Box::pin(self.look(activation, patience))
    }

    fn late<'a>(&'a self, run: &'a str) -> Pending<'a, Result<Late, ReachError>> {
        Box::pin(self.look_for_late(run))
    }
}

/// The default scope of a workspace.
pub(super) fn workspace_scope(workspace: &str) -> &str {
    if workspace == DEFAULT_WORKSPACE {
        DEFAULT_SCOPE
    } else {
        workspace
    }
}

fn is_of(chaos: &ScopeChaos, activation: &str) -> bool {
    chaos.id().is_some_and(|id| **id == *activation)
}

/// A session, ready to answer the exchanges of a scope.
fn playing(session: &Session) -> Arc<Playing> {
    let options = PlayingOptions {
        on_miss: session.on_miss.unwrap_or(Otherwise::Nearest),
        on_exhausted: session.on_exhausted.unwrap_or_default(),
        speed: 0.0,
        live_models: session.has_live_models(),
    };
    Playing::new(format!("session {}", session.id), session, options)
}

fn rule_source(rules: Rules, workspace: String) -> Result<RuleSource, ReachError> {
    Ok(match rules {
        Rules::Nothing => RuleSource::Profile(NO_CHAOS.to_owned()),
        Rules::Profile(name) if workspace == DEFAULT_WORKSPACE => RuleSource::Profile(name),
        Rules::Profile(profile) => RuleSource::OfWorkspace { workspace, profile },
        Rules::Document { text, variables } => {
            let lookup = |name: &str| {
                let value = variables.find(name).map(str::to_owned);
                value.ok_or(squall_documents::VariableError::NotSet)
            };
            let read = profile::parse_file(INLINE, &text, Variables::From(&lookup));
            let read = read.map_err(|errors| {
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                ReachError::BadRules(errors.join("; "))
            })?;
            RuleSource::Inline(Arc::new(read))
        }
        Rules::Limited { rules, firings } => RuleSource::Limited {
            rules: Box::new(rule_source(*rules, workspace)?),
            firings,
        },
    })
}

fn request(requested: RequestedChaos, workspace: String) -> Result<ChaosRequest, ReachError> {
    let rules = rule_source(requested.rules, workspace)?;
    Ok(ChaosRequest {
        rules,
        tools: requested.tools,
        seed: Some(requested.seed),
        ttl: None,
        key: Some(requested.key),
        observe: Some(Observe::Bodies),
    })
}

fn seen_exchange(note: &ExchangeNote, since: Instant) -> SeenExchange {
    let began = note.started.saturating_duration_since(since);
    let recorded = note.recorded.as_deref();
    SeenExchange {
        record: note.to_record(),
        began,
        ended: (note.outcome != Outcome::Open).then(|| began + note.duration),
        request: recorded.map(sent),
        response: recorded.and_then(received),
        nearest_miss: note.nearest_miss().map(|(closeness, miss)| NearestMiss {
            closeness,
            rule: miss.rule,
            why: miss.why,
        }),
    }
}

fn sent(recorded: &Recorded) -> SeenMessage {
    let request = &recorded.request;
    SeenMessage {
        headers: request.headers.clone(),
        body: Some(SeenBody {
            bytes: request.body.0.to_vec(),
            whole: !request.over_limit,
        }),
        detected: recorded
            .exposed
            .as_ref()
            .map(|exposed| exposed.request.clone()),
        credentials: (recorded.exposed.as_ref()).map(|exposed| exposed.credentials),
    }
}

fn received(recorded: &Recorded) -> Option<SeenMessage> {
    let answer = recorded.answer.as_ref()?;
    Some(SeenMessage {
        headers: answer.headers.clone(),
        body: Some(SeenBody {
            bytes: answer.content.whole().to_vec(),
            whole: !answer.over_limit && !answer.broken_off,
        }),
        detected: recorded
            .exposed
            .as_ref()
            .map(|exposed| exposed.answer.clone()),
        credentials: None,
    })
}
