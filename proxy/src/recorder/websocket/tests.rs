//! What is counted of a WebSocket.

use proptest::prelude::*;

use super::*;
use crate::frames::tests::{MASK, cut, frame, messages, on_the_wire};

fn counted(side: SocketSide, pieces: &[&[u8]]) -> Option<SocketRecord> {
    let mut tap = SocketTap::new();
    for piece in pieces {
        tap.pass(side, piece);
    }
    tap.record()
}

/// Messages and bytes.
type Counts = Option<(u64, u64)>;

#[test]
#[rustfmt::skip]
fn whole_messages_and_their_payloads_are_counted_and_nothing_else() {
    let text = |payload: &[u8]| frame(0x81, payload, None);
    for (bytes, expected) in [
        (vec![], Some((0, 0))),
        (text(b""), Some((1, 0))),
        ([text(b"hello"), frame(0x82, &[0; 125], None)].concat(), Some((2, 130))),
        ([text(&[b'x'; 126]), text(&vec![b'x'; 65_535]), text(&vec![b'x'; 65_536])].concat(), Some((3, 131_197))),
        // Fragments with a ping between them, and an unsolicited pong.
        ([frame(0x01, b"ab", None), frame(0x89, b"ping", None), frame(0x00, b"c", None),
          frame(0x80, b"", None), frame(0x8a, b"", None)].concat(), Some((1, 3))),
        // The bytes of a message that is not whole, but not the message.
        ([text(b"a"), text(b"not whole")[..6].to_vec()].concat(), Some((1, 5))),
        // Compressed, and with a bit of an unknown extension.
        ([frame(0xc1, b"xyz", None), frame(0xb1, b"x", None)].concat(), Some((2, 4))),
        // A length in a longer form than it needs.
        (vec![0x81, 126, 0, 2, b'h', b'i'], Some((1, 2))),
        (vec![0x81, 127, 0, 0, 0, 0, 0, 0, 0, 2, b'h', b'i'], Some((1, 2))),
        (b"SSH-2.0-OpenSSH\r\n".to_vec(), None),
        (frame(0x83, b"", None), None),
        (frame(0x80, b"of nothing", None), None),
        ([frame(0x01, b"a", None), text(b"in it")].concat(), None),
        (frame(0x09, b"a fragment", None), None),
        (frame(0x89, &[0; 126], None), None),
        (frame(0x81, b"masked", Some(MASK)), None),
    ] {
        let record = counted(SocketSide::Upstream, &[&bytes]);
        let counts: Counts = record.map(|record| (record.upstream.messages, record.upstream.bytes));
        assert_eq!(counts, expected, "{bytes:?}");
    }
}

#[test]
fn the_first_close_frame_is_kept_with_its_code_and_its_reason() {
    let agent = Some(MASK);
    for (side, frames, expected) in [
        (
            SocketSide::Agent,
            vec![frame(0x88, b"\x03\xe8bye", agent)],
            (Some(1000), "bye"),
        ),
        (
            SocketSide::Upstream,
            vec![frame(0x88, b"\x03\xf4", None)],
            (Some(1012), ""),
        ),
        (
            SocketSide::Upstream,
            vec![frame(0x88, b"", None), frame(0x88, b"\x03\xe8", None)],
            (None, ""),
        ),
    ] {
        let bytes = frames.concat();
        for size in [1, 3, bytes.len()] {
            let record = counted(side, &cut(&bytes, &[size])).unwrap();
            let close = record.close.unwrap();
            assert_eq!((close.by, close.code), (side, expected.0));
            assert_eq!(close.reason, expected.1);
            assert_eq!(record.agent, MessageCounts::default());
        }
    }
}

proptest! {
    #[test]
    fn counts_do_not_depend_on_how_the_bytes_are_cut(
        messages in messages(),
        lengths in prop::collection::vec(1_usize..40_000, 1..4),
    ) {
        let (bytes, _) = on_the_wire(&messages, Some(MASK));
        let record = counted(SocketSide::Agent, &cut(&bytes, &lengths)).unwrap();
        let payload = messages.iter().flatten().map(|fragment| fragment.len() as u64);
        let expected = MessageCounts { messages: messages.len() as u64, bytes: payload.sum() };
        prop_assert_eq!(record.agent, expected);
    }
}
