//! Answers whose texts or tool calls say something else.
//!
//! What is to be rewritten has to be known whole. Of a stream, the events from the first piece of a
//! part to its last are held, then given all at once, with the new text spread over them; a tool's
//! name comes in one piece, so nothing is held for it. Everything else passes as it comes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::StatusCode;
use squall_dialects::BadCall;
use squall_dialects::json::{Document, Edits, Kind, quote};
use squall_dialects::model::{Delta, DeltaKind, Finish, Reading, Weights};
use squall_dialects::stream::{Frame, Made};
use squall_dialects::tokens::{self, Counting};

use super::budget::{self, Kept, Share};
use super::call::Call;
use super::events::{Event, Job, Other};
use super::said::Said;
use super::{DEFAULT_HOLD, Step};
use crate::fault::Rewrite;
use crate::faults::llm_rewrite::{drift, tools};

/// A part of a choice, as far as rewriting tells them apart.
type Key = (u64, u64);

/// A stream whose texts or tool calls are rewritten.
#[derive(Debug)]
pub(super) struct Rewriting {
    rewrite: Rewrite,
    /// Events from the first piece of what is to be rewritten.
    held: Vec<Frame>,
    bytes: usize,
    /// The part that the first of them belongs to.
    holding: Option<Key>,
    done: Done,
}

impl Rewriting {
    pub(super) fn new(rewrite: Rewrite) -> Self {
        Self {
            rewrite,
            held: Vec::new(),
            bytes: 0,
            holding: None,
            done: Done::default(),
        }
    }

    /// The part that an event holds a piece of that is to be rewritten.
    fn wanted(&self, event: &Event<'_>) -> Option<Key> {
        let kind = kind(&self.rewrite);
        let mut deltas = event.reading.deltas.iter();
        let found = deltas.find(|delta| delta.kind == kind && !delta.repeats)?;
        Some((found.choice, found.part))
    }

    /// Whether the part at hand is complete with this event, or was before it.
    fn completes(&self, event: &Event<'_>, call: &Call) -> bool {
        let reading = &event.reading;
        if reading.ends || (reading.usage.is_some() && reading.deltas.is_empty()) {
            return true;
        }
        // Of several choices the events are mixed, so all of them are held to the end.
        if call.choices > 1 {
            return false;
        }
        let wanted = kind(&self.rewrite);
        let other = |delta: &Delta<'_>| {
            let of_the_part = Some((delta.choice, delta.part)) == self.holding
                && (delta.kind == wanted || (delta.kind.is_of_a_call() && wanted.is_of_a_call()));
            delta.repeats || !of_the_part
        };
        !reading.finishes.is_empty()
            || !reading.edges.is_empty()
            || reading.deltas.iter().any(other)
    }

    fn hold(&mut self, event: &Event<'_>, key: Option<Key>, call: &Call, steps: &mut Vec<Step>) {
        self.holding = self.holding.or(key);
        self.bytes += event.frame.bytes().len();
        self.held.push(event.frame.clone());
        if self.bytes > DEFAULT_HOLD {
            self.done.why = Some(format!("the answer is longer than {DEFAULT_HOLD} bytes"));
            self.done.over = true;
            self.give_up(steps);
        } else if self.completes(event, call) {
            self.release(call, steps);
        }
    }

    /// Gives out what is held as it came.
    fn give_up(&mut self, steps: &mut Vec<Step>) {
        (self.bytes, self.holding) = (0, None);
        let held = self.held.drain(..);
        steps.extend(held.map(|frame| Step::Emit(frame.into_bytes())));
    }

    /// Rewrites what is held and gives it out.
    fn release(&mut self, call: &Call, steps: &mut Vec<Step>) {
        (self.bytes, self.holding) = (0, None);
        let held = std::mem::take(&mut self.held);
        let data: Vec<_> = held
            .iter()
            .map(|frame| frame.data().unwrap_or_default())
            .collect();
        // Each was read before it was held.
        let documents: Vec<_> = data
            .iter()
            .filter_map(|data| Document::parse(data).ok())
            .collect();
        let mut weights = Weights::new(Some(call.counting));
        let events: Vec<_> = held
            .iter()
            .zip(&documents)
            .map(|(frame, document)| Event::new(frame, document, &mut weights, call))
            .collect();
        self.emit(&events, call, steps);
    }

    /// Rewrites events and gives them out.
    fn emit(&mut self, events: &[Event<'_>], call: &Call, steps: &mut Vec<Step>) {
        let pages: Vec<Page<'_>> = events
            .iter()
            .map(|event| Page::new(event.document, &event.reading))
            .collect();
        let edits = rewrite_pages(&self.rewrite, &pages, call, &mut self.done);
        for (at, (event, edited)) in events.iter().zip(&edits).enumerate() {
            match &self.done.failed {
                Some(failed) if failed.page == at => {
                    steps.extend(event.made(&[Made::data(failed.error.clone())]));
                    steps.push(Step::Finish);
                    return;
                }
                Some(_) | None => steps.push(event.edited(&edited.edits, edited.name)),
            }
        }
    }
}

