//! Secrets that are spread over several events of a stream: a model says a key token by token.
//!
//! Texts that stand at the same place of successive events are one text ([`super::leaves`]); so are the
//! data of events that are no JSON. What is a secret in it is taken out of each event that holds a part of
//! it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use squall_dialects::json::{Document, Edits, NodeId, quote};
use squall_dialects::stream::{DEFAULT_LIMIT, Frame, FrameKind, Framing, Splitter};

use super::super::content::{Data, Piece};
use super::super::leaves;
use crate::redact::{Found, Redactor};

/// Most texts of one stream that are put together; each event is looked at by itself whatever their number.
const MOST_PARTS: usize = 1 << 18;

/// One text that goes on from event to event.
#[derive(Debug, Default)]
pub(in crate::tape) struct Strand {
    /// All of it.
    pub(in crate::tape) text: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    frame: usize,
    /// `None`: the event's data as they are.
    leaf: Option<NodeId>,
    range: Range<usize>,
}

impl Strand {
    fn add(&mut self, frame: usize, leaf: Option<NodeId>, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.parts.push(Part {
            frame,
            leaf,
            range: start..self.text.len(),
        });
    }

    fn part(&self, part: &Part) -> &str {
        &self.text[part.range.clone()]
    }

    /// Whether it says the same again and again, as ids do: nothing goes on in it.
    fn repeats(&self) -> bool {
        let first = self.parts.first().map(|part| self.part(part));
        self.parts.iter().all(|part| Some(self.part(part)) == first)
    }
}

/// The frames of a stream that is kept in pieces.
pub(in crate::tape) fn frames(framing: Framing, pieces: &[Piece]) -> Vec<Frame> {
    let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
    let mut frames: Vec<Frame> = pieces
        .iter()
        .flat_map(|piece| splitter.push(&piece.data.0))
        .collect();
    frames.extend(splitter.finish());
    frames
}

/// The texts of a stream, each put together; those that stand in one event only are not among them.
pub(in crate::tape) fn strands(frames: &[Frame]) -> Vec<Strand> {
    let mut strands: HashMap<u64, Strand> = HashMap::new();
    let mut left = MOST_PARTS;
    for (number, frame) in frames.iter().enumerate() {
        let Some(data) = frame.data() else { continue };
        let mut add = |place: u64, leaf, text: &str| {
            if left > 0 && !text.is_empty() {
                left -= 1;
                strands.entry(place).or_default().add(number, leaf, text);
            }
        };
        match Document::parse(&data) {
            Ok(document) => leaves::each(document.root(), &mut |place, leaf| {
                if let Some(text) = leaf.as_str() {
                    add(place, Some(leaf.id()), &text);
                }
            }),
            Err(_) => {
                if let Ok(text) = std::str::from_utf8(&data) {
                    add(0, None, text);
                }
            }
        }
    }
    let mut strands: Vec<_> = strands
        .into_values()
        .filter(|strand| !strand.repeats())
        .collect();
    // In the order of the stream, whatever the map's.
    strands.sort_by_key(|strand| strand.parts.first().map(|part| (part.frame, part.leaf)));
    strands
}

/// Takes secrets out of a stream that stand in more than one of its events.
pub(super) fn redact(redactor: &Redactor, framing: Framing, pieces: &mut [Piece]) {
    let frames = frames(framing, pieces);
    let is_piece = |frame: &&Frame| frame.kind() != FrameKind::Filler;
    if frames.iter().filter(is_piece).count() != pieces.len() {
        // They are not what this framing made them.
        return;
    }
    let mut changes: BTreeMap<usize, Vec<(Option<NodeId>, String)>> = BTreeMap::new();
    for strand in strands(&frames) {
        let secrets = redactor.find(&strand.text);
        if secrets.is_empty() {
            continue;
        }
        for part in &strand.parts {
            if let Some(text) = without(&strand, part, &secrets) {
                let changes = changes.entry(part.frame).or_default();
                changes.push((part.leaf, text));
            }
        }
    }
    if changes.is_empty() {
        return;
    }
    let mut pieces = pieces.iter_mut();
    let mut piece: Option<(&mut Piece, Vec<u8>)> = None;
    for (number, frame) in frames.iter().enumerate() {
        let bytes = match changes.get(&number) {
            Some(changes) => changed(frame, changes),
            None => frame.bytes().to_vec(),
        };
        match &mut piece {
            Some((_, kept)) if frame.kind() == FrameKind::Filler => kept.extend(bytes),
            _ => {
                put(piece.take());
                piece = pieces.next().map(|piece| (piece, bytes));
            }
        }
    }
    put(piece);
}

fn put(piece: Option<(&mut Piece, Vec<u8>)>) {
    if let Some((piece, bytes)) = piece {
        piece.data = Data(bytes.into());
    }
}

