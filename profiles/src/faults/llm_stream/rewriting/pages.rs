//! Events, or a whole answer, of which all that is to be rewritten is at hand.

use std::collections::{BTreeMap, BTreeSet};

use squall_dialects::Quirk;
use squall_dialects::json::{Document, Edits, JsonKind, quote};
use squall_dialects::model::{BadCalls, Delta, DeltaKind, Finish, Reading};
use squall_dialects::tokens::{self, Counting};

use super::called::{PartKey, ToolsByPart};
use crate::changes::{CallError, Rewrite, WrongCall};
use crate::faults::llm_rewrite::{drift, tools};
use crate::faults::llm_stream::AnsweredCall;
use crate::faults::llm_stream::budget::{self, ReceivedTokens, Share};
use crate::faults::llm_stream::received::ReceivedParts;

/// What was rewritten so far.
#[derive(Debug, Default)]
pub(super) struct Done {
    texts: ReceivedParts,
    /// The tools that were called.
    called: ToolsByPart,
    pub(super) touched: bool,
    /// Nothing more is rewritten.
    pub(super) over: bool,
    /// Why the first that was not could not be.
    pub(super) why: Option<String>,
    /// Choices that end because a call of theirs is none.
    bad: BTreeSet<u64>,
    /// Tokens that the agent got beside calls.
    received: ReceivedTokens,
}

impl Done {
    /// Notes the tools that an event calls. True if the event has a piece of what is rewritten.
    pub(super) fn note(&mut self, rewrite: &Rewrite, reading: &Reading<'_>) -> bool {
        let mut deltas = reading.deltas.iter();
        deltas.any(|delta| {
            self.called.note(delta);
            is_meant(rewrite, delta, &self.called)
        })
    }

    /// Takes the calls out of choices that are bad, and makes them end so.
    fn end_badly<'p>(
        &mut self,
        page: &AnswerPage<'p>,
        edited: &mut EditedPage<'p>,
        call: &AnsweredCall,
    ) {
        let AnswerPage { document, reading } = page;
        let calls = |part| {
            let of_it = |delta: &&Delta<'_>| delta.part == part && delta.kind.is_of_a_call();
            reading.deltas.iter().any(|delta| of_it(&delta))
        };
        for delta in &reading.deltas {
            if self.bad.contains(&delta.choice) && calls(delta.part) {
                budget::cut(&mut edited.edits, document, delta, Share::Nothing);
            } else {
                let tokens = delta.tokens;
                if delta.is_thinking() {
                    self.received.thought += tokens;
                } else {
                    self.received.words += tokens;
                }
            }
        }
        if self.bad.is_empty() {
            return;
        }
        for finished in &reading.finishes {
            if self.bad.contains(&finished.choice) {
                let (dialect, finish) = (call.dialect, Some(&Finish::BadTool));
                edited.name = dialect.put_finish(&mut edited.edits, document, finished, finish);
            }
        }
        if let Some(usage) = &reading.usage {
            budget::count_anew(&mut edited.edits, usage, self.received);
        }
    }

    pub(super) fn idle_because(&self, rewrite: &Rewrite) -> String {
        let why = self.why.clone();
        why.unwrap_or_else(|| match rewrite {
            Rewrite::Drift(_) => "the answer holds no text".to_owned(),
            Rewrite::Call(WrongCall { tools, .. }) => {
                let others = self.called.none_of(tools);
                others.unwrap_or_else(|| "the answer holds no tool call".to_owned())
            }
        })
    }
}

/// A document and its content.
#[derive(Clone, Copy)]
pub(super) struct AnswerPage<'p> {
    document: &'p Document<'p>,
    reading: &'p Reading<'p>,
}

impl<'p> AnswerPage<'p> {
    pub(super) fn new(document: &'p Document<'p>, reading: &'p Reading<'p>) -> Self {
        Self { document, reading }
    }
}

/// A piece of a part, and the page it stands on.
pub(super) type PagePiece<'p> = (usize, &'p Delta<'p>);

/// What a page becomes.
pub(super) struct EditedPage<'p> {
    pub(super) edits: Edits<'p>,
    pub(super) name: Option<&'static str>,
}

/// The new content of a part.
pub(super) enum New {
    Text(String),
    /// Nothing: its choice ends, as it does when a call is none.
    End,
}

/// What is rewritten.
fn kind(rewrite: &Rewrite) -> DeltaKind {
    match rewrite {
        Rewrite::Drift(_) => DeltaKind::Text,
        Rewrite::Call(wrong) => match wrong.error {
            CallError::UnknownTool => DeltaKind::ToolName,
            CallError::MalformedArguments | CallError::WrongArguments => DeltaKind::ToolArguments,
        },
    }
}

