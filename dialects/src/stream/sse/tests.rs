use proptest::prelude::*;

use super::*;

fn push(splitter: &mut Splitter, chunk: &[u8]) -> Vec<Frame> {
    splitter.push(Bytes::copy_from_slice(chunk))
}

/// Splits `stream` in chunks that end at the given places.
fn split(stream: &[u8], ends: &[usize], limit: usize) -> Vec<Frame> {
    let mut splitter = Splitter::new(limit);
    let mut frames = Vec::new();
    let mut start = 0;
    for &end in ends.iter().chain([&stream.len()]) {
        let end = end.clamp(start, stream.len());
        frames.extend(push(&mut splitter, &stream[start..end]));
        start = end;
    }
    frames.extend(splitter.finish());
    frames
}

fn joined(frames: &[Frame]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|frame| frame.bytes().to_vec())
        .collect()
}

fn data(frames: &[Frame]) -> Vec<String> {
    let data = frames.iter().filter_map(Frame::data);
    data.map(|data| String::from_utf8_lossy(&data).into_owned())
        .collect()
}

#[test]
fn every_way_to_write_an_event_is_read_and_kept() {
    for (stream, expected) in [
        ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", vec!["a", "b"]),
        ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
        ("data: a\r\n\ndata: b\n\r\n", vec!["a", "b"]),
        ("data:a\n\n", vec!["a"]),
        ("data:  a\n\n", vec![" a"]),
        ("data: one\ndata: two\n\n", vec!["one\ntwo"]),
        ("data\n\n", vec![""]),
        (": comment\n\ndata: a\n\n", vec!["a"]),
        ("\u{feff}data: a\n\n\u{feff}data: b\n\n", vec!["a"]),
        ("event: x\nid: 1\nretry: 5\ndata: a\n\n", vec!["a"]),
        ("data: a\n\ndata: b", vec!["a", "b"]),
        ("data: a\n\ndata: b\n", vec!["a", "b"]),
        ("\n\n\ndata: a\n\n", vec!["a"]),
        ("", vec![]),
    ] {
        let bytes = stream.as_bytes();
        let one_by_one: Vec<usize> = (0..bytes.len()).collect();
        for ends in [&[][..], &one_by_one] {
            let frames = split(bytes, ends, DEFAULT_LIMIT);
            assert_eq!(joined(&frames), bytes, "{stream:?}");
            assert_eq!(
                data(&frames),
                expected,
                "{stream:?} in {} chunks",
                ends.len() + 1
            );
        }
    }
}

#[test]
fn an_event_comes_out_with_its_last_byte() {
    for (stream, line_feeds) in [
        ("data: a\n\n", 0),
        ("data: a\r\n\r\n", 0),
        ("data: a\r\r", 0),
        // The CR of the empty line ends the event, its LF follows alone.
        ("data: a\n\r\n", 1),
    ] {
        let mut splitter = Splitter::default();
        let bytes = stream.as_bytes();
        let last = bytes.len() - 1 - line_feeds;
        for byte in &bytes[..last] {
            assert!(push(&mut splitter, &[*byte]).is_empty(), "{stream:?}");
        }
        assert_eq!(
            push(&mut splitter, &bytes[last..=last]).len(),
            1,
            "{stream:?}"
        );
        assert_eq!(
            push(&mut splitter, &bytes[last + 1..]).len(),
            line_feeds,
            "{stream:?}"
        );
        assert!(splitter.finish::<Frame>().is_empty());
    }
}

#[test]
fn an_event_over_the_limit_passes_in_pieces() {
    let stream = format!("data: {}\n\ndata: b\n\n", "x".repeat(100));
    let mut splitter = Splitter::new(32);
    let mut frames = Vec::new();
    for chunk in stream.as_bytes().chunks(10) {
        frames.extend(push(&mut splitter, chunk));
        assert!(splitter.pending.len() <= 32);
    }
    assert_eq!(joined(&frames), stream.as_bytes());
    assert_eq!(data(&frames), ["b"]);
    let whole = split(stream.as_bytes(), &[], 32);
    let kinds: Vec<FrameKind> = whole.iter().map(Frame::kind).collect();
    assert_eq!(kinds, [FrameKind::Oversize, FrameKind::Event]);
}