/// A part without what of it belongs to secrets: the mark stands where one begins. `None`: none does.
fn without(strand: &Strand, part: &Part, secrets: &[Found]) -> Option<String> {
    let Range { start, end } = part.range;
    let from = secrets.partition_point(|secret| secret.range.end <= start);
    let inside: Vec<_> = secrets[from..]
        .iter()
        .take_while(|secret| secret.range.start < end)
        .collect();
    if inside.is_empty() {
        return None;
    }
    let mut text = String::new();
    let mut copied = start;
    for secret in inside {
        let Range {
            start: begins,
            end: ends,
        } = secret.range;
        text.push_str(&strand.text[copied..begins.max(start)]);
        if begins >= start {
            text.push_str(&secret.instead(&strand.text));
        }
        copied = ends.min(end);
    }
    text.push_str(&strand.text[copied..end]);
    Some(text)
}

fn changed(frame: &Frame, changes: &[(Option<NodeId>, String)]) -> Vec<u8> {
    let data = frame.data().unwrap_or_default();
    if let [(None, text)] = changes {
        return frame.with(None, text.as_bytes()).to_vec();
    }
    let Ok(document) = Document::parse(&data) else {
        return frame.bytes().to_vec();
    };
    let mut edits = Edits::new(&document);
    for (leaf, text) in changes {
        if let Some(leaf) = leaf {
            edits.replace(*leaf, quote(text));
        }
    }
    frame.with(None, &edits.apply()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(events: &[&str]) -> Vec<Piece> {
        let piece = |(number, event): (usize, &&str)| Piece {
            at_ms: number as u64,
            data: Data::from(*event),
        };
        events.iter().enumerate().map(piece).collect()
    }

    fn redacted(framing: Framing, events: &[&str]) -> Vec<String> {
        let mut pieces = pieces(events);
        redact(&Redactor::default(), framing, &mut pieces);
        let text = |piece: &Piece| piece.data.as_text().map(str::to_owned);
        pieces.iter().filter_map(text).collect()
    }

    fn said(text: &str) -> String {
        let data =
            serde_json::json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {data}\n\n")
    }

    #[test]
    fn a_key_that_is_said_token_by_token_is_taken_out() {
        let events = ["the key is s", "k-abc", "defgh", "12345", " and no more"].map(said);
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push("data: [DONE]\n\n");
        let expected = ["the key is REDACTED", "", "", "", " and no more"].map(said);
        let redacted = redacted(Framing::Sse, &events);
        assert_eq!(redacted[..5], expected);
        assert_eq!(redacted[5], "data: [DONE]\n\n");
    }

    #[test]
    fn it_does_not_matter_how_events_are_laid_out_and_whose_they_are() {
        let anthropic = |index: u64, text: &str| {
            let delta = serde_json::json!({"type": "text_delta", "text": text});
            let data =
                serde_json::json!({"type": "content_block_delta", "index": index, "delta": delta});
            format!("event: content_block_delta\ndata: {data}\n\n")
        };
        // Two texts cross; each goes on by itself.
        let events = [
            anthropic(0, "sk-ab"),
            anthropic(1, "say "),
            anthropic(0, "cdefgh"),
            anthropic(1, "hello"),
        ];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let expected = [
            anthropic(0, "REDACTED"),
            anthropic(1, "say "),
            anthropic(0, ""),
            anthropic(1, "hello"),
        ];
        assert_eq!(redacted(Framing::Sse, &events), expected);
        let lines = [
            "{\"message\":{\"content\":\"sk-ab\"}}\n",
            "{\"message\":{\"content\":\"cdefgh\"}}\n",
        ];
        let expected = [
            "{\"message\":{\"content\":\"REDACTED\"}}\n",
            "{\"message\":{\"content\":\"\"}}\n",
        ];
        assert_eq!(redacted(Framing::Lines, &lines), expected);
        let items = ["[{\"t\":\"sk-ab\"}", ",\n{\"t\":\"cdefgh\"}", "]"];
        let expected = ["[{\"t\":\"REDACTED\"}", ",\n{\"t\":\"\"}]"];
        let array = redacted(Framing::Array, &items[..2]);
        assert_eq!(array[0], expected[0]);
        assert!(!array[1].contains("cdefgh"), "{array:?}");
        let plain = ["data: sk-ab\n\n", "data: cdefgh12\n\n"];
        assert_eq!(
            redacted(Framing::Sse, &plain),
            ["data: REDACTED\n\n", "data: \n\n"]
        );
    }

    #[test]
    fn arguments_that_are_said_in_pieces_are_read_as_one() {
        let call = |text: &str| {
            let call = serde_json::json!([{"index": 0, "function": {"arguments": text}}]);
            let data =
                serde_json::json!({"choices": [{"index": 0, "delta": {"tool_calls": call}}]});
            format!("data: {data}\n\n")
        };
        let events = ["{\"pass", "word\": \"hun", "ter2\", \"n\": 1}"].map(call);
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let expected = ["{\"pass", "word\": \"REDACTED", "\", \"n\": 1}"].map(call);
        assert_eq!(redacted(Framing::Sse, &events), expected);
    }

    #[test]
    fn what_holds_none_keeps_its_bytes() {
        let events = [
            ": hello\n\n",
            "event: a\r\ndata: {\"t\": \"sk-\"}\r\n\r\n",
            "data: {\"t\": \"\\u0061b\"}\r\n\r\n",
        ];
        assert_eq!(redacted(Framing::Sse, &events), events);
    }
}