/// Rewrites every part of which all pieces stand on these pages, and what repeats it.
pub(super) fn rewrite_pages<'p>(
    rewrite: &Rewrite,
    pages: &[AnswerPage<'p>],
    call: &AnsweredCall,
    done: &mut Done,
) -> Vec<EditedPage<'p>> {
    let edited = |page: &AnswerPage<'p>| EditedPage {
        edits: Edits::new(page.document),
        name: None,
    };
    let mut edited: Vec<_> = pages.iter().map(edited).collect();
    for pieces in parts(pages, rewrite, &mut done.called) {
        if done.over {
            break;
        }
        let new = match rewritten(rewrite, &pieces, pages, call) {
            Ok(new) => new,
            Err(why) => {
                done.why.get_or_insert(why);
                continue;
            }
        };
        match new {
            New::Text(text) => {
                spread(&text, &pieces, pages, &mut edited);
                if let Some((_, delta)) = pieces.first() {
                    done.texts.set(delta, text);
                }
            }
            New::End => done
                .bad
                .extend(pieces.iter().map(|(_, delta)| delta.choice)),
        }
        for (page, delta) in &pieces {
            let (edits, reading) = (&mut edited[*page].edits, pages[*page].reading);
            budget::forget_mirrors(edits, reading, |choice| choice == delta.choice);
            if matches!(rewrite, Rewrite::Drift(_)) {
                // They count in letters of the old words.
                let of_it = (delta.choice, delta.part);
                budget::forget_sources(edits, reading, |choice, part| (choice, part) == of_it);
            }
        }
        done.touched = true;
        // A model that is wrong about one call is not wrong about all.
        done.over = !matches!(rewrite, Rewrite::Drift(_));
    }
    for (page, edited) in pages.iter().zip(&mut edited) {
        for delta in page.reading.deltas.iter().filter(|delta| delta.repeats) {
            done.texts.repeat(&mut edited.edits, page.document, delta);
        }
        done.end_badly(page, edited, call);
    }
    edited
}

/// Whether a piece is of what is to be rewritten, by the tools that were called up to it.
fn is_meant(rewrite: &Rewrite, delta: &Delta<'_>, called: &ToolsByPart) -> bool {
    delta.kind == kind(rewrite)
        && !delta.repeats
        && match rewrite {
            Rewrite::Drift(_) => true,
            Rewrite::Call(wrong) => called.is_of(delta, &wrong.tools),
        }
}

/// The pieces of each part that is meant, in the order in which the parts begin.
fn parts<'p>(
    pages: &[AnswerPage<'p>],
    rewrite: &Rewrite,
    called: &mut ToolsByPart,
) -> Vec<Vec<PagePiece<'p>>> {
    let mut places: BTreeMap<PartKey, usize> = BTreeMap::new();
    let mut parts: Vec<Vec<PagePiece<'p>>> = Vec::new();
    for (at, page) in pages.iter().enumerate() {
        for delta in &page.reading.deltas {
            called.note(delta);
            if !is_meant(rewrite, delta, called) {
                continue;
            }
            let key = (delta.choice, delta.part);
            // JSON that stands as it is comes whole.
            let known = places.get(&key).filter(|_| is_text(&(at, delta), pages));
            let place = known.copied().unwrap_or_else(|| {
                parts.push(Vec::new());
                parts.len() - 1
            });
            places.insert(key, place);
            parts[place].push((at, delta));
        }
    }
    parts
}

const NO_TEXT: &str = "this provider gives arguments as JSON, not as text that may be none";
const REJECTED: &str =
    "this provider checks the arguments that a model writes, and answers with an error";

/// The new content of a part, or why it stays unchanged.
fn rewritten(
    rewrite: &Rewrite,
    pieces: &[PagePiece<'_>],
    pages: &[AnswerPage<'_>],
    call: &AnsweredCall,
) -> Result<New, String> {
    let text: String = pieces.iter().map(|(_, delta)| &*delta.text).collect();
    let wrong = match rewrite {
        Rewrite::Drift(how) => return drift::drifted(how, &text).map(New::Text),
        Rewrite::Call(wrong) => wrong,
    };
    match wrong.error {
        CallError::UnknownTool => {
            let unknown = tools::unknown(&text, &call.tools, wrong.choice);
            Ok(New::Text(unknown))
        }
        CallError::WrongArguments => tools::wrong(&text, wrong.choice).map(New::Text),
        CallError::MalformedArguments => {
            let malformed = tools::malformed(&text, wrong.choice);
            let is_string = pieces.iter().all(|piece| is_text(piece, pages));
            let dropped =
                |(page, _): &PagePiece<'_>| pages[*page].reading.bad_calls == BadCalls::Dropped;
            let provider = call.dialect.provider_of(&call.error_context());
            if is_string && provider.has(Quirk::RejectsBadCalls) {
                Err(REJECTED.to_owned())
            } else if is_string {
                Ok(New::Text(malformed))
            } else if pieces.first().is_some_and(dropped) {
                Ok(New::End)
            } else {
                Err(NO_TEXT.to_owned())
            }
        }
    }
}

fn is_text((page, delta): &PagePiece<'_>, pages: &[AnswerPage<'_>]) -> bool {
    pages[*page].document.value(delta.place).kind() == JsonKind::String
}

/// Spreads a text over the pieces that said something before, in about equal shares of tokens.
fn spread(
    text: &str,
    pieces: &[PagePiece<'_>],
    pages: &[AnswerPage<'_>],
    edited: &mut [EditedPage<'_>],
) {
    let spoke = |piece: &&PagePiece<'_>| !piece.1.text.is_empty();
    let speaking = pieces.iter().filter(spoke).count();
    let all = pieces.len();
    // Shares need not be exact.
    let total = tokens::count(Counting::Estimate, text);
    let (mut rest, mut given, mut turn) = (text, 0, 0_u64);
    for (at, piece) in pieces.iter().enumerate() {
        let (page, delta) = piece;
        let last = if speaking == 0 {
            at + 1 == all
        } else {
            spoke(&piece) && turn + 1 == speaking as u64
        };
        let share = if last {
            std::mem::take(&mut rest)
        } else if spoke(&piece) {
            turn += 1;
            let until = total * turn / speaking as u64;
            let share = tokens::take(Counting::Estimate, rest, until - given);
            given = until;
            rest = &rest[share.len()..];
            share
        } else {
            continue;
        };
        let json = if is_text(piece, pages) {
            quote(share)
        } else {
            share.to_owned()
        };
        edited[*page].edits.replace(delta.place, json);
    }
}
