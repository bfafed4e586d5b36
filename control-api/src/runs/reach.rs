//! How runs reach the proxy of this process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use squall_journal::activation::ActivationRecord;
use squall_journal::reach::{
    Body, Message, Observe, Pending, Reach, ReachError, Rules, Seen, SeenExchange, Wanted,
};
use squall_journal::record::Outcome;
use squall_journal::ring::Filter;
use squall_journal::tape::Recorded;
use squall_profiles::activation::Observe as Reads;
use squall_profiles::profile;
use squall_profiles::tools::ToolNames;
use squall_profiles::variables::Variables;
use squall_proxy::chaos::{
    Chaos, INLINE, NO_CHAOS, PutError, Request, RunMark, ScopeChaos, Wanted as RulesWanted,
};
use squall_proxy::recorder::{ExchangeNote, Recorder};

use crate::store::DEFAULT_WORKSPACE;

/// Why a run's scopes are closed that has come to its end.
pub(super) const OVER: &str = "the run is over";

/// Activations of one run that can still be asked about, the newest.
const ASKED_ABOUT: usize = 256;

/// Exchanges taken from the journal at a time.
const AT_ONCE: usize = 500;

/// The proxy of this process, as runs see it.
pub(super) struct OwnProxy {
    chaos: Arc<Chaos>,
    recorder: Recorder,
    runs: Mutex<HashMap<String, Open>>,
}

/// A run that is under way.
struct Open {
    /// Whose profiles it means.
    workspace: String,
    mark: Arc<RunMark>,
    begun: VecDeque<Under>,
    /// Scopes that traces stand for.
    traced: BTreeSet<String>,
}

/// An activation of a run.
#[derive(Clone)]
struct Under {
    chaos: Arc<ScopeChaos>,
    since: Instant,
}

impl OwnProxy {
    pub(super) fn new(chaos: Arc<Chaos>, recorder: Recorder) -> Arc<Self> {
        Arc::new(Self {
            chaos,
            recorder,
            runs: Mutex::default(),
        })
    }

    /// A run may put chaos in force from now on.
    pub(super) fn open(&self, run: &str, workspace: &str) -> Arc<RunMark> {
        let mark = RunMark::new(run);
        let open = Open {
            workspace: workspace.to_owned(),
            mark: Arc::clone(&mark),
            begun: VecDeque::new(),
            traced: BTreeSet::new(),
        };
        self.runs().insert(run.to_owned(), open);
        mark
    }

    /// A run may put none in force any more, and has none.
    pub(super) fn close(&self, run: &str) {
        let closed = self.runs().remove(run);
        if let Some(open) = closed {
            open.mark.cut_short(OVER);
            self.chaos.end_for_run(None, &open.mark);
            for scope in &open.traced {
                self.chaos.traces().forget(scope);
            }
        }
    }

    fn mark(&self, run: &str) -> Result<Arc<RunMark>, ReachError> {
        self.find(run).map(|(mark, _)| mark)
    }

    /// A run, and whose it is.
    fn find(&self, run: &str) -> Result<(Arc<RunMark>, String), ReachError> {
        let runs = self.runs();
        let open = runs.get(run);
        let open = open.map(|open| (Arc::clone(&open.mark), open.workspace.clone()));
        open.ok_or_else(|| ReachError::Refused(format!("there is no run `{run}` under way")))
    }

    async fn put(&self, scope: &str, wanted: Wanted) -> Result<ActivationRecord, ReachError> {
        let run = wanted.run.clone();
        let (mark, workspace) = self.find(&run)?;
        let refused = |why: &str| ReachError::Refused(why.to_owned());
        if let Some(why) = mark.why() {
            return Err(refused(why));
        }
        let trace = wanted.trace;
        let request = request(wanted, workspace)?;
        self.chaos.read_vocabularies(&request.rules).await;
        let since = Instant::now();
        let put = self.chaos.put_for_run(scope, request, &mark);
        let (chaos, record) = put.map_err(|error| match error {
            PutError::UnknownProfile(name) => ReachError::UnknownProfile(name),
            PutError::Profile(error) => ReachError::BadRules(error.to_string()),
        })?;
        if let Some(why) = mark.why() {
            // It was ended while this was on its way.
            self.chaos.end_for_run(None, &mark);
            return Err(refused(why));
        }
        let traces = self.chaos.traces();
        match trace {
            Some(trace) => traces.register(trace, scope),
            None => traces.forget(scope),
        }
        if let Some(open) = self.runs().get_mut(&run) {
            open.traced.insert(scope.to_owned());
            open.begun.truncate(ASKED_ABOUT - 1);
            open.begun.push_front(Under { chaos, since });
        } else {
            traces.forget(scope);
        }
        Ok(record)
    }

