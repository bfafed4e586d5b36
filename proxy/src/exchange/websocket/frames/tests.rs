//! The cases of the Autobahn test suite, in its order, and properties of all directions.

use std::fmt::Debug;

use flate2::{Compress, Compression, FlushCompress};
use proptest::prelude::*;

use super::*;

const FINAL: u8 = 0x80;
const RSV1: u8 = 0x40;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A limit that no message of the table reaches.
const LIMIT: usize = 100_000;

const SENDERS: [Sender; 2] = [Sender::Agent, Sender::Upstream];

/// What was read.
#[derive(Debug, Clone, PartialEq)]
enum Unit {
    Text(Bytes),
    Unread,
    Control,
    Close,
}
use Unit::{Close, Unread};

/// What is read, or the Close code of a violation.
type Expected = Result<Vec<Unit>, u16>;

/// A frame: its first byte and its payload.
type Plain = (u8, Vec<u8>);

fn frame(first: u8, payload: impl AsRef<[u8]>) -> Plain {
    (first, payload.as_ref().to_vec())
}

fn text(payload: impl AsRef<[u8]>) -> Plain {
    frame(TEXT | FINAL, payload)
}

fn read(text: &str) -> Unit {
    Unit::Text(Bytes::copy_from_slice(text.as_bytes()))
}

fn mask(from: Sender) -> Option<[u8; 4]> {
    (from == Sender::Agent).then_some([0x37, 0xfa, 0x21, 0x3d])
}