impl Job for Rewriting {
    fn event(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        let wanted = self.wanted(event).filter(|_| !self.done.over);
        let in_pieces = kind(&self.rewrite) != DeltaKind::ToolName;
        if self.held.is_empty() {
            if wanted.is_some() && in_pieces {
                self.hold(event, wanted, call, steps);
            } else {
                self.emit(std::slice::from_ref(event), call, steps);
            }
            return;
        }
        let reading = &event.reading;
        let goes_on = wanted.is_some() && (wanted == self.holding || call.choices > 1);
        let says_nothing = reading.deltas.is_empty()
            && reading.edges.is_empty()
            && reading.finishes.is_empty()
            && reading.usage.is_none()
            && !reading.ends;
        if goes_on || (call.choices > 1 && !self.completes(event, call)) {
            self.hold(event, wanted, call, steps);
        } else if says_nothing {
            steps.push(event.pass());
        } else {
            self.release(call, steps);
            self.event(event, call, steps);
        }
    }

    fn other(&mut self, frame: &Frame, what: Other, call: &Call, steps: &mut Vec<Step>) {
        if what != Other::Comment {
            self.release(call, steps);
        }
        steps.push(Step::Emit(frame.bytes().clone()));
    }

    fn end(&mut self, call: &Call, steps: &mut Vec<Step>) {
        self.release(call, steps);
    }

    fn broke_off(&mut self, steps: &mut Vec<Step>) -> bool {
        self.give_up(steps);
        true
    }

    fn touched(&self) -> bool {
        self.done.touched
    }

    fn idle_because(&self, _tokens: u64) -> String {
        self.done.idle_because(&self.rewrite)
    }
}

/// A whole answer, rewritten, and its status, if that is another; or why it is not.
pub(super) fn whole(
    rewrite: &Rewrite,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &Call,
) -> Result<(Bytes, Option<StatusCode>), String> {
    let mut done = Done::default();
    let pages = [Page::new(document, reading)];
    let edited = rewrite_pages(rewrite, &pages, call, &mut done);
    match (edited.first(), done.failed.take()) {
        (_, Some(failed)) => Ok((Bytes::from(failed.error), Some(failed.status))),
        (Some(edited), None) if done.touched => Ok((Bytes::from(edited.edits.apply()), None)),
        (_, None) => Err(done.idle_because(rewrite)),
    }
}

/// What was rewritten so far.
#[derive(Debug, Default)]
struct Done {
    said: Said,
    touched: bool,
    /// Nothing more is rewritten.
    over: bool,
    /// Why the first that was not could not be.
    why: Option<String>,
    /// Choices that end because a call of theirs is none.
    bad: BTreeSet<u64>,
    /// Tokens that the agent got beside calls.
    kept: Kept,
    /// The error that the answer ends with.
    failed: Option<Failed>,
}

/// An error in the place of a call.
#[derive(Debug)]
struct Failed {
    /// On which of the pages at hand the call stood.
    page: usize,
    status: StatusCode,
    error: String,
}

impl Done {
    /// Takes the calls out of choices that are bad, and makes them end so.
    fn end_badly<'p>(&mut self, page: &Page<'p>, edited: &mut Edited<'p>, call: &Call) {
        let Page { document, reading } = page;
        let calls = |part| {
            let of_it = |delta: &&Delta<'_>| delta.part == part && delta.kind.is_of_a_call();
            reading.deltas.iter().any(|delta| of_it(&delta))
        };
        for delta in &reading.deltas {
            if self.bad.contains(&delta.choice) && calls(delta.part) {
                budget::cut(&mut edited.edits, document, delta, Share::Nothing);
            } else {
                let tokens = delta.tokens();
                if delta.is_thinking() {
                    self.kept.thought += tokens;
                } else {
                    self.kept.words += tokens;
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
            budget::count_anew(&mut edited.edits, usage, self.kept);
        }
    }

    fn idle_because(&self, rewrite: &Rewrite) -> String {
        let nothing = match kind(rewrite) {
            DeltaKind::Text => "the answer holds no text",
            _ => "the answer holds no tool call",
        };
        self.why.clone().unwrap_or_else(|| nothing.to_owned())
    }
}

/// A document and what it says.
#[derive(Clone, Copy)]
struct Page<'p> {
    document: &'p Document<'p>,
    reading: &'p Reading<'p>,
}

impl<'p> Page<'p> {
    fn new(document: &'p Document<'p>, reading: &'p Reading<'p>) -> Self {
        Self { document, reading }
    }
}

