use proptest::prelude::*;

use super::*;

const FRAMINGS: [Framing; 5] = [
    Framing::Sse,
    Framing::Lines,
    Framing::Array,
    Framing::AwsEvents,
    Framing::AwsChunks,
];

/// Splits `stream` in chunks that end at the given places.
fn split(framing: Framing, stream: &[u8], ends: &[usize], limit: usize) -> Vec<Frame> {
    let mut splitter = Splitter::new(framing, limit);
    let mut frames = Vec::new();
    let mut start = 0;
    for &end in ends.iter().chain([&stream.len()]) {
        let end = end.clamp(start, stream.len());
        frames.extend(splitter.push(&stream[start..end]));
        start = end;
    }
    frames.extend(splitter.finish());
    frames
}

fn joined(frames: &[Frame]) -> Vec<u8> {
    let bytes = frames.iter().map(|frame| &frame.bytes()[..]);
    bytes.collect::<Vec<_>>().concat()
}

/// Name and data of every event.
fn events(frames: &[Frame]) -> Vec<(Option<String>, String)> {
    let event = |frame: &Frame| {
        let data = frame.data()?;
        let name = frame.name().map(str::to_owned);
        Some((name, String::from_utf8_lossy(&data).into_owned()))
    };
    frames.iter().filter_map(event).collect()
}

fn data(frames: &[Frame]) -> Vec<String> {
    let events = events(frames).into_iter();
    events.map(|(_, data)| data).collect()
}

/// Synthetic events, as the framing lays them out.
fn made(framing: Framing, events: &[SyntheticEvent]) -> Vec<u8> {
    let mut joiner = Joiner::new(framing);
    let frames = events.iter().map(|event| framing.first_frame(event));
    let mut stream: Vec<u8> = frames.flat_map(|frame| joiner.join(frame)).collect();
    stream.extend(joiner.close());
    stream
}

#[test]
#[rustfmt::skip]
fn events_are_read_in_every_chunking() {
    for (framing, stream, expected) in [
        (Framing::Sse, "data: a\n\ndata: b\n\n", &["a", "b"][..]),
        (Framing::Sse, "data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        (Framing::Sse, "data: a\r\rdata: b\r\r", &["a", "b"]),
        (Framing::Sse, "data: a\r\n\ndata: b\n\r\n", &["a", "b"]),
        (Framing::Sse, "data:a\n\n", &["a"]),
        (Framing::Sse, "data:  a\n\n", &[" a"]),
        (Framing::Sse, "data: one\ndata: two\n\n", &["one\ntwo"]),
        (Framing::Sse, "data\n\n", &[""]),
        (Framing::Sse, ": comment\n\ndata: a\n\n", &["a"]),
        (Framing::Sse, "\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]),
        (Framing::Sse, "event: x\nid: 1\nretry: 5\ndata: a\n\n", &["a"]),
        (Framing::Sse, "data: a\n\ndata: b", &["a", "b"]),
        (Framing::Sse, "data: a\n\ndata: b\n", &["a", "b"]),
        (Framing::Sse, "\n\n\ndata: a\n\n", &["a"]),
        (Framing::Lines, "{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}", "{\"b\":2}"]),
        (Framing::Lines, "\r\n {\"a\":1} \r\n\n{\"b\":2}", &["{\"a\":1}", "{\"b\":2}"]),
        (Framing::Lines, "\n\n", &[]),
        (Framing::Array, "[{\"a\":1}\n,\r\n{\"b\":[{}]}\n]\n", &["{\"a\":1}", "{\"b\":[{}]}"]),
        (Framing::Array, "[[1], {\"a\":\"]}\\\"{\"}]", &["[1]", "{\"a\":\"]}\\\"{\"}"]),
        (Framing::Array, "[]", &[]),
        (Framing::Array, "[1, \"x\", {}]", &["{}"]),
        (Framing::Array, "{\"error\":{\"code\":429}}\n", &["{\"error\":{\"code\":429}}"]),
        (Framing::Array, "<a href=\"{x\">\n", &[]),
        (Framing::Array, "[{\"a\":1},{\"b\":", &["{\"a\":1}"]),
        (Framing::Array, "]}[{}]", &["{}"]),
        (Framing::AwsEvents, "HTTP was expected here, or so", &[]),
        (Framing::AwsEvents, "short", &[]),
    ] {
        let bytes = stream.as_bytes();
        let one_by_one: Vec<usize> = (0..bytes.len()).collect();
        for ends in [&[][..], &one_by_one] {
            let frames = split(framing, bytes, ends, DEFAULT_LIMIT);
            assert_eq!(joined(&frames), bytes, "{stream:?}");
            let chunks = ends.len() + 1;
            assert_eq!(data(&frames), expected, "{stream:?} in {chunks} chunks");
        }
    }
}

#[test]
fn an_event_is_returned_with_its_last_byte() {
    let stream = |framing| made(framing, &[SyntheticEvent::data("{\"a\":1}")]);
    for (framing, stream, behind) in [
        (Framing::Sse, b"data: a\n\n".to_vec(), 0),
        (Framing::Sse, b"data: a\r\n\r\n".to_vec(), 0),
        (Framing::Sse, b"data: a\r\r".to_vec(), 0),
        // The CR of the empty line ends the event, its LF follows alone.
        (Framing::Sse, b"data: a\n\r\n".to_vec(), 1),
        (Framing::Lines, stream(Framing::Lines), 0),
        // The list's end.
        (Framing::Array, stream(Framing::Array), 3),
        (Framing::AwsEvents, stream(Framing::AwsEvents), 0),
        (Framing::AwsChunks, stream(Framing::AwsChunks), 0),
    ] {
        let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
        let last = stream.len() - 1 - behind;
        for byte in &stream[..last] {
            assert!(splitter.push(&[*byte]).is_empty(), "{framing:?}");
        }
        assert_eq!(splitter.push(&stream[last..=last]).len(), 1, "{framing:?}");
    }
}

#[test]
fn an_event_over_the_limit_passes_in_pieces_and_the_next_is_read() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(600));
    for framing in FRAMINGS {
        let event = |data: &str| SyntheticEvent::event("chunk", data.to_owned());
        let stream = made(framing, &[event(&long), event("{}")]);
        for size in [10, usize::MAX] {
            let mut splitter = Splitter::new(framing, 300);
            let mut frames = Vec::new();
            for chunk in stream.chunks(size) {
                frames.extend(splitter.push(chunk));
                assert!(splitter.pending.len() <= 300, "{framing:?}");
            }
            frames.extend(splitter.finish());
            assert_eq!(joined(&frames), stream, "{framing:?}");
            assert_eq!(frames[0].kind(), FrameKind::Oversize, "{framing:?}");
            assert_eq!(data(&frames), ["{}"], "{framing:?}");
        }
    }
}

