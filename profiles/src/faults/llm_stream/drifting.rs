//! Streams whose texts drift.
//!
//! A text and the events after it are held until it is complete. The new text is spread over the
//! text's events, or over additional events if none remains.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use squall_dialects::json::{Document, Edits, Kind, NodeId, Value, quote};
use squall_dialects::model::{Delta, DeltaKind};
use squall_dialects::stream::{Frame, Framing};
use squall_dialects::tokens::{self, Counting};

use super::budget;
use super::call::Call;
use super::events::{Event, Job, Other};
use super::numbers::Numbers;
use super::said::Said;
use super::{DEFAULT_HOLD, Step};
use crate::changes::ResponseDrift;
use crate::faults::llm_rewrite::drift::drifted;

/// Tokens per additional event of a longer text.
const MADE_TOKENS: u64 = 4;

/// A part of a choice with a separate text.
type TextKey = (u64, u64);

/// A stream whose texts drift.
#[derive(Debug)]
pub(super) struct Drifts {
    drift: ResponseDrift,
    framing: Framing,
    /// Incomplete texts.
    open: BTreeMap<TextKey, OpenText>,
    /// Held events, in order.
    queue: VecDeque<HeldEvent>,
    bytes: usize,
    said: Said,
    numbers: Numbers,
    /// Synthetic events were added.
    made: bool,
    touched: bool,
    /// Why the first unchanged text did not drift.
    why: Option<String>,
    /// No further texts drift.
    over: bool,
}

/// An incomplete text.
#[derive(Debug, Default)]
struct OpenText {
    text: String,
    /// The latest event that can be the template of another piece.
    carrier: Option<Frame>,
}

/// A held event.
#[derive(Debug)]
struct HeldEvent {
    frame: Frame,
    pieces: Vec<TextPiece>,
    /// It repeats content of others.
    repeats: bool,
    /// Its sequence number.
    number: Option<u64>,
    /// It is a copy of `frame` with this text.
    made: Option<String>,
}

/// A piece of a text.
#[derive(Debug)]
struct TextPiece {
    key: TextKey,
    place: NodeId,
    text: String,
    share: Option<PieceShare>,
}

/// The new content of a piece.
#[derive(Debug, PartialEq)]
enum PieceShare {
    AsItCame,
    Text(String),
}

impl Drifts {
    pub(super) fn new(drift: ResponseDrift, framing: Framing) -> Self {
        Self {
            drift,
            framing,
            open: BTreeMap::new(),
            queue: VecDeque::new(),
            bytes: 0,
            said: Said::default(),
            numbers: Numbers::default(),
            made: false,
            touched: false,
            why: None,
            over: false,
        }
    }

    /// The pieces of texts in an event.
    fn pieces(&mut self, event: &Event<'_>) -> Vec<TextPiece> {
        let mut pieces = Vec::new();
        for delta in meant(event) {
            let key = (delta.choice, delta.part);
            let open = self.open.entry(key).or_default();
            let stands_alone = event.reading.deltas.len() == 1
                && event.reading.finishes.is_empty()
                && event.reading.edges.is_empty();
            // Who speaks is said once.
            if stands_alone
                && !delta.text.is_empty()
                && (!event.reading.introduces || !open.text.is_empty())
            {
                open.carrier = Some(event.frame.clone());
            }
            open.text.push_str(&delta.text);
            pieces.push(TextPiece {
                key,
                place: delta.place,
                text: delta.text.to_string(),
                share: None,
            });
        }
        pieces
    }