    async fn look(&self, activation: &str, patience: Duration) -> Result<Seen, ReachError> {
        let under = {
            let runs = self.runs();
            let mut begun = runs.values().flat_map(|open| &open.begun);
            begun.find(|under| is_of(&under.chaos, activation)).cloned()
        };
        let unknown = || ReachError::UnknownActivation(activation.to_owned());
        let Under { chaos, since } = under.ok_or_else(unknown)?;
        // What is open even then is told as open, or as lost while it is too young to be listed.
        let _ = tokio::time::timeout(patience, chaos.idle()).await;
        let recorder = self.recorder.clone();
        let flushed = tokio::task::spawn_blocking(move || recorder.flush()).await;
        flushed.map_err(|error| ReachError::Unreadable(error.to_string()))?;
        let mut exchanges = self.exchanges_under(&chaos, since, activation);
        exchanges.reverse();
        let found = exchanges.len() as u64;
        Ok(Seen {
            exchanges,
            lost: chaos.exchanges_begun().saturating_sub(found),
        })
    }

    /// Newest first.
    fn exchanges_under(
        &self,
        chaos: &ScopeChaos,
        since: Instant,
        activation: &str,
    ) -> Vec<SeenExchange> {
        let filter = Filter {
            scope: Some(chaos.scope().to_string()),
            since_ms: Some(self.recorder.unix_ms(since).saturating_sub(1)),
            ..Filter::default()
        };
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page = self.recorder.exchanges(&filter, after, AT_ONCE);
            let its = |note: &&Arc<ExchangeNote>| note.activation.as_deref() == Some(activation);
            let its = page.items.iter().filter(its);
            seen.extend(its.map(|note| seen_exchange(note, since)));
            after = page.next;
            if after.is_none() {
                return seen;
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        // Whole between any two statements.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reach for OwnProxy {
    fn begin<'a>(
        &'a self,
        scope: &'a str,
        chaos: Wanted,
    ) -> Pending<'a, Result<ActivationRecord, ReachError>> {
        Box::pin(self.put(scope, chaos))
    }

    fn end<'a>(&'a self, scope: &'a str) -> Pending<'a, Result<bool, ReachError>> {
        Box::pin(async move {
            let marks: Vec<_> = self
                .runs()
                .values()
                .map(|open| Arc::clone(&open.mark))
                .collect();
            let ended = marks
                .iter()
                .map(|mark| self.chaos.end_for_run(Some(scope), mark));
            Ok(ended.sum::<usize>() > 0)
        })
    }

    fn end_run<'a>(&'a self, run: &'a str) -> Pending<'a, Result<usize, ReachError>> {
        Box::pin(async move {
            let mark = self.mark(run)?;
            Ok(self.chaos.end_for_run(None, &mark))
        })
    }

    fn seen<'a>(
        &'a self,
        activation: &'a str,
        patience: Duration,
    ) -> Pending<'a, Result<Seen, ReachError>> {
        Box::pin(self.look(activation, patience))
    }
}

fn is_of(chaos: &ScopeChaos, activation: &str) -> bool {
    chaos.id().is_some_and(|id| **id == *activation)
}

fn request(wanted: Wanted, workspace: String) -> Result<Request, ReachError> {
    let rules = match wanted.rules {
        Rules::Nothing => RulesWanted::Profile(NO_CHAOS.to_owned()),
        Rules::Profile(name) if workspace == DEFAULT_WORKSPACE => RulesWanted::Profile(name),
        Rules::Profile(profile) => RulesWanted::OfWorkspace { workspace, profile },
        Rules::Document { text, variables } => {
            let lookup = |name: &str| {
                let value = variables.find(name).map(str::to_owned);
                value.ok_or(std::env::VarError::NotPresent)
            };
            let read = profile::parse_file(INLINE, &text, Variables::From(&lookup));
            let read = read.map_err(|errors| {
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                ReachError::BadRules(errors.join("; "))
            })?;
            RulesWanted::Inline(Arc::new(read))
        }
    };
    let tools = wanted.tools.iter();
    let tools = ToolNames::new(tools.map(|(name, globs)| (name.as_str(), globs.as_slice())));
    Ok(Request {
        rules,
        tools: tools.map_err(|error| ReachError::BadRules(error.to_string()))?,
        seed: Some(wanted.seed),
        ttl: wanted.ttl,
        key: Some(wanted.key),
        observe: Some(match wanted.observe {
            Observe::Headers => Reads::Headers,
            Observe::Model => Reads::Model,
            Observe::Bodies => Reads::Bodies,
        }),
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
    }
}

fn sent(recorded: &Recorded) -> Message {
    let request = &recorded.request;
    Message {
        headers: request.headers.clone(),
        body: Some(Body {
            bytes: request.body.0.to_vec(),
            whole: !request.over_limit,
        }),
        detected: recorded
            .exposed
            .as_ref()
            .map(|exposed| exposed.request.clone()),
    }
}

fn received(recorded: &Recorded) -> Option<Message> {
    let answer = recorded.answer.as_ref()?;
    Some(Message {
        headers: answer.headers.clone(),
        body: Some(Body {
            bytes: answer.content.whole().to_vec(),
            whole: !answer.over_limit && !answer.broken_off,
        }),
        detected: recorded
            .exposed
            .as_ref()
            .map(|exposed| exposed.answer.clone()),
    })
}
