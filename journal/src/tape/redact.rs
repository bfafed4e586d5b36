//! Redacts recorded exchanges. A secret may be spread over several events of a stream, because a model writes a
//! key token by token.
//!
//! Texts at the same place of successive events form one text, a [`Strand`]; so do the data of events that are
//! not JSON. A secret in a strand is removed from each event that contains a part of it.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use squall_dialects::json::{Document, Edits, JsonKind, NodeId, Value, quote};
use squall_dialects::stream::{DEFAULT_LIMIT, Frame, FrameKind, Framing, Splitter};

use super::content::{Content, Data, Piece};
use super::recorded::Recorded;
use super::session::header;
use crate::redact::{Redactor, Secret};

/// Most texts of one stream that are joined; each event is also searched by itself.
const MOST_PARTS: usize = 1 << 18;

/// Redacts an exchange, request and response. `framing`: the event format of the response, if it is a stream.
pub fn recorded(redactor: &Redactor, framing: Option<Framing>, recorded: &mut Recorded) {
    let request = &mut recorded.request;
    redactor.url(&mut request.url, usize::MAX);
    headers(redactor, &mut request.headers);
    request.body.0 = redactor.body(header(&request.headers, "content-type"), &request.body.0);
    if let Some(input) = &mut recorded.input {
        redactor.text(input, usize::MAX);
    }
    let Some(answer) = &mut recorded.answer else {
        return;
    };
    headers(redactor, &mut answer.headers);
    let media_type = header(&answer.headers, "content-type");
    match &mut answer.content {
        Content::Body(data) => data.0 = redactor.body(media_type, &data.0),
        Content::Stream(pieces) => {
            if let Some(framing) = framing {
                stream(redactor, framing, pieces);
            }
            for piece in pieces {
                piece.data.0 = redactor.body(media_type, &piece.data.0);
            }
        }
    }
}

fn headers(redactor: &Redactor, headers: &mut [(String, String)]) {
    for (name, value) in headers {
        *value = redactor.header(name, value).into_owned();
    }
}

/// A text that continues from event to event.
#[derive(Debug, Default)]
pub(super) struct Strand {
    /// The joined text.
    pub(super) text: String,
    parts: Vec<StrandPart>,
}

/// The part of a strand in one event.
#[derive(Debug)]
struct StrandPart {
    frame: usize,
    /// `None`: the event's data, which are not JSON.
    leaf: Option<NodeId>,
    range: Range<usize>,
}

impl Strand {
    fn add(&mut self, frame: usize, leaf: Option<NodeId>, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.parts.push(StrandPart {
            frame,
            leaf,
            range: start..self.text.len(),
        });
    }

    /// Whether all parts are equal, as ids are: then it is not a continued text.
    fn repeats(&self) -> bool {
        let mut texts = self.parts.iter().map(|part| &self.text[part.range.clone()]);
        let first = texts.next();
        texts.all(|text| Some(text) == first)
    }
}

/// The frames of a stream that is stored in pieces.
pub(super) fn frames(framing: Framing, pieces: &[Piece]) -> Vec<Frame> {
    let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
    let bytes = pieces.iter().map(|piece| &piece.data.0);
    let mut frames: Vec<Frame> = bytes.flat_map(|bytes| splitter.push(bytes)).collect();
    frames.extend(splitter.finish());
    frames
}

/// The joined texts of a stream, without those in a single event.
pub(super) fn strands(frames: &[Frame]) -> Vec<Strand> {
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
        if let Ok(document) = Document::parse(&data) {
            leaves(document.root(), DefaultHasher::new(), &mut |place, leaf| {
                let text = leaf.as_str().unwrap_or_default();
                add(place, Some(leaf.id()), &text);
            });
        } else if let Ok(text) = std::str::from_utf8(&data) {
            add(0, None, text);
        }
    }
    let all = strands.into_values();
    let mut strands: Vec<_> = all.filter(|strand| !strand.repeats()).collect();
    strands.sort_by_key(|strand| strand.parts.first().map(|part| (part.frame, part.leaf)));
    strands
}