/// A frame on the wire, written without tungstenite.
fn wire((first, payload): &Plain, mask: Option<[u8; 4]>) -> Vec<u8> {
    let masked = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![*first];
    match u16::try_from(payload.len()) {
        Ok(short @ 0..=125) => bytes.push(masked | short.to_be_bytes()[1]),
        Ok(long) => {
            bytes.push(masked | 0x7e);
            bytes.extend(long.to_be_bytes());
        }
        Err(_) => {
            bytes.push(masked | 0x7f);
            bytes.extend((payload.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(mask.iter().flatten());
    let mask = mask.unwrap_or_default();
    bytes.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    bytes
}

fn all(frames: &[Plain], mask: Option<[u8; 4]>) -> Vec<u8> {
    frames.iter().flat_map(|frame| wire(frame, mask)).collect()
}

/// What a reader returned, and the bytes of data and of control frames.
#[derive(Debug, Default, PartialEq)]
struct Reading {
    units: Vec<Unit>,
    data: Vec<u8>,
    control: Vec<u8>,
    violation: Option<Violation>,
}

impl Reading {
    /// The pieces of a message that passes unread depend on the chunks: they are one.
    fn result(mut self) -> Expected {
        self.units
            .dedup_by(|next, before| *next == Unread && *before == Unread);
        match self.violation {
            Some(violation) => Err(violation.code()),
            None => Ok(self.units),
        }
    }

    fn texts(&self) -> Vec<&Bytes> {
        let texts = self.units.iter().filter_map(|unit| match unit {
            Unit::Text(text) => Some(text),
            _ => None,
        });
        texts.collect()
    }
}

/// Reads chunks; no more than the limit, a chunk and an incomplete control frame is ever held.
fn read_chunks<'c>(reader: &mut MessageReader, chunks: impl Iterator<Item = &'c [u8]>) -> Reading {
    let mut reading = Reading::default();
    for chunk in chunks {
        reader.push(chunk);
        loop {
            let message = match reader.next() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(violation) => {
                    reading.violation = Some(violation);
                    return reading;
                }
            };
            let (unit, stream) = match &message {
                SocketMessage::Text { text, .. } => (Unit::Text(text.clone()), &mut reading.data),
                SocketMessage::Unread { .. } => (Unread, &mut reading.data),
                SocketMessage::Control { .. } => (Unit::Control, &mut reading.control),
                SocketMessage::Close { .. } => (Close, &mut reading.control),
            };
            stream.extend_from_slice(&message.into_frames());
            reading.units.push(unit);
        }
        let open = reader.open.as_ref().and_then(|open| open.frames.as_ref());
        let held = reader.bytes.len() + open.map_or(0, BytesMut::len);
        assert!(held <= reader.limit + 130, "{held} bytes are held");
    }
    reading
}

/// Both senders, and chunks of every byte and of all.
fn assert_reads(frames: &[Plain], inflate: Option<bool>, expected: &Expected, case: impl Debug) {
    for from in SENDERS {
        let bytes = all(frames, mask(from));
        for size in [1, bytes.len().max(1)] {
            let mut reader = MessageReader::new(from, LIMIT, inflate.map(MessageInflater::new));
            let reading = read_chunks(&mut reader, bytes.chunks(size));
            if reading.violation.is_none() {
                let length = reading.data.len() + reading.control.len();
                assert_eq!(length, bytes.len(), "{case:?} of {from:?}");
            }
            assert_eq!(&reading.result(), expected, "{case:?} of {from:?}");
        }
    }
}

/// A message of fragments.
fn fragments(first: u8, payloads: &[&[u8]]) -> Vec<Plain> {
    let last = payloads.len() - 1;
    let frames = payloads.iter().enumerate().map(|(index, payload)| {
        let begin = if index == 0 { first } else { CONTINUATION };
        let end = if index == last { FINAL } else { 0 };
        frame(begin | end, payload)
    });
    frames.collect()
}

fn close(code: u16, reason: &[u8]) -> Vec<Plain> {
    vec![frame(CLOSE, [&code.to_be_bytes(), reason].concat())]
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_cases_of_autobahn_are_read_or_refused() {
    const PROTOCOL: Expected = Err(1002);
    const NOT_UTF8: Expected = Err(1007);
    let control = || Ok(vec![Unit::Control]);
    let one = |text: &str| Ok(vec![read(text)]);
    let mut cases: Vec<(String, Vec<Plain>, Expected)> = Vec::new();
    let mut case = |name: &str, frames: Vec<Plain>, expected| {
        cases.push((name.to_owned(), frames, expected));
    };

    // 1: framing.
    for length in [0, 125, 126, 127, 128, 65_535, 65_536] {
        let payload = "*".repeat(length);
        case("1.1", vec![text(&payload)], one(&payload));
        case(
            "1.2",
            vec![frame(BINARY | FINAL, payload)],
            Ok(vec![Unread]),
        );
    }

    // 2: pings and pongs.
    case("2.1", vec![frame(PING, "")], control());
    case("2.2", vec![frame(PING, "Hello")], control());
    case("2.3", vec![frame(PING, b"\x00\xff\xfe\xfd")], control());
    case("2.4", vec![frame(PING, [0xfe; 125])], control());
    case("2.5", vec![frame(PING, [0xfe; 126])], PROTOCOL);
    case("2.7", vec![frame(PONG, "")], control());
    case("2.8", vec![frame(PONG, "unsolicited")], control());
    let pings = vec![frame(PING, "payload"); 10];
    case("2.10", pings, Ok(vec![Unit::Control; 10]));

    // 3: reserved bits.
    for (name, bits) in [("3.1", 0x40), ("3.2", 0x20), ("3.3", 0x10), ("3.4", 0x70)] {
        for first in [TEXT | FINAL, BINARY | FINAL, CLOSE, PING, PONG] {
            case(name, vec![frame(first | bits, "")], PROTOCOL);
        }
        case(name, vec![text("before"), frame(PING | bits, "")], PROTOCOL);
    }

    // 4: reserved opcodes.
    for opcode in (3..=7).chain(11..=15) {
        case("4.1", vec![frame(opcode | FINAL, "")], PROTOCOL);
        case(
            "4.2",
            vec![text("before"), frame(opcode | FINAL, "x")],
            PROTOCOL,
        );
    }

    // 5: fragments.
    case(
        "5.1",
        vec![frame(PING & !FINAL, "a"), frame(CONTINUATION | FINAL, "b")],
        PROTOCOL,
    );
    case(
        "5.2",
        vec![frame(PONG & !FINAL, "a"), frame(CONTINUATION | FINAL, "b")],
        PROTOCOL,
    );
    case("5.3", fragments(TEXT, &[b"a", b"b"]), one("ab"));
    let mut around = fragments(TEXT, &[b"a", b"b", b"c"]);
    around.insert(2, frame(PING, "2"));
    around.insert(1, frame(PING, "1"));
    case(
        "5.6",
        around,
        Ok(vec![Unit::Control, Unit::Control, read("abc")]),
    );
    case(
        "5.9",
        vec![frame(CONTINUATION | FINAL, "a"), text("b")],
        PROTOCOL,
    );
    case(
        "5.10",
        vec![text("a"), frame(CONTINUATION | FINAL, "b")],
        PROTOCOL,
    );
    case("5.12", vec![frame(CONTINUATION, "a"), text("b")], PROTOCOL);
    case(
        "5.15",
        [
            fragments(TEXT, &[b"a", b"b"]),
            vec![frame(CONTINUATION, "c")],
        ]
        .concat(),
        PROTOCOL,
    );
    case("5.18", vec![frame(TEXT, "a"), text("b")], PROTOCOL);
    case(
        "5.18",
        vec![frame(BINARY, "a"), frame(BINARY, "b")],
        PROTOCOL,
    );
    case(
        "5.19",
        fragments(TEXT, &[b"", b"a", b"", b"b", b""]),
        one("ab"),
    );
    case("5.20", fragments(BINARY, &[b"a", b"b"]), Ok(vec![Unread]));

    // 6: UTF-8.
    let greek = "κόσμε";
    case("6.1", fragments(TEXT, &[b"", b"", b""]), one(""));
    case(
        "6.2",
        vec![text("Hello-µ@ßöäüàá-UTF-8!!")],
        one("Hello-µ@ßöäüàá-UTF-8!!"),
    );
    let bytes: Vec<&[u8]> = greek.as_bytes().chunks(1).collect();
    case("6.2", fragments(TEXT, &bytes), one(greek));
    case("6.3", vec![text(b"\xce\xba\xed\xa0\x80edited")], NOT_UTF8);
    case(
        "6.4",
        fragments(TEXT, &[greek.as_bytes(), b"\xf4\x90\x80\x80", b"edited"]),
        NOT_UTF8,
    );
    for valid in [
        "\0", "\u{7f}", "\u{80}", "\u{7ff}", "\u{800}", "\u{d7ff}", "\u{e000}", "\u{fffd}",
    ] {
        case("6.5", vec![text(valid)], one(valid));
    }
    for valid in ["\u{ffff}", "\u{10000}", "\u{10ffff}", "\u{fdd0}"] {
        case("6.22", vec![text(valid)], one(valid));
    }
    let invalid: [&[u8]; 8] = [
        b"\xce",
        b"\x80",
        b"\xbf\x80",
        b"\xc0\xaf",
        b"\xed\xbf\xbf",
        b"\xf8\x88\x80\x80\x80",
        b"\xfe",
        b"\xff",
    ];
    for payload in invalid {
        case("6.6", vec![text(payload)], NOT_UTF8);
    }
    case(
        "6.x",
        vec![frame(BINARY | FINAL, b"\xff")],
        Ok(vec![Unread]),
    );

    // 7: Close.
    case(
        "7.1",
        vec![text("a"), frame(CLOSE, "")],
        Ok(vec![read("a"), Close]),
    );
    case(
        "7.1.5",
        vec![frame(TEXT, "a"), frame(CLOSE, ""), frame(FINAL, "b")],
        Ok(vec![Close, read("ab")]),
    );
    case("7.3.1", vec![frame(CLOSE, "")], Ok(vec![Close]));
    case("7.3.2", vec![frame(CLOSE, "a")], PROTOCOL);
    case("7.3.3", close(1000, b""), Ok(vec![Close]));
    case("7.3.4", close(1000, b"Hello"), Ok(vec![Close]));
    case("7.3.5", close(1000, &[b'*'; 123]), Ok(vec![Close]));
    case("7.3.6", close(1000, &[b'*'; 124]), PROTOCOL);
    case("7.5", close(1000, b"\xce\xba\xed\xa0\x80"), NOT_UTF8);
    for code in (1000..=1003)
        .chain(1007..=1014)
        .chain([3000, 3999, 4000, 4999])
    {
        case("7.7", close(code, b""), Ok(vec![Close]));
    }
    for code in [
        0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535,
    ] {
        case("7.9", close(code, b"reason"), PROTOCOL);
    }

    for (name, frames, expected) in cases {
        let first = &frames[0];
        assert_reads(&frames, None, &expected, (&name, first.0, first.1.len()));
        for from in SENDERS {
            let wrong = mask(if from == Sender::Agent {
                Sender::Upstream
            } else {
                Sender::Agent
            });
            let bytes = all(&frames, wrong);
            let mut reader = MessageReader::new(from, LIMIT, None);
            let result = read_chunks(&mut reader, [&bytes[..]].into_iter()).result();
            assert_eq!(result, PROTOCOL, "{name} with {from:?}'s wrong mask");
        }
    }
}

#[test]
fn a_length_of_64_bits_is_refused() {
    for (length, expected) in [(1 << 63, Err(1002)), ((1 << 63) - 1, Ok(vec![Unread]))] {
        let mut bytes = vec![BINARY | FINAL, 127];
        bytes.extend_from_slice(&u64::to_be_bytes(length));
        let mut reader = MessageReader::new(Sender::Upstream, LIMIT, None);
        let reading = read_chunks(&mut reader, [&bytes[..], b"some"].into_iter());
        assert_eq!(reading.result(), expected);
    }
}

/// 9 of Autobahn: whatever is longer than the limit passes as it arrives, what follows is read.
#[test]
fn long_messages_pass_unread() {
    for from in SENDERS {
        let limit = 1000;
        let head = wire(&text([b'*'; 500]), mask(from)).len() - 500;
        for (length, expected) in [(limit - head, true), (limit - head + 1, false)] {
            let payload = "*".repeat(length);
            let split = fragments(
                TEXT,
                &[
                    &payload.as_bytes()[..400],
                    &payload.as_bytes()[400 + head..],
                ],
            );
            for message in [vec![text(&payload)], split] {
                let unit = if expected {
                    let payload: Vec<u8> =
                        message.iter().flat_map(|frame| frame.1.clone()).collect();
                    Unit::Text(payload.into())
                } else {
                    Unread
                };
                let bytes = all(&[&message[..], &[text("next")]].concat(), mask(from));
                for size in [1, 7, 999, 5000] {
                    let mut reader = MessageReader::new(from, limit, None);
                    let reading = read_chunks(&mut reader, bytes.chunks(size));
                    assert_eq!(reading.data, bytes);
                    assert!(reader.is_between_messages());
                    assert_eq!(reading.result(), Ok(vec![unit.clone(), read("next")]));
                }
            }
        }
    }
}

#[test]
fn empty_fragments_are_not_held_without_end() {
    let mut frames = vec![frame(TEXT, "")];
    frames.extend(vec![frame(CONTINUATION, ""); 1000]);
    let bytes = all(&frames, None);
    let mut reader = MessageReader::new(Sender::Upstream, 100, None);
    let reading = read_chunks(&mut reader, bytes.chunks(64));
    assert_eq!(reading.data, bytes);
}

#[test]
fn pings_between_the_frames_of_a_long_message_keep_their_place() {
    let frames = [
        frame(TEXT, [b'*'; 60]),
        frame(CONTINUATION, [b'*'; 60]),
        frame(PING, "between"),
        frame(CONTINUATION | FINAL, [b'*'; 60]),
    ];
    let bytes = all(&frames, None);
    let mut reader = MessageReader::new(Sender::Upstream, 100, None);
    reader.push(&bytes);
    let mut passed = Vec::new();
    while let Some(message) = reader.next().unwrap() {
        passed.extend_from_slice(&message.into_frames());
    }
    assert_eq!(passed, bytes);
}

/// A sender with `permessage-deflate`.
struct Deflate {
    window: Compress,
    resets: bool,
}

impl Deflate {
    fn new(resets: bool) -> Self {
        Self {
            window: Compress::new(Compression::default(), false),
            resets,
        }
    }

    fn compress(&mut self, data: &[u8]) -> Vec<u8> {
        if self.resets {
            self.window.reset();
        }
        let mut out = Vec::with_capacity(data.len() + 100);
        self.window
            .compress_vec(data, &mut out, FlushCompress::Sync)
            .unwrap();
        assert!(out.len() < out.capacity(), "a Sync flush was cut");
        assert!(out.ends_with(DEFLATE_TAIL));
        out.truncate(out.len() - DEFLATE_TAIL.len());
        out
    }

    fn text(&mut self, text: &str) -> Plain {
        frame(TEXT | FINAL | RSV1, self.compress(text.as_bytes()))
    }
}

/// 12 and 13 of Autobahn.
#[test]
fn compressed_messages_are_read() {
    for resets in [false, true] {
        let mut deflate = Deflate::new(resets);
        let mut frames = Vec::new();
        let mut expected = Vec::new();
        for length in [0, 16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536] {
            let words = r#"{"type":"response.output_text.delta","delta":"so"},"#;
            let message: String = words.chars().cycle().take(length).collect();
            frames.push(deflate.text(&message));
            let compressed = deflate.compress(message.as_bytes());
            let pieces: Vec<&[u8]> = compressed.chunks(compressed.len().div_ceil(3)).collect();
            frames.extend(fragments(TEXT | RSV1, &pieces));
            frames.push(text(&message));
            frames.push(frame(
                BINARY | FINAL | RSV1,
                deflate.compress(message.as_bytes()),
            ));
            expected.extend(vec![read(&message); 3]);
            expected.push(Unread);
        }
        assert_reads(&frames, Some(resets), &Ok(expected), resets);
    }
}

/// The examples of RFC 7692 §7.2.3, and what it forbids.
#[test]
fn the_rfcs_compressed_examples_are_read() {
    let compressed = |payload: &[u8]| frame(TEXT | FINAL | RSV1, payload);
    let hello = b"\xf2\x48\xcd\xc9\xc9\x07\x00";
    let twice = || Ok(vec![read("Hello"), read("Hello")]);
    let mut ping_between = fragments(TEXT | RSV1, &[&hello[..3], &hello[3..]]);
    ping_between.insert(1, frame(PING, "uncompressed"));
    let cases = [
        (vec![compressed(hello), compressed(hello)], twice()),
        (
            vec![compressed(hello), compressed(b"\xf2\x00\x11\x00\x00")],
            twice(),
        ),
        (
            vec![
                compressed(b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"),
                text("Hello"),
            ],
            twice(),
        ),
        (
            vec![compressed(
                b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
            )],
            Ok(vec![read("Hello")]),
        ),
        // A stream that ends, and one that is none: this message and later ones cannot be read.
        (
            vec![
                compressed(b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00"),
                text("a"),
                compressed(hello),
            ],
            Ok(vec![Unread, read("a"), Unread]),
        ),
        (
            vec![
                compressed(b"\xff\xff\xff\xff"),
                text("a"),
                compressed(hello),
            ],
            Ok(vec![Unread, read("a"), Unread]),
        ),
        (ping_between, Ok(vec![Unit::Control, read("Hello")])),
        (
            vec![compressed(&Deflate::new(true).compress(b"\xff"))],
            Err(1007),
        ),
        (
            vec![
                frame(TEXT | RSV1, hello),
                frame(CONTINUATION | FINAL | RSV1, ""),
            ],
            Err(1002),
        ),
        (vec![frame(PING | RSV1, "")], Err(1002)),
        (vec![frame(TEXT | FINAL | RSV1 | 0x20, hello)], Err(1002)),
    ];
    for (index, (frames, expected)) in cases.into_iter().enumerate() {
        assert_reads(&frames, Some(false), &expected, index);
    }
}

#[test]
fn a_compressed_message_beyond_the_limit_leaves_later_ones_unread_unless_each_is_alone() {
    let noise: String = (0u32..4000)
        .map(|n| char::from(b'!' + (n * n % 89) as u8))
        .collect();
    let zeros = "0".repeat(20_000);
    for long in [&noise, &zeros] {
        for resets in [false, true] {
            let mut deflate = Deflate::new(resets);
            let frames = [
                deflate.text("before"),
                deflate.text(long),
                text("uncompressed"),
                deflate.text("κόσμε"),
            ];
            let last = if resets { read("κόσμε") } else { Unread };
            let expected = vec![read("before"), Unread, read("uncompressed"), last];
            let bytes = all(&frames, None);
            for size in [1, 100, bytes.len()] {
                let inflate = Some(MessageInflater::new(resets));
                let mut reader = MessageReader::new(Sender::Upstream, 500, inflate);
                let reading = read_chunks(&mut reader, bytes.chunks(size));
                assert_eq!(reading.data, bytes);
                assert_eq!(reading.result(), Ok(expected.clone()));
            }
        }
    }
}

#[test]
fn frames_of_the_proxy_are_read_as_they_were_meant() {
    for from in SENDERS {
        for length in [0, 125, 126, 65_535, 65_536] {
            let payload = "*".repeat(length);
            let frames = text_frame(payload.clone().into(), mask(from));
            assert_eq!(frames, wire(&text(payload), mask(from)));
        }
        for code in [1002, 1007] {
            let expected = wire(&close(code, b"")[0], mask(from));
            assert_eq!(close_frame(code, "", mask(from)), expected);
        }
    }
}

/// A message: its kind, its text, where it is split, and whether it is compressed.
#[derive(Debug, Clone)]
struct Sent {
    first: u8,
    payload: String,
    splits: Vec<prop::sample::Index>,
    /// Fragments that a ping follows.
    pings: Vec<bool>,
    is_compressed: bool,
}

impl Sent {
    fn frames(&self, deflate: Option<&mut Deflate>) -> Vec<Plain> {
        if self.first & 8 != 0 {
            return vec![frame(
                self.first,
                self.payload.as_bytes().get(..125).unwrap_or_default(),
            )];
        }
        let (first, payload) = match deflate {
            Some(deflate) if self.is_compressed => {
                (self.first | RSV1, deflate.compress(self.payload.as_bytes()))
            }
            _ => (self.first, self.payload.clone().into_bytes()),
        };
        let mut splits: Vec<usize> = self
            .splits
            .iter()
            .map(|split| split.index(payload.len() + 1))
            .collect();
        splits.extend([0, payload.len()]);
        splits.sort_unstable();
        let pieces: Vec<&[u8]> = splits
            .windows(2)
            .map(|ends| &payload[ends[0]..ends[1]])
            .collect();
        let mut frames = Vec::new();
        for (fragment, ping) in fragments(first, &pieces)
            .into_iter()
            .zip(self.pings.iter().cycle())
        {
            let is_final = fragment.0 & FINAL != 0;
            frames.push(fragment);
            if *ping && !is_final {
                frames.push(frame(PING, "between"));
            }
        }
        frames
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let first = prop::sample::select(vec![TEXT, TEXT, TEXT, BINARY, PING, PONG]);
    let payload = prop_oneof![".{0,40}", "[a-c ]{0,400}", "(so ){0,300}"];
    let splits = prop::collection::vec(any::<prop::sample::Index>(), 0..5);
    let pings = prop::collection::vec(any::<bool>(), 1..4);
    (first, payload, splits, pings, any::<bool>()).prop_map(
        |(first, payload, splits, pings, is_compressed)| Sent {
            first,
            payload,
            splits,
            pings,
            is_compressed,
        },
    )
}

/// The bytes in chunks that end where `cuts` say.
fn chunks<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|ends| &bytes[ends[0]..ends[1]])
        .collect()
}

proptest! {
    #[test]
    fn messages_and_bytes_are_the_same_for_every_chunking(
        messages in prop::collection::vec(sent(), 0..8),
        from in prop::sample::select(SENDERS.to_vec()),
        resets in prop::option::of(any::<bool>()),
        limit in prop_oneof![Just(LIMIT), 0usize..300],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut deflate = resets.map(Deflate::new);
        let (mut bytes, mut data, mut control) = (Vec::new(), Vec::new(), Vec::new());
        let mut texts = Vec::new();
        let mut has_window = true;
        for message in &messages {
            let frames = message.frames(deflate.as_mut());
            let before = data.len();
            for frame in &frames {
                let wire = wire(frame, mask(from));
                bytes.extend_from_slice(&wire);
                if frame.0 & 8 == 0 { &mut data } else { &mut control }.extend_from_slice(&wire);
            }
            let is_compressed = frames[0].0 & RSV1 != 0;
            let mut is_read = data.len() - before <= limit;
            if is_compressed {
                is_read &= message.payload.len() <= limit && has_window;
                has_window = is_read || resets == Some(true);
            }
            if is_read && message.first == TEXT {
                texts.push(Bytes::from(message.payload.clone()));
            }
        }
        let mut reader = MessageReader::new(from, limit, resets.map(MessageInflater::new));
        let reading = read_chunks(&mut reader, chunks(&bytes, &cuts).into_iter());
        prop_assert_eq!(reading.violation, None);
        prop_assert!(reader.is_between_messages());
        prop_assert_eq!(reading.texts(), texts.iter().collect::<Vec<_>>());
        prop_assert!(reading.data == data);
        prop_assert!(reading.control == control);
    }

    #[test]
    fn damaged_frames_get_one_verdict_for_every_chunking(
        messages in prop::collection::vec(sent(), 0..4),
        from in prop::sample::select(SENDERS.to_vec()),
        resets in prop::option::of(any::<bool>()),
        limit in 0usize..300,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        junk in prop::collection::vec(any::<u8>(), 0..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut deflate = resets.map(Deflate::new);
        let frames: Vec<Plain> =
            messages.iter().flat_map(|message| message.frames(deflate.as_mut())).collect();
        let mut bytes = all(&frames, mask(from));
        bytes.extend(junk);
        for (at, byte) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let verdict = |chunks: Vec<&[u8]>| {
            let mut reader = MessageReader::new(from, limit, resets.map(MessageInflater::new));
            let reading = read_chunks(&mut reader, chunks.into_iter());
            let texts: Vec<Bytes> = reading.texts().into_iter().cloned().collect();
            (texts, reading.data, reading.control, reading.violation)
        };
        let whole = verdict(vec![&bytes]);
        prop_assert_eq!(&verdict(chunks(&bytes, &cuts)), &whole);
        prop_assert_eq!(&verdict(bytes.chunks(1).collect()), &whole);
    }
}
