//! Changed tool results of a scope, to repeat the changes in later requests.
//!
//! An agent sends the whole conversation with every model call, without the changes that rules made
//! to results. If they were not repeated, the model would see a failed tool as successful in the
//! next turn. So a changed result stays changed while it is in the conversation, whatever the
//! rule's trigger decides for later calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Conversation, ResultSaying, ToolResult};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Terms, unseen};
use crate::verdict::{RuleVerdict, VerdictOutcome};

/// Most results that one scope remembers.
const RESULTS: usize = 4096;
/// Most tools named per rule in one exchange.
const TOOLS: usize = 64;
/// Most bytes of results.
const BYTES: usize = 8 << 20;

/// The changed tool results that one scope's models received.
#[derive(Debug, Default)]
pub struct ChangedResults(Mutex<ChangeTable>);

#[derive(Debug, Default)]
struct ChangeTable {
    by_result: HashMap<u64, ChangedResult>,
    /// Oldest first; it may still list removed results.
    order: VecDeque<u64>,
    bytes: usize,
}

#[derive(Debug)]
struct ChangedResult {
    /// The changed content, as JSON; for a result without content, the whole result.
    content: String,
    /// It was marked as a failure.
    failed: bool,
    /// The rule that changed it.
    by: RuleVerdict,
    /// The request with the new result.
    request: u64,
    /// A model has answered that request.
    answered: bool,
}

/// A request with the repeated changes of earlier requests.
#[derive(Debug)]
pub struct RepeatedChanges {
    /// The request's body.
    pub body: Vec<u8>,
    /// The rules that changed its results, each with the tools.
    pub by: Vec<RuleVerdict>,
    /// Some of these results are new to the model, because the earlier request got no answer.
    pub repeats: bool,
}

/// Identifies a request, by its body as the agent sent it.
pub fn request_key(sent: &[u8]) -> u64 {
    xxh3_64(sent)
}

impl ChangedResults {
    /// Whether there are no changes to repeat.
    pub fn is_empty(&self) -> bool {
        self.table().by_result.is_empty()
    }

    /// The request with the earlier changes repeated; `None` if there are none. A result that is
    /// new to the model counts if the same request was sent before and no model has answered it.
    pub fn again<'a>(&self, terms: impl Into<Terms<'a>>, body: &[u8]) -> Option<RepeatedChanges> {
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
                    // It only resembles a result of an earlier conversation.
                    table.forget(key);
                    continue;
                }
                repeats = true;
            }
            edits.replace(result.content, changed.content.clone());
            // For a result without content, the replacement already includes the failure flag.
            if changed.failed && !result.says_nothing() {
                // The first of two edits at one place applies, so this only adds the flag.
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
        (!edits.is_empty()).then(|| RepeatedChanges {
            body: edits.apply(),
            by: by.collect(),
            repeats,
        })
    }

    /// A model has answered this request; the same request later belongs to another conversation.
    pub fn answered(&self, request: u64) {
        for changed in self.table().by_result.values_mut() {
            changed.answered |= changed.request == request;
        }
    }

    /// Remembers a rule's changes to results: `sent` is the agent's request, `before` and `after`
    /// the body around the rule's change. Returns the tools of the results.
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
        // No code panics while holding it.
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
            // A result that was changed again is also listed later.
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

/// Identifies a result: by the call's id, the tool and the content.
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