/// Passes every text of a document to `see`, with a number for its place. Texts of two events have the same
/// number if their pointers and the `index` and `type` members beside them are equal; these distinguish the
/// deltas of a model.
fn leaves<'d>(value: Value<'d>, mut place: DefaultHasher, see: &mut impl FnMut(u64, Value<'d>)) {
    let differs = |member: &Value<'_>| {
        let key = member.key().unwrap_or_default();
        match member.kind() {
            JsonKind::Number => key == "index" || key.ends_with("_index"),
            JsonKind::String => key == "type",
            JsonKind::Object
            | JsonKind::Array
            | JsonKind::True
            | JsonKind::False
            | JsonKind::Null => false,
        }
    };
    match value.kind() {
        JsonKind::String => see(place.finish(), value),
        JsonKind::Object => {
            for member in value.members().filter(differs) {
                (member.key(), member.raw()).hash(&mut place);
            }
            for member in value.members() {
                let mut place = place.clone();
                member.key().hash(&mut place);
                leaves(member, place, see);
            }
        }
        JsonKind::Array => {
            for (number, item) in value.items().enumerate() {
                let mut place = place.clone();
                number.hash(&mut place);
                leaves(item, place, see);
            }
        }
        JsonKind::Number | JsonKind::True | JsonKind::False | JsonKind::Null => {}
    }
}

/// Removes secrets from a stream that are spread over several events.
fn stream(redactor: &Redactor, framing: Framing, pieces: &mut [Piece]) {
    let frames = frames(framing, pieces);
    let mut changes: BTreeMap<usize, Vec<(Option<NodeId>, String)>> = BTreeMap::new();
    for strand in strands(&frames) {
        let secrets = redactor.find(&strand.text);
        for part in strand.parts.iter().filter(|_| !secrets.is_empty()) {
            if let Some(text) = without(&strand, part, &secrets) {
                changes
                    .entry(part.frame)
                    .or_default()
                    .push((part.leaf, text));
            }
        }
    }
    if changes.is_empty() {
        return;
    }
    let mut events: Vec<Vec<u8>> = Vec::new();
    for (number, frame) in frames.iter().enumerate() {
        let bytes = match changes.get(&number) {
            Some(changes) => with(frame, changes),
            None => frame.bytes().to_vec(),
        };
        match events.last_mut() {
            Some(last) if frame.kind() == FrameKind::Filler => last.extend(bytes),
            _ => events.push(bytes),
        }
    }
    // Other numbers mean that the pieces were not split by this framing.
    if events.len() == pieces.len() {
        for (piece, bytes) in pieces.iter_mut().zip(events) {
            piece.data = Data(bytes.into());
        }
    }
}

/// A part without secrets; each one is replaced in the part where it begins. `None` if it has none.
fn without(strand: &Strand, part: &StrandPart, secrets: &[Secret]) -> Option<String> {
    let Range { start, end } = part.range;
    let from = secrets.partition_point(|secret| secret.range.end <= start);
    let inside = secrets[from..]
        .iter()
        .take_while(|secret| secret.range.start < end);
    let mut text = String::new();
    let mut copied = start;
    for secret in inside {
        let begins = secret.range.start;
        text.push_str(&strand.text[copied..begins.max(start)]);
        if begins >= start {
            text.push_str(&secret.replacement(&strand.text));
        }
        copied = secret.range.end.min(end);
    }
    text.push_str(&strand.text[copied..end]);
    (copied > start).then_some(text)
}

/// A frame with changed texts.
fn with(frame: &Frame, changes: &[(Option<NodeId>, String)]) -> Vec<u8> {
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
        stream(&Redactor::default(), framing, &mut pieces);
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
        // Two interleaved texts; each continues separately.
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