/// A piece of a part, and the page it stands on.
type Piece<'p> = (usize, &'p Delta<'p>);

/// What a page becomes.
struct Edited<'p> {
    edits: Edits<'p>,
    name: Option<&'static str>,
}

/// What a part is to say.
enum New {
    Text(String),
    /// Nothing: its choice ends, as it does when a call is none.
    End,
    /// Nothing: this error comes instead.
    Error {
        status: StatusCode,
        error: String,
    },
}

/// What is rewritten.
fn kind(rewrite: &Rewrite) -> DeltaKind {
    match rewrite {
        Rewrite::Drift(_) => DeltaKind::Text,
        Rewrite::UnknownTool { .. } => DeltaKind::ToolName,
        Rewrite::MalformedArguments { .. } | Rewrite::WrongArguments { .. } => {
            DeltaKind::ToolArguments
        }
    }
}

/// Rewrites every part of which all pieces stand on these pages, and what repeats it.
fn rewrite_pages<'p>(
    rewrite: &Rewrite,
    pages: &[Page<'p>],
    call: &Call,
    done: &mut Done,
) -> Vec<Edited<'p>> {
    let edited = |page: &Page<'p>| Edited {
        edits: Edits::new(page.document),
        name: None,
    };
    let mut edited: Vec<_> = pages.iter().map(edited).collect();
    for pieces in parts(pages, kind(rewrite)) {
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
                    done.said.set(delta, text);
                }
            }
            New::End => done
                .bad
                .extend(pieces.iter().map(|(_, delta)| delta.choice)),
            New::Error { status, error } => {
                done.failed = pieces.first().map(|(page, _)| Failed {
                    page: *page,
                    status,
                    error,
                });
            }
        }
        for (page, delta) in &pieces {
            let (edits, reading) = (&mut edited[*page].edits, pages[*page].reading);
            budget::forget_mirrors(edits, reading, |choice| choice == delta.choice);
        }
        done.touched = true;
        // A model that is wrong about one call is not wrong about all.
        done.over = !matches!(rewrite, Rewrite::Drift(_));
    }
    for (page, edited) in pages.iter().zip(&mut edited) {
        for delta in page.reading.deltas.iter().filter(|delta| delta.repeats) {
            done.said.repeat(&mut edited.edits, page.document, delta);
        }
        done.end_badly(page, edited, call);
    }
    edited
}

/// The pieces of each part, in the order in which the parts begin.
fn parts<'p>(pages: &[Page<'p>], kind: DeltaKind) -> Vec<Vec<Piece<'p>>> {
    let mut places: BTreeMap<Key, usize> = BTreeMap::new();
    let mut parts: Vec<Vec<Piece<'p>>> = Vec::new();
    for (at, page) in pages.iter().enumerate() {
        let deltas = page.reading.deltas.iter();
        for delta in deltas.filter(|delta| delta.kind == kind && !delta.repeats && !delta.signed) {
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

/// What a part is to say; or why it cannot say anything else.
fn rewritten(
    rewrite: &Rewrite,
    pieces: &[Piece<'_>],
    pages: &[Page<'_>],
    call: &Call,
) -> Result<New, String> {
    let text: String = pieces.iter().map(|(_, delta)| &*delta.text).collect();
    match rewrite {
        Rewrite::Drift(how) => drift::drifted(how, &text).map(New::Text),
        Rewrite::UnknownTool { choice } => {
            Ok(New::Text(tools::unknown(&text, &call.tools, *choice)))
        }
        Rewrite::WrongArguments { choice } => tools::wrong(&text, *choice).map(New::Text),
        Rewrite::MalformedArguments { choice } => {
            let malformed = tools::malformed(&text, *choice);
            if pieces.iter().all(|piece| is_text(piece, pages)) {
                return Ok(New::Text(malformed));
            }
            let answer = pieces.first().map(|(page, _)| pages[*page].document.root());
            let told = answer.map(|answer| call.dialect.bad_call(answer, &malformed));
            match told.unwrap_or(BadCall::Untold) {
                BadCall::Ends => Ok(New::End),
                BadCall::Fails { status, error } => Ok(New::Error { status, error }),
                BadCall::Untold => Err(
                    "this provider gives arguments as JSON, not as text that may be none".into(),
                ),
            }
        }
    }
}

fn is_text((page, delta): &Piece<'_>, pages: &[Page<'_>]) -> bool {
    pages[*page].document.value(delta.place).kind() == Kind::String
}

/// Spreads a text over the pieces that said something before, in about equal shares of tokens.
fn spread(text: &str, pieces: &[Piece<'_>], pages: &[Page<'_>], edited: &mut [Edited<'_>]) {
    let spoke = |piece: &&Piece<'_>| !piece.1.text.is_empty();
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
