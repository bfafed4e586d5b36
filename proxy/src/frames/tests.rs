//! Where messages begin, however their bytes arrive.

use proptest::prelude::*;

use super::*;

pub(crate) const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A frame on the wire, with a length in the shortest form.
pub(crate) fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let masked = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
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
    let mask = mask.iter().cycle();
    bytes.extend(payload.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// A conversation in one direction: for each message its fragments, with pings between them.
pub(crate) fn messages() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let fragment = prop_oneof![
        9 => prop::collection::vec(any::<u8>(), 0..200),
        1 => Just(vec![7; 70_000]),
    ];
    prop::collection::vec(prop::collection::vec(fragment, 1..4), 0..5)
}

/// The frames of messages, and where each message begins.
pub(crate) fn on_the_wire(
    messages: &[Vec<Vec<u8>>],
    mask: Option<[u8; 4]>,
) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut begins) = (Vec::new(), Vec::new());
    for fragments in messages {
        begins.push(bytes.len());
        for (number, fragment) in fragments.iter().enumerate() {
            let opcode = if number == 0 { 2 } else { 0 };
            let is_final = number + 1 == fragments.len();
            let first = if is_final { 0x80 | opcode } else { opcode };
            bytes.extend(frame(first, fragment, mask));
            bytes.extend(frame(0x89, b"ping", mask));
        }
    }
    (bytes, begins)
}

/// The same bytes in pieces, of these lengths in turn.
pub(crate) fn cut<'a>(bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let (mut rest, mut lengths) = (bytes, lengths.iter().cycle());
    while !rest.is_empty() {
        let length = lengths.next().map_or(rest.len(), |length| *length);
        let (piece, others) = rest.split_at(length.clamp(1, rest.len()));
        pieces.push(piece);
        rest = others;
    }
    pieces
}

proptest! {
    #[test]
    fn a_message_is_found_where_it_begins_however_the_bytes_are_cut(
        messages in messages(),
        lengths in prop::collection::vec(1_usize..40_000, 1..4),
    ) {
        let (bytes, begins) = on_the_wire(&messages, None);
        for (number, begin) in (1..).zip(&begins) {
            let mut finder = MessageFinder::default();
            let mut before = 0;
            let mut found = None;
            for piece in cut(&bytes, &lengths) {
                found = finder.find(number, piece).unwrap();
                if found.is_some() {
                    break;
                }
                before += piece.len();
            }
            prop_assert_eq!(found.map(|place| before + place), Some(*begin));
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_keep_more_than_a_header(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        lengths in prop::collection::vec(1_usize..20, 1..4),
    ) {
        let mut scanner = FrameScanner::default();
        for mut piece in cut(&bytes, &lengths) {
            while let Ok(Some(_)) = scanner.next(&mut piece) {}
            prop_assert!(scanner.header.len() <= 14);
        }
    }
}