    /// The texts that are complete at this event.
    fn complete(&self, event: &Event<'_>) -> Vec<TextKey> {
        let reading = &event.reading;
        let all = reading.ends
            || reading.error.is_some()
            || (reading.usage.is_some() && reading.deltas.is_empty());
        let ends = |(choice, part): &TextKey| {
            let another = |delta: &Delta<'_>| {
                let of_it = delta.part == *part && delta.kind == DeltaKind::Text;
                delta.choice == *choice && (delta.repeats || !of_it)
            };
            let finishes = &mut reading.finishes.iter();
            let edges = &mut reading.edges.iter();
            all || finishes.any(|finished| finished.choice == *choice)
                || reading.deltas.iter().any(another)
                || edges.any(|edge| edge.choice == *choice && (edge.closes || edge.part != *part))
        };
        self.open.keys().copied().filter(ends).collect()
    }

    /// A complete text: its pieces get the new text, or stay unchanged.
    fn finish(&mut self, key: TextKey) {
        let Some(open) = self.open.remove(&key) else {
            return;
        };
        let said = match drifted(&self.drift, &open.text) {
            Ok(said) => {
                let is_spread = spread(&said, waiting(&mut self.queue, key));
                match open.carrier {
                    Some(carrier) if !is_spread => self.make(&said, &carrier),
                    _ => {}
                }
                said
            }
            Err(why) => {
                // An empty text before one that says something is no reason.
                if !open.text.is_empty() {
                    self.why.get_or_insert(why);
                }
                for piece in waiting(&mut self.queue, key) {
                    piece.share = Some(PieceShare::AsItCame);
                }
                open.text
            }
        };
        self.said.set_text(key, said);
    }

    /// Adds events before the current one for text without a piece.
    fn make(&mut self, text: &str, carrier: &Frame) {
        let mut rest = text;
        while !rest.is_empty() {
            let mut piece = tokens::take(Counting::Estimate, rest, MADE_TOKENS);
            if piece.is_empty() {
                piece = rest;
            }
            rest = &rest[piece.len()..];
            let before = self.queue.len().saturating_sub(1);
            let made = HeldEvent {
                frame: carrier.clone(),
                pieces: Vec::new(),
                repeats: false,
                number: None,
                made: Some(piece.to_owned()),
            };
            self.queue.insert(before, made);
        }
    }

    /// Emits the events that no longer wait.
    fn drain(&mut self, call: &Call, steps: &mut Vec<Step>) {
        let is_ready = |held: &mut HeldEvent| held.pieces.iter().all(|piece| piece.share.is_some());
        while let Some(held) = self.queue.pop_front_if(is_ready) {
            if held.made.is_none() {
                self.bytes -= held.frame.bytes().len();
            }
            let mut bytes = self.said_by(&held, call);
            self.made |= held.made.is_some();
            match held.number {
                Some(number) if !self.made => self.numbers.passed(number),
                None if held.made.is_none() => {}
                Some(_) | None => self.numbers.follow(&mut bytes, true, self.framing, call),
            }
            steps.push(Step::Emit(bytes));
        }
    }

    /// The bytes of an event for the agent.
    fn said_by(&mut self, held: &HeldEvent, call: &Call) -> Bytes {
        let differs = |piece: &TextPiece| match &piece.share {
            Some(PieceShare::Text(text)) => *text != piece.text,
            Some(PieceShare::AsItCame) | None => false,
        };
        let changed = held.made.is_some() || held.pieces.iter().any(differs);
        self.touched |= changed;
        let frame = &held.frame;
        let data = frame.data().unwrap_or_default();
        // Where no word was changed, what repeats words stays as it came, whatever it says.
        let says_otherwise = changed || (held.repeats && self.touched);
        let document = says_otherwise.then(|| Document::parse(&data).ok());
        let Some(document) = document.flatten() else {
            return frame.bytes().clone();
        };
        let event = Event::new(frame, &document, call);
        let mut edits = Edits::new(&document);
        for piece in held.pieces.iter().filter(|piece| differs(piece)) {
            if let Some(PieceShare::Text(text)) = &piece.share {
                edits.replace(piece.place, quote(text));
                forget(&mut edits, &event, piece.key);
            }
        }
        if let (Some(text), Some(delta)) = (&held.made, meant(&event).next()) {
            edits.replace(delta.place, quote(text));
            forget(&mut edits, &event, (delta.choice, delta.part));
        }
        for delta in event.reading.deltas.iter().filter(|delta| delta.repeats) {
            self.said.repeat(&mut edits, &document, delta);
        }
        match event.edited(&edits, None) {
            Step::Emit(bytes) => bytes,
            Step::Wait(_) | Step::End(_) | Step::Finish => frame.bytes().clone(),
        }
    }

    fn finish_all(&mut self) {
        for key in self.open.keys().copied().collect::<Vec<_>>() {
            self.finish(key);
        }
    }

    /// Too many bytes are held: texts stay unchanged.
    fn give_up(&mut self) {
        self.why = Some(format!("the answer is longer than {DEFAULT_HOLD} bytes"));
        self.over = true;
        for held in &mut self.queue {
            for piece in held.pieces.iter_mut().filter(|it| it.share.is_none()) {
                piece.share = Some(PieceShare::AsItCame);
            }
        }
        self.open.clear();
    }
}

