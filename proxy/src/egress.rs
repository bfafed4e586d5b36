//! Searches request bodies for canaries as they pass, after decoding.
//!
//! Nothing is held back: each piece is searched in place. Encoded bodies are decoded through a
//! small buffer.

mod beside_history;
mod frames;
mod undecided;

use squall_dialects::codec::{Coding, Decoder, NotInCoding};
use squall_profiles::canary::{Found, Search};

use self::beside_history::{BesideHistory, MemberPiece};
use self::frames::Frames;
use self::undecided::Undecided;

/// Most decoded bytes of a compressed body; the rest is not searched.
const DECODED: usize = 8 << 20;

/// The search of one request's body.
pub(crate) struct BodySearch {
    search: SearchedText,
    wrapping: Wrapping,
}

/// The search of decoded content.
struct SearchedText {
    search: Search,
    /// For a model call, only content outside the history is searched.
    beside_history: Option<BesideHistory>,
    /// For a possible conversation in an unknown dialect: its end decides which part is history.
    undecided: Option<Undecided>,
}

impl SearchedText {
    fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Found)) {
        let Self {
            search,
            beside_history,
            undecided,
        } = self;
        if let Some(body) = undecided {
            if body.keep(bytes) {
                return search.push(bytes, |canary| body.found(canary));
            }
            *undecided = None;
        }
        match beside_history {
            None => search.push(bytes, found),
            Some(members) => members.push(bytes, |piece| match piece {
                MemberPiece::Of(bytes) => search.push(bytes, &mut found),
                MemberPiece::End => *search = Search::new(),
            }),
        }
    }
}

/// The encoding of a body.
enum Wrapping {
    Nothing,
    /// A content coding, and the remaining number of decoded bytes.
    Coded(Box<Decoder>, usize),
    /// Masked frames of a WebSocket.
    Frames(Frames),
    /// The rest is not searched.
    Sealed,
}

impl BodySearch {
    /// For an unencoded body.
    pub(crate) fn plain() -> Self {
        Self::within(Wrapping::Nothing)
    }

    /// For a body in a content coding.
    pub(crate) fn coded(coding: Coding) -> Self {
        Self::within(match Decoder::new(coding) {
            Ok(decoder) => Wrapping::Coded(Box::new(decoder), DECODED),
            Err(NotInCoding(_)) => Wrapping::Sealed,
        })
    }

    /// For a body that is not searched.
    pub(crate) fn none() -> Self {
        Self::within(Wrapping::Sealed)
    }

    /// For an agent's WebSocket stream, from the first byte after the upgrade.
    pub(crate) fn websocket() -> Self {
        Self::within(Wrapping::Frames(Frames::default()))
    }

    fn within(wrapping: Wrapping) -> Self {
        Self {
            search: SearchedText {
                search: Search::new(),
                beside_history: None,
                undecided: None,
            },
            wrapping,
        }
    }

    /// The body's shape decides whether it is a conversation with a model.
    pub(crate) fn by_shape(&mut self) {
        self.search.undecided = Some(Undecided::default());
    }

    /// The body has ended: reports canaries that only its end can decide.
    pub(crate) fn end(&mut self, found: impl FnMut(Found)) {
        if let Some(body) = self.search.undecided.take() {
            body.end(found);
        }
    }

    /// The body is a model call's; repeated tool results are skipped.
    pub(crate) fn pass_over_history(&mut self) {
        self.search.undecided = None;
        self.search.beside_history.get_or_insert_default();
    }

    /// Searches the next bytes, as sent.
    pub(crate) fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Found)) {
        let search = &mut self.search;
        match &mut self.wrapping {
            Wrapping::Nothing => search.push(bytes, found),
            Wrapping::Frames(frames) => {
                frames.push(bytes, |said| search.push(said, &mut found));
            }
            Wrapping::Coded(decoder, left) => {
                match decoder.push(bytes, *left, |plain| search.push(plain, &mut found)) {
                    Ok(given) if given < *left => *left -= given,
                    Ok(_) => self.wrapping = Wrapping::Sealed,
                    Err(NotInCoding(_)) => {
                        // The body is not in the coding that the head declares.
                        self.wrapping = Wrapping::Nothing;
                        search.push(bytes, found);
                    }
                }
            }
            Wrapping::Sealed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use squall_profiles::canary::Encoding;

    use super::*;

    const WRITTEN: &str = "sq-0123456789ab";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("a vector takes everything");
        encoder.finish().expect("a vector takes everything")
    }

    /// A client's frame (RFC 6455 §5.2), unless `first` says something else of it.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | u8::try_from(length).unwrap()),
            length @ 126..0x1_0000 => {
                frame.push(0x80 | 0x7e);
                frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            length => {
                frame.push(0x80 | 0x7f);
                frame.extend(u64::try_from(length).unwrap().to_be_bytes());
            }
        }
        frame.extend(mask);
        let masked = payload.iter().zip(mask.iter().cycle());
        frame.extend(masked.map(|(byte, mask)| byte ^ mask));
        frame
    }

    fn long(before: usize) -> Vec<u8> {
        [&vec![b'.'; before][..], WRITTEN.as_bytes(), b"..."].concat()
    }

    #[test]
    fn a_canary_is_found_in_every_wrapping_and_in_any_pieces() {
        let whole = format!("note {WRITTEN}.");
        let coded = || BodySearch::coded(Coding::Gzip);
        for (what, search, body) in [
            (
                "plain",
                BodySearch::plain as fn() -> BodySearch,
                whole.clone().into_bytes(),
            ),
            ("gzip", coded, gzip(whole.as_bytes())),
            ("a long gzip", coded, gzip(&long(100_000))),
            (
                "a frame",
                BodySearch::websocket,
                frame(0x81, whole.as_bytes()),
            ),
            (
                "a middling frame",
                BodySearch::websocket,
                frame(0x82, &long(200)),
            ),
            (
                "a long frame",
                BodySearch::websocket,
                frame(0x82, &long(70_000)),
            ),
            (
                "the second frame",
                BodySearch::websocket,
                [
                    frame(0x81, b""),
                    frame(0x89, b"ping"),
                    frame(0x81, whole.as_bytes()),
                ]
                .concat(),
            ),
            (
                "two frames, a ping between",
                BodySearch::websocket,
                [
                    frame(0x01, b"sq-0123"),
                    frame(0x89, b"x"),
                    frame(0x80, b"456789ab"),
                ]
                .concat(),
            ),
        ] {
            for size in [1, 2, 3, 7, 1000, body.len()] {
                let mut search = search();
                let mut found = Vec::new();
                for piece in body.chunks(size) {
                    search.push(piece, |canary| found.push(canary));
                }
                let told: Vec<_> = found
                    .iter()
                    .map(|found| (found.canary.to_string(), found.encoding))
                    .collect();
                assert_eq!(
                    told,
                    [(WRITTEN.to_owned(), Encoding::Raw)],
                    "{what} by {size}"
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_unwrapped_is_passed_over() {
        let bomb = gzip(&[&vec![0; DECODED][..], WRITTEN.as_bytes()].concat());
        for (what, mut search, body) in [
            (
                "more than is looked at",
                BodySearch::coded(Coding::Gzip),
                bomb,
            ),
            (
                "a compressed frame",
                BodySearch::websocket(),
                frame(0xc1, &long(3)),
            ),
            ("a ping", BodySearch::websocket(), frame(0x89, &long(3))),
        ] {
            search.push(&body, |found| panic!("{what}: {found:?}"));
            search.push(&body, |found| panic!("{what}: {found:?}"));
        }
    }
}