#[test]
#[rustfmt::skip]
fn other_data_and_names_leave_the_other_lines_of_an_event() {
    for (event, name, data, expected) in [
        ("data: a\n\n", None, "b", "data: b\n\n"),
        ("data:a\r\n\r\n", None, "b", "data:b\r\n\r\n"),
        ("data\n\n", None, "b", "data: b\n\n"),
        (": c\nevent: e\ndata: a\nid: 1\n\n", None, "b", ": c\nevent: e\ndata: b\nid: 1\n\n"),
        ("data: a\nid: 1\ndata: b\n\n", None, "c", "data: c\nid: 1\n\n"),
        ("data: a\r\ndata: b\r\n\r\n", None, "c\nd", "data: c\r\ndata: d\r\n\r\n"),
        (": nothing\n\n", Some("e"), "b", ": nothing\n\n"),
        ("data: a", None, "b\nc", "data: b\ndata: c"),
        ("event: x\ndata: a\n\n", Some("e"), "b", "event: e\ndata: b\n\n"),
        ("event:x\r\ndata:a\r\n\r\n", Some("e"), "b", "event: e\r\ndata:b\r\n\r\n"),
        ("data: a\r\n\r\n", Some("e"), "b", "event: e\r\ndata: b\r\n\r\n"),
        ("\u{feff}data: a\n\n", Some("e"), "b", "\u{feff}event: e\ndata: b\n\n"),
    ] {
        let frames = split(Framing::Sse, event.as_bytes(), &[], DEFAULT_LIMIT);
        let edited = frames[0].with(name, data.as_bytes());
        assert_eq!(String::from_utf8_lossy(&edited), expected, "{event:?}");
    }
}

#[test]
fn a_message_has_the_bytes_that_amazons_own_encoder_writes() {
    // From the test vectors of the event stream encoding: an empty message, and one with a
    // payload.
    let empty = [
        0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff,
    ];
    assert_eq!(aws::framed(&[], &[]), &empty[..]);
    let frames = split(Framing::AwsEvents, &empty, &[], DEFAULT_LIMIT);
    assert_eq!(frames[0].kind(), FrameKind::Event);
    assert_eq!(frames[0].data(), None);
    let payload = [
        0, 0, 0, 0x1d, 0, 0, 0, 0, 0xfd, 0x52, 0x8c, 0x5a, 0x7b, 0x27, 0x66, 0x6f, 0x6f, 0x27,
        0x3a, 0x27, 0x62, 0x61, 0x72, 0x27, 0x7d, 0xc3, 0x65, 0x39, 0x36,
    ];
    let frames = split(Framing::AwsEvents, &payload, &[], DEFAULT_LIMIT);
    assert_eq!(frames[0].data().as_deref(), Some(&b"{'foo':'bar'}"[..]));
    assert_eq!(frames[0].with(None, b"{'foo':'bar'}"), &payload[..]);
}

