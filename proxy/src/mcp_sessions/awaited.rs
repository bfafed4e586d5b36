//! What rules do to the answer to one call, and who is told what came of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use squall_dialects::json::{Document, Edits, Kind};
use squall_dialects::mcp::{self, Call, Id};
use squall_profiles::faults::llm_stream::Step;
use squall_profiles::faults::mcp_answer::{Change, Form, McpEditor};
use squall_profiles::plan::VerdictIndex;
use tokio::sync::mpsc::UnboundedSender;

use crate::carry_out::recall::{Owner, Recall};
use crate::mcp_tools::{Server, Tools};

/// What came of a rule, for the account of the POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// The agent was handed what the rule makes of the answer.
    Applied(VerdictIndex),
    /// The answer came, or will not, and the rule changed nothing.
    Bypassed(VerdictIndex, String),
    /// The answer was held back for so long.
    Delayed(Duration),
    /// Nobody waits for it here any more: what comes of the rules is told otherwise.
    Withdrawn,
}

/// Tells the thread of a POST what came of its rules, once.
#[derive(Debug)]
pub(crate) struct Teller(Mutex<Option<UnboundedSender<Told>>>);

impl Teller {
    /// Tells it through `to`, which stays open until something was told.
    pub(crate) fn new(to: UnboundedSender<Told>) -> Self {
        Self(Mutex::new(Some(to)))
    }

    /// Tells all there is to be told; nothing after the first time.
    pub(crate) fn tell(&self, all: impl IntoIterator<Item = Told>) {
        let to = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(to) = to else { return };
        for told in all {
            // Whoever no longer listens has written the account already.
            let _ = to.send(told);
        }
    }
}

/// An answer that rules wait for.
#[derive(Debug)]
pub(crate) struct Awaited {
    /// The call it answers.
    pub(crate) call: Call,
    /// Results say of what type they are.
    pub(crate) typed: bool,
    /// What is changed, in order.
    pub(crate) changes: Vec<(VerdictIndex, Change)>,
    /// It is held back so long, in all.
    pub(crate) holds: Vec<(VerdictIndex, Duration)>,
    /// It never reaches the agent.
    pub(crate) withheld: bool,
    /// Rules that may give it again.
    pub(crate) remember: Vec<(Owner, u64)>,
    /// Where they keep it.
    pub(crate) recall: Recall,
    /// It lists tools: where that is kept, and of which server.
    pub(crate) lists: Option<(Tools, Server)>,
    /// Who is told.
    pub(crate) teller: Teller,
}

impl Awaited {
    /// The id that the answer has.
    pub(crate) fn id(&self) -> Option<&Id> {
        self.call.id.as_ref()
    }

    /// Whether anything is done with the answer.
    pub(crate) fn does_something(&self) -> bool {
        self.withheld
            || !self.changes.is_empty()
            || !self.holds.is_empty()
            || !self.remember.is_empty()
            || self.lists.is_some()
    }

    /// Whether somebody is to be told what came of it.
    pub(crate) fn is_told_of(&self) -> bool {
        self.verdicts().next().is_some()
    }

    /// The rules that do.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = VerdictIndex> {
        let changes = self.changes.iter().map(|(verdict, _)| *verdict);
        changes.chain(self.holds.iter().map(|(verdict, _)| *verdict))
    }

    /// For how long it is held back once it has come.
    pub(crate) fn held(&self) -> Duration {
        self.holds.iter().map(|(_, hold)| *hold).sum()
    }

    /// It will not come, and why.
    pub(crate) fn gives_up(&self, why: &str) {
        let bypassed = |verdict| Told::Bypassed(verdict, why.to_owned());
        self.teller.tell(self.verdicts().map(bypassed));
    }
}

/// What the agent gets of an event that holds awaited answers.
pub(super) struct CarriedOut {
    /// The event's data; `None`: nothing is left of it.
    pub(super) data: Option<Vec<u8>>,
    /// For how long it is held back.
    pub(super) hold: Duration,
    /// What is told once it was handed on.
    pub(super) told: Vec<(Arc<Awaited>, Vec<Told>)>,
}

/// Changes the data of one event, and remembers what it said where a rule may say it again and
/// nobody else sees it. `None`: nothing in it is awaited.
pub(super) fn carry_out(
    data: &[u8],
    remembers: bool,
    find: impl Fn(&Id) -> Option<Arc<Awaited>>,
) -> Option<CarriedOut> {
    let document = Document::parse(data).ok()?;
    let mut carried = CarriedOut {
        data: Some(data.to_vec()),
        hold: Duration::ZERO,
        told: Vec::new(),
    };
    for message in mcp::messages(&document) {
        let Some(awaited) = message.answers().and_then(|id| find(&id)) else {
            continue;
        };
        for (owner, call) in awaited.remember.iter().filter(|_| remembers) {
            let message = Bytes::copy_from_slice(message.value().raw().as_bytes());
            awaited.recall.note_message(owner, *call, message);
        }
        if let Some((tools, server)) = &awaited.lists {
            tools.learn(server, message);
        }
        let told = carried.take(&awaited);
        carried.told.push((awaited, told));
    }
    (!carried.told.is_empty()).then_some(carried)
}

impl CarriedOut {
    /// Does to one answer what its rules say.
    fn take(&mut self, awaited: &Awaited) -> Vec<Told> {
        let mut told = Vec::new();
        for (verdict, change) in &awaited.changes {
            let Some(data) = &self.data else { break };
            told.push(match changed(change, awaited, data) {
                Ok(data) => {
                    self.data = Some(data);
                    Told::Applied(*verdict)
                }
                Err(why) => Told::Bypassed(*verdict, why),
            });
        }
        self.hold += awaited.held();
        for (verdict, hold) in &awaited.holds {
            told.extend([Told::Applied(*verdict), Told::Delayed(*hold)]);
        }
        if awaited.withheld {
            self.data = self.data.take().and_then(|data| without(&data, awaited));
        }
        told
    }
}

fn changed(change: &Change, awaited: &Awaited, data: &[u8]) -> Result<Vec<u8>, String> {
    let calls = vec![awaited.call.clone()];
    let editor = McpEditor::new(change.clone(), calls, Form::Json, usize::MAX);
    let mut editor = editor.typed(awaited.typed);
    let mut steps = editor.push(data);
    steps.extend(editor.finish());
    match editor.untouched_because() {
        Some(why) => Err(why),
        None => Ok(emitted(&steps)),
    }
}

/// The bytes that steps emit.
pub(crate) fn emitted(steps: &[Step]) -> Vec<u8> {
    let bytes = steps.iter().filter_map(|step| match step {
        Step::Emit(bytes) => Some(&bytes[..]),
        Step::Wait(_) | Step::End(_) | Step::Finish => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

/// An event's data without one answer; `None`: there is no other.
fn without(data: &[u8], awaited: &Awaited) -> Option<Vec<u8>> {
    let document = Document::parse(data).ok()?;
    if document.root().kind() != Kind::Array {
        return None;
    }
    let mut edits = Edits::new(&document);
    let mut left = 0;
    for message in mcp::messages(&document) {
        if message.answers().as_ref() == awaited.id() {
            edits.remove(message.value().id());
        } else {
            left += 1;
        }
    }
    (left > 0).then(|| edits.apply())
}
