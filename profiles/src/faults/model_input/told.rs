//! What models were told of tools' results, so that they are told the same again.
//!
//! An agent sends the whole conversation with every model call, and it knows nothing of what became of
//! a result on its way. Without a memory the model would read in its next turn that a tool which had
//! failed did not. So what was made of a result is made of it again, for as long as it stands in the
//! conversation, whatever the rule's trigger says of the later calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Conversation, ResultSaying, ToolResult};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Terms, unseen};
use crate::verdict::{RuleVerdict, VerdictOutcome};

/// Most results that one scope remembers.
const RESULTS: usize = 4096;
/// Most tools that are named of one rule in one exchange.
const TOOLS: usize = 64;
/// Most bytes of them.
const BYTES: usize = 8 << 20;

/// What the models of one scope were told of results in place of what the agent sent.
#[derive(Debug, Default)]
pub struct Told(Mutex<ChangeTable>);

#[derive(Debug, Default)]
struct ChangeTable {
    by_result: HashMap<u64, ChangedResult>,
    /// Oldest first; what was forgotten may still be listed.
    order: VecDeque<u64>,
    bytes: usize,
}

#[derive(Debug)]
struct ChangedResult {
    /// The result's content, JSON; of one that said nothing, the whole result.
    content: String,
    /// It was flagged as a failure.
    failed: bool,
    /// Whose doing it was.
    by: RuleVerdict,
    /// The request that brought it.
    request: u64,
    /// A model has answered that request.
    answered: bool,
}

/// A request as the model is to read it, so that it is told what it was told before.
#[derive(Debug)]
pub struct Again {
    /// The request's body.
    pub body: Vec<u8>,
    /// The rules that changed its results, each with the tools that they are of.
    pub by: Vec<RuleVerdict>,
    /// Some of these results are new to the model: the request was made before, and not answered.
    pub repeats: bool,
}

/// What tells a request from others: its body, as the agent sent it.
pub fn request_key(sent: &[u8]) -> u64 {
    xxh3_64(sent)
}

impl Told {
    /// Whether there is nothing to tell again.
    pub fn is_empty(&self) -> bool {
        self.table().by_result.is_empty()
    }

    /// The request with the results that the model was told of as it was told of them; `None`: they are
    /// as they were sent. Results that are new to the model were told of if this very request was made
    /// before, and no model has answered it.
    pub fn again<'a>(&self, terms: impl Into<Terms<'a>>, body: &[u8]) -> Option<Again> {
        let document = Document::parse(body).ok()?;
        let terms = terms.into();
        let conversation = terms.conversation(&document);
        let mut edits = Edits::new(&document);
        let mut by: Vec<(RuleVerdict, Vec<String>)> = Vec::new();
        let mut table = self.table();
        let new: Vec<_> = unseen(&conversation).map(|result| result.place).collect();
        let mut repeats = false;
        for result in &conversation.tool_results {
            let key = key(result, &document);
            let Some(changed) = table.by_result.get(&key) else {
                continue;
            };
            if new.contains(&result.place) {
                if changed.answered || changed.request != request_key(body) {
                    // It only looks like one of an earlier conversation.
                    table.forget(key);
                    continue;
                }
                repeats = true;
            }
            edits.replace(result.content, changed.content.clone());
            // What stands for a result that said nothing is all of it, flag included.
            if changed.failed && !result.says_nothing() {
                // Of two changes to one place the first counts: this adds the flag alone.
                let failure = ResultSaying::Failure("");
                terms
                    .dialect
                    .say_result(&mut edits, &document, result, failure);
            }
            let known = by
                .iter()
                .position(|(known, _)| known.rule.id == changed.by.rule.id);
            let known = known.unwrap_or_else(|| {
                by.push((changed.by.clone(), Vec::new()));
                by.len() - 1
            });
            name(result, &mut by[known].1);
        }
        let by = by.into_iter().map(|(verdict, tools)| RuleVerdict {
            told_of: Some(tools.into()),
            ..verdict
        });
        (!edits.is_empty()).then(|| Again {
            body: edits.apply(),
            by: by.collect(),
            repeats,
        })
    }

    /// A model has answered this request: made once more, it is one of another conversation.
    pub fn answered(&self, request: u64) {
        for changed in self.table().by_result.values_mut() {
            changed.answered |= changed.request == request;
        }
    }

    /// Remembers what a rule has made of results: `sent` is the request as the agent sent it, `before`
    /// and `after` what it was before and after the rule's change. Returns the tools that they are of.
    pub fn keep<'a>(
        &self,
        terms: impl Into<Terms<'a>>,
        [sent, before, after]: [&[u8]; 3],
        failed: bool,
        by: &RuleVerdict,
    ) -> Vec<String> {
        let mut tools = Vec::new();
        let terms = terms.into();
        let request = request_key(sent);
        let parse = |body| Document::parse(body).ok();
        let (Some(sent), Some(before), Some(after)) = (parse(sent), parse(before), parse(after))
        else {
            return tools;
        };
        let results = |document| -> Conversation<'_> { terms.conversation(document) };
        let (was, is) = (results(&before), results(&after));
        let pairs = was.tool_results.iter().zip(&is.tool_results);
        let mut table = self.table();
        for (original, (was, is)) in results(&sent).tool_results.iter().zip(pairs) {
            let whole = original.says_nothing();
            let content = after.value(if whole { is.place } else { is.content }).raw();
            if before.value(was.content).raw() != content {
                let by = RuleVerdict {
                    outcome: VerdictOutcome::Applied,
                    ..by.clone()
                };
                let changed = ChangedResult {
                    content: content.to_owned(),
                    failed,
                    by,
                    request,
                    answered: false,
                };
                table.keep(key(original, &sent), changed);
                name(is, &mut tools);
            }
        }
        tools
    }

    fn table(&self) -> MutexGuard<'_, ChangeTable> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeTable {
    fn keep(&mut self, key: u64, mut changed: ChangedResult) {
        if let Some(earlier) = self.forget(key) {
            changed.failed |= earlier.failed;
        }
        self.bytes += changed.content.len();
        self.by_result.insert(key, changed);
        self.order.push_back(key);
        while self.by_result.len() > RESULTS || self.bytes > BYTES || self.order.len() > 2 * RESULTS
        {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            // A result that was changed anew stands further behind, too.
            if !self.order.contains(&oldest) {
                self.forget(oldest);
            }
        }
    }

    fn forget(&mut self, key: u64) -> Option<ChangedResult> {
        let changed = self.by_result.remove(&key)?;
        self.bytes -= changed.content.len();
        Some(changed)
    }
}

/// Adds the name of a result's tool, once.
fn name(result: &ToolResult<'_>, to: &mut Vec<String>) {
    if let Some(tool) = result.tool.as_deref()
        && to.len() < TOOLS
        && !to.iter().any(|known| known == tool)
    {
        to.push(tool.to_owned());
    }
}

/// What tells a result from others: the call's id, the tool and what it said.
fn key(result: &ToolResult<'_>, document: &Document<'_>) -> u64 {
    let mut hash = Xxh3::new();
    let content = document.value(result.content).raw();
    for part in [
        result.call.as_deref(),
        result.tool.as_deref(),
        Some(content),
    ] {
        let part = part.unwrap_or_default();
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest()
}