#[test]
fn a_message_with_a_wrong_checksum_is_not_read() {
    let mut stream = made(
        Framing::AwsEvents,
        &[SyntheticEvent::event("messageStop", "{}")],
    );
    let last = stream.len() - 1;
    stream[last] ^= 1;
    let frames = split(Framing::AwsEvents, &stream, &[], DEFAULT_LIMIT);
    assert_eq!(joined(&frames), stream);
    assert_eq!(events(&frames), []);
}

#[test]
fn headers_of_every_type_are_kept() {
    let mut headers = vec![1, b'a', 0, 1, b'b', 1, 1, b'c', 2, 9, 1, b'd', 3, 1, 2];
    headers.extend([1, b'e', 4, 1, 2, 3, 4, 1, b'f', 5, 1, 2, 3, 4, 5, 6, 7, 8]);
    headers.extend([1, b'g', 6, 0, 2, 1, 2, 1, b'h', 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    headers.extend([1, b'i', 9]);
    headers.extend([7; 16]);
    headers.extend(*b"\x0b:event-type\x07\0\x01x");
    let stream = aws::framed(&headers, b"{}");
    let frames = split(Framing::AwsEvents, &stream, &[], DEFAULT_LIMIT);
    assert_eq!(frames[0].name(), Some("x"));
    assert_eq!(frames[0].with(None, b"{}"), stream);
    let renamed = frames[0].with(Some("longer"), b"[]");
    let again = split(Framing::AwsEvents, &renamed, &[], DEFAULT_LIMIT);
    assert_eq!(events(&again), [(Some("longer".into()), "[]".into())]);
    assert_eq!(again[0].with(Some("x"), b"{}"), stream);
}

#[test]
fn what_surrounds_a_wrapped_event_stays() {
    let headers = b"\x0b:event-type\x07\0\x05chunk";
    let stream = aws::framed(headers, br#"{"p":"abc","bytes":"e30="}"#);
    let frames = split(Framing::AwsChunks, &stream, &[], DEFAULT_LIMIT);
    assert_eq!(events(&frames), [(None, "{}".into())]);
    let other = frames[0].with(Some("a name of the event inside"), b"[]");
    let expected = aws::framed(headers, br#"{"p":"abc","bytes":"W10="}"#);
    assert_eq!(other, expected);
}

#[test]
fn what_is_left_of_a_list_is_a_list() {
    let stream = b"[{\"a\":1}\n,\r\n{\"b\":2}\n,\r\n{\"c\":3}\n]\n";
    let frames = split(Framing::Array, stream, &[], DEFAULT_LIMIT);
    let (first, second) = (&frames[0], &frames[1]);
    let made = |frame: &Frame| frame.following(&SyntheticEvent::data("{\"x\":0}"));
    for (kept, expected) in [
        (vec![], "[]\n"),
        (vec![first.bytes().clone()], "[{\"a\":1}\n]\n"),
        (vec![second.bytes().clone()], "[{\"b\":2}\n]\n"),
        (
            vec![first.bytes().clone(), first.bytes().clone()],
            "[{\"a\":1}\n,\r\n{\"a\":1}\n]\n",
        ),
        (vec![made(first)], "[{\"x\":0}\n]\n"),
        (
            vec![first.bytes().clone(), made(first), made(second)],
            "[{\"a\":1}\n,\r\n{\"x\":0}\n,\r\n{\"x\":0}\n]\n",
        ),
        (
            vec![Framing::Array.first_frame(&SyntheticEvent::data("{}"))],
            "[{}\n]\n",
        ),
        (vec![Bytes::from_static(b"{\"error\":1}")], "{\"error\":1}"),
        (
            frames.iter().map(|frame| frame.bytes().clone()).collect(),
            "[{\"a\":1}\n,\r\n{\"b\":2}\n,\r\n{\"c\":3}\n]\n",
        ),
    ] {
        let mut joiner = Joiner::new(Framing::Array);
        let mut left: Vec<u8> = kept
            .into_iter()
            .flat_map(|frame| joiner.join(frame))
            .collect();
        left.extend(joiner.close());
        assert_eq!(String::from_utf8_lossy(&left), expected);
    }
}

#[test]
fn synthetic_events_are_read_back_in_every_framing() {
    for framing in FRAMINGS {
        let synthetic = [
            SyntheticEvent::event("one", "{\"a\":1}"),
            SyntheticEvent::exception("twoException", "{}"),
        ];
        let stream = made(framing, &synthetic);
        let name = |name: &str| match framing {
            Framing::Sse | Framing::AwsEvents => Some(name.to_owned()),
            Framing::AwsChunks if name == "twoException" => Some(name.to_owned()),
            Framing::Lines | Framing::Array | Framing::AwsChunks => None,
        };
        let frames = split(framing, &stream, &[], DEFAULT_LIMIT);
        let expected = [
            (name("one"), "{\"a\":1}".to_owned()),
            (name("twoException"), "{}".to_owned()),
        ];
        assert_eq!(events(&frames), expected, "{framing:?}");
        let again = frames[0].following(&synthetic[1]);
        let again = split(framing, &again, &[], DEFAULT_LIMIT);
        if framing != Framing::Array {
            assert_eq!(events(&again), expected[1..], "{framing:?}");
        }
    }
}

/// Streams of the tokens that a splitter distinguishes.
fn any_stream() -> impl Strategy<Value = (Framing, Vec<u8>)> {
    let text = prop_oneof![
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just("data: "),
        Just("data:x"),
        Just(": comment"),
        Just("event: e"),
        Just("\u{feff}"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just("\""),
        Just("\\"),
        Just("{\"a\":1}"),
        Just("é"),
    ];
    let text = proptest::collection::vec(text, 0..60).prop_map(|p| p.concat().into_bytes());
    let event = ("[a-z]{1,8}", "\\{\"[a-z\n]{0,20}\":1\\}", any::<bool>()).prop_map(
        |(name, data, exception)| SyntheticEvent {
            name: Some(name.into()),
            data: data.into_bytes(),
            exception,
        },
    );
    let events = proptest::collection::vec(event, 0..5);
    let framing = prop::sample::select(&FRAMINGS[..]);
    let framing_again = framing.clone();
    prop_oneof![
        3 => (framing.clone(), text),
        4 => (framing_again, events).prop_map(|(framing, events)| (framing, made(framing, &events))),
        1 => (framing, proptest::collection::vec(any::<u8>(), 0..120)),
    ]
}

proptest! {
    #[test]
    fn no_chunking_loses_a_byte_or_changes_an_event(
        (framing, stream) in any_stream(),
        mut ends in proptest::collection::vec(0_usize..400, 0..20),
        limit in prop_oneof![Just(8_usize), Just(24), Just(DEFAULT_LIMIT)],
    ) {
        ends.sort_unstable();
        let frames = split(framing, &stream, &ends, limit);
        prop_assert_eq!(joined(&frames), stream.clone());
        if limit == DEFAULT_LIMIT {
            prop_assert_eq!(events(&frames), events(&split(framing, &stream, &[], limit)));
        }
    }

    #[test]
    fn data_that_is_put_in_is_read_back((framing, stream) in any_stream(), text in "\\{\"[a-z]{0,9}\":1\\}") {
        for frame in split(framing, &stream, &[], DEFAULT_LIMIT) {
            let Some(data) = frame.data() else {
                prop_assert_eq!(&frame.with(None, text.as_bytes()), frame.bytes());
                continue;
            };
            let same = frame.with(None, &data);
            prop_assert!(matches!(framing, Framing::AwsChunks | Framing::Sse) || same == frame.bytes());
            // The items of a list need their list, and a mark is one only at the beginning.
            if framing == Framing::Array || frame.bytes().starts_with("\u{feff}".as_bytes()) {
                continue;
            }
            let again = split(framing, &frame.with(None, text.as_bytes()), &[], DEFAULT_LIMIT);
            let name = frame.name().map(str::to_owned);
            prop_assert_eq!(events(&again)[0].clone(), (name, text.clone()));
        }
    }

    #[test]
    fn a_stream_that_is_left_whole_is_joined_to_itself((framing, stream) in any_stream()) {
        prop_assume!(framing != Framing::Array);
        let mut joiner = Joiner::new(framing);
        let frames = split(framing, &stream, &[], DEFAULT_LIMIT);
        let left: Vec<u8> = frames.into_iter().flat_map(|f| joiner.join(f.into_bytes())).collect();
        prop_assert_eq!(left, stream);
    }
}