#[test]
fn other_data_takes_the_place_of_the_old() {
    for (event, data, expected) in [
        ("data: a\n\n", "b", "data: b\n\n"),
        ("data:a\r\n\r\n", "b", "data:b\r\n\r\n"),
        ("data\n\n", "b", "data: b\n\n"),
        (
            ": c\nevent: e\ndata: a\nid: 1\n\n",
            "b",
            ": c\nevent: e\ndata: b\nid: 1\n\n",
        ),
        ("data: a\nid: 1\ndata: b\n\n", "c", "data: c\nid: 1\n\n"),
        (
            "data: a\r\ndata: b\r\n\r\n",
            "c\nd",
            "data: c\r\ndata: d\r\n\r\n",
        ),
        (": nothing\n\n", "b", ": nothing\n\n"),
        ("data: a", "b\nc", "data: b\ndata: c"),
    ] {
        let frames = split(event.as_bytes(), &[], DEFAULT_LIMIT);
        let edited = frames[0].with_data(data.as_bytes());
        assert_eq!(String::from_utf8_lossy(&edited), expected, "{event:?}");
    }
}

#[test]
fn another_name_takes_the_place_of_the_old() {
    for (event, expected) in [
        ("event: x\ndata: a\n\n", "event: e\ndata: b\n\n"),
        ("event:x\r\ndata:a\r\n\r\n", "event: e\r\ndata:b\r\n\r\n"),
        ("data: a\r\n\r\n", "event: e\r\ndata: b\r\n\r\n"),
        ("\u{feff}data: a\n\n", "event: e\ndata: b\n\n"),
        (
            ": c\nevent: x\nid: 1\ndata: a\n\n",
            ": c\nevent: e\nid: 1\ndata: b\n\n",
        ),
    ] {
        let frames = split(event.as_bytes(), &[], DEFAULT_LIMIT);
        let another = frames[0].another(Some("e"), b"b");
        assert_eq!(String::from_utf8_lossy(&another), expected, "{event:?}");
    }
}

#[test]
fn an_events_name_is_read() {
    let frames = split(b"event: message_start\ndata: {}\n\n", &[], DEFAULT_LIMIT);
    assert_eq!(frames[0].event(), Some(&b"message_start"[..]));
}

/// Streams made of what matters to a splitter.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just("data: "),
        Just("data:x"),
        Just(": comment"),
        Just("event: e"),
        Just("\u{feff}"),
        Just("{\"a\":1}"),
        Just("é"),
    ];
    let written = proptest::collection::vec(piece, 0..40).prop_map(|p| p.concat().into_bytes());
    prop_oneof![4 => written, 1 => proptest::collection::vec(any::<u8>(), 0..80)]
}

proptest! {
    #[test]
    fn no_chunking_loses_a_byte_or_changes_an_event(
        stream in any_stream(),
        mut ends in proptest::collection::vec(0_usize..160, 0..20),
        limit in prop_oneof![Just(8_usize), Just(DEFAULT_LIMIT)],
    ) {
        ends.sort_unstable();
        let frames = split(&stream, &ends, limit);
        prop_assert_eq!(joined(&frames), stream.clone());
        if limit == DEFAULT_LIMIT {
            prop_assert_eq!(data(&frames), data(&split(&stream, &[], limit)));
        }
    }

    #[test]
    fn data_that_is_put_in_is_read_back(stream in any_stream(), text in "[a-z\n]{0,20}") {
        for frame in split(&stream, &[], DEFAULT_LIMIT) {
            let edited = frame.with_data(text.as_bytes());
            if frame.data().is_some() {
                // The mark is only a mark at the beginning of a stream.
                let again = Frame::new(edited, frame.kind(), true);
                if frame.bytes().starts_with("\u{feff}".as_bytes()) { continue; }
                prop_assert_eq!(again.data().expect("data").into_owned(), text.as_bytes());
            } else {
                prop_assert_eq!(&edited, frame.bytes());
            }
        }
    }
}
