//! Streams of events from anybody, in every framing and any chunks: no byte is lost, no chunking
//! shows, nothing panics, in the splitters and in everything that reads through them.
//!
//! The first two bytes choose fault, framing and chunk size; the rest is the stream.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use squall_dialects::stream::{DEFAULT_LIMIT, Frame, FrameKind, Framing, Splitter};
use squall_dialects::{AnswerForm, Reader, Target, by_name};
use squall_profiles::fault::StreamFault;
use squall_profiles::faults::llm_stream::{Step, StreamEditor};

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
    read(framing, stream, size);
    edit(framing, stream, size, &fault(*choice));
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

fn read(framing: Framing, stream: &[u8], size: usize) {
    let Some(dialect) = by_name("openai-chat") else {
        return;
    };
    for form in [AnswerForm::Json, AnswerForm::Stream(framing)] {
        let mut reader = Reader::new(dialect, Target::default(), Some(stream));
        reader.head(Some(form));
        stream.chunks(size).for_each(|chunk| reader.push(chunk));
        reader.finish();
    }
}

fn edit(framing: Framing, stream: &[u8], size: usize, fault: &StreamFault) {
    let Some(dialect) = by_name("openai-chat") else {
        return;
    };
    for form in [AnswerForm::Json, AnswerForm::Stream(framing)] {
        let run = |size: usize| {
            let mut editor = StreamEditor::new(fault, dialect, form);
            let mut steps: Vec<Step> = stream
                .chunks(size)
                .flat_map(|chunk| editor.push(chunk))
                .collect();
            steps.extend(editor.finish());
            let sent: Vec<u8> = steps
                .iter()
                .flat_map(|step| match step {
                    Step::Emit(bytes) => bytes.to_vec(),
                    Step::Wait(_) | Step::End(_) | Step::Finish => Vec::new(),
                })
                .collect();
            (sent, editor.touched())
        };
        let (sent, touched) = run(stream.len().max(1));
        let (sent_in_chunks, touched_in_chunks) = run(size);
        assert!(touched || sent == stream);
        assert_eq!(touched, touched_in_chunks);
        assert_eq!(data(framing, &sent), data(framing, &sent_in_chunks));
    }
}

/// What a client reads. Where a stream mixes its line breaks, the bytes of the last one may differ.
fn data(framing: Framing, sent: &[u8]) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(framing, usize::MAX);
    let mut frames = splitter.push(sent);
    frames.extend(splitter.finish());
    frames
        .iter()
        .filter_map(Frame::data)
        .map(|data| data.into_owned())
        .collect()
}

fn fault(choice: u8) -> StreamFault {
    let tokens = u64::from(choice / 3) % 8;
    match choice % 3 {
        0 => StreamFault::Truncate { max_tokens: tokens },
        1 => StreamFault::Cut {
            after_tokens: tokens,
        },
        _ => StreamFault::Slow {
            time_to_first_token: Duration::from_millis(tokens),
            tokens_per_second: Some(10.0),
        },
    }
}