/// Spreads a text over its waiting pieces, in order; `false` if there are none.
fn spread<'p>(text: &str, waiting: impl Iterator<Item = &'p mut TextPiece>) -> bool {
    let mut pieces: Vec<_> = waiting.collect();
    if pieces.iter().any(|piece| !piece.text.is_empty()) {
        pieces.retain(|piece| !piece.text.is_empty());
    } else if pieces.len() > 1 {
        pieces.drain(..pieces.len() - 1);
    }
    let is_spread = !pieces.is_empty();
    let (total, count) = (tokens::count(Counting::Estimate, text), pieces.len() as u64);
    let (mut rest, mut given) = (text, 0);
    for (turn, piece) in (1..).zip(pieces) {
        let until = total * turn / count;
        let share = if turn == count {
            rest
        } else {
            tokens::take(Counting::Estimate, rest, until - given)
        };
        (rest, given) = (&rest[share.len()..], until);
        piece.share = Some(PieceShare::Text(share.to_owned()));
    }
    is_spread
}

impl Job for Drifts {
    fn event(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        if is_sign_of_life(event) {
            steps.push(event.pass());
            return;
        }
        let reading = &event.reading;
        let number = call.dialect.provider().number(event.spoken());
        let number = number.and_then(Value::as_u64);
        let pieces = if self.over {
            Vec::new()
        } else {
            self.pieces(event)
        };
        self.bytes += event.frame.bytes().len();
        self.queue.push_back(HeldEvent {
            frame: event.frame.clone(),
            pieces,
            repeats: reading.deltas.iter().any(|delta| delta.repeats),
            number,
            made: None,
        });
        for key in self.complete(event) {
            self.finish(key);
        }
        let last = self.queue.back_mut();
        for piece in last.into_iter().flat_map(|held| &mut held.pieces) {
            if piece.text.is_empty() && piece.share.is_none() {
                piece.share = Some(PieceShare::AsItCame);
            }
        }
        if self.bytes > DEFAULT_HOLD {
            self.give_up();
        }
        self.drain(call, steps);
    }

    fn other(&mut self, frame: &Frame, what: Other, call: &Call, steps: &mut Vec<Step>) {
        if what != Other::Comment {
            self.end(call, steps);
        }
        steps.push(Step::Emit(frame.bytes().clone()));
    }

    fn end(&mut self, call: &Call, steps: &mut Vec<Step>) {
        self.finish_all();
        self.drain(call, steps);
    }

    fn broke_off(&mut self, steps: &mut Vec<Step>) -> bool {
        let held = self.queue.drain(..).filter(|held| held.made.is_none());
        steps.extend(held.map(|held| Step::Emit(held.frame.into_bytes())));
        true
    }

    fn touched(&self) -> bool {
        self.touched
    }

    fn idle_because(&self, _tokens: u64) -> String {
        let why = self.why.clone();
        why.unwrap_or_else(|| "the answer holds no text".to_owned())
    }
}

/// Whether an event is only a keep-alive, by the providers' names for such events.
fn is_sign_of_life(event: &Event<'_>) -> bool {
    event.frame.name() == Some("ping") && event.reading.deltas.is_empty()
}

/// The pieces of changeable texts in an event.
fn meant<'e>(event: &'e Event<'_>) -> impl Iterator<Item = &'e Delta<'e>> {
    event.reading.deltas.iter().filter(|delta| {
        delta.kind == DeltaKind::Text
            && !delta.repeats
            && event.document.value(delta.place).kind() == Kind::String
    })
}

/// The waiting pieces of a text.
fn waiting(queue: &mut VecDeque<HeldEvent>, key: TextKey) -> impl Iterator<Item = &mut TextPiece> {
    let pieces = queue.iter_mut().flat_map(|held| &mut held.pieces);
    pieces.filter(move |it| it.key == key && it.share.is_none())
}

/// Removes data that refers to changed words of a text.
fn forget(edits: &mut Edits<'_>, event: &Event<'_>, key: TextKey) {
    budget::forget_mirrors(edits, &event.reading, |choice| choice == key.0);
    budget::forget_sources(edits, &event.reading, |choice, part| (choice, part) == key);
}
