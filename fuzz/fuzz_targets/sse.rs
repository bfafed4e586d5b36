//! Streams of events from anybody, in every framing and any chunks: no byte is lost, no chunking
//! shows, nothing panics in the splitters. What reads through them is the dialects' targets.
//!
//! The first two bytes choose framing and chunk size; the rest is the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_dialects::stream::{DEFAULT_LIMIT, Frame, FrameKind, Framing, Splitter};

fuzz_target!(|input: &[u8]| {
    let [choice, size, stream @ ..] = input else {
        return;
    };
    let framing = match choice / 32 {
        0 => Framing::Lines,
        1 => Framing::Array,
        2 => Framing::AwsEvents,
        3 => Framing::AwsChunks,
        _ => Framing::Sse,
    };
    let size = usize::from(*size).max(1);
    split(framing, stream, size);
});

fn split(framing: Framing, stream: &[u8], size: usize) {
    let frames = |size: usize, limit: usize| -> Vec<Frame> {
        let mut splitter = Splitter::new(framing, limit);
        let mut frames: Vec<Frame> = stream
            .chunks(size)
            .flat_map(|chunk| splitter.push(chunk))
            .collect();
        frames.extend(splitter.finish());
        frames
    };
    let data = |frames: &[Frame]| -> Vec<Vec<u8>> {
        frames
            .iter()
            .filter_map(Frame::data)
            .map(|data| data.into_owned())
            .collect()
    };
    let at_once = frames(stream.len().max(1), usize::MAX);
    let chunked = frames(size, usize::MAX);
    let bounded = frames(size, 16);
    for frames in [&at_once, &chunked, &bounded] {
        let joined: Vec<u8> = frames
            .iter()
            .flat_map(|frame| frame.bytes().to_vec())
            .collect();
        assert_eq!(joined, stream);
    }
    assert_eq!(data(&at_once), data(&chunked));
    for frame in at_once
        .iter()
        .filter(|frame| frame.kind() == FrameKind::Event)
    {
        if let Some(data) = frame.data() {
            let again = frame.with(None, &data);
            let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
            let mut again = splitter.push(&again);
            again.extend(splitter.finish());
            // A mark is one only at the beginning, and a list's items need their list.
            let alone = framing != Framing::Array && !frame.bytes().starts_with(b"\xef\xbb\xbf");
            assert!(!alone || again[0].data() == Some(data));
        }
    }
}
