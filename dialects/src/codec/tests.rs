//! Codings in pieces: the same bytes for every way to cut them up, in bounded memory.

use http::{HeaderMap, HeaderValue, header};
use proptest::prelude::*;

use super::{Coding, Decoder, Encoder, NotInCoding, Progress};

const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

fn whole(coding: Coding, plain: &[u8]) -> Vec<u8> {
    Encoder::new(coding)
        .expect("a coding")
        .whole(plain)
        .expect("encoded")
}

/// Decodes pieces of an encoded body, with a small output buffer.
fn decode<'a>(
    decoder: &mut Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, NotInCoding> {
    let mut plain = Vec::new();
    let mut output = [0; 7];
    for mut input in pieces {
        loop {
            let Progress { read, written } = decoder.step(input, &mut output)?;
            input = &input[read..];
            plain.extend_from_slice(&output[..written]);
            if read == 0 && written == 0 {
                break;
            }
        }
        assert!(input.is_empty(), "stuck with input left");
    }
    Ok(plain)
}

#[test]
fn the_coding_is_read_from_the_head() {
    for (value, expected) in [
        ("gzip", Some(Some(Coding::Gzip))),
        ("X-GZIP", Some(Some(Coding::Gzip))),
        ("deflate", Some(Some(Coding::Deflate))),
        ("identity, br", Some(Some(Coding::Brotli))),
        ("zstd", Some(Some(Coding::Zstd))),
        ("identity", Some(None)),
        ("", Some(None)),
        ("compress", None),
        ("gzip, br", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(value));
        assert_eq!(Coding::of(&headers).ok(), expected, "{value}");
    }
    assert_eq!(Coding::of(&HeaderMap::new()), Ok(None));
}

#[test]
fn what_is_pushed_can_be_decoded_at_once() {
    for coding in ALL {
        let mut encoder = Encoder::new(coding).expect("a coding");
        let mut decoder = Decoder::new(coding).expect("a coding");
        for event in ["data: one\n\n", "data: two\n\n", ""] {
            let piece = encoder.push(event.as_bytes()).expect("encoded");
            let plain = decode(&mut decoder, [&piece[..]]).expect("decoded");
            assert_eq!(plain, event.as_bytes(), "{coding:?}");
        }
        assert!(!decoder.is_complete(), "{coding:?}");
        let end = encoder.finish().expect("encoded");
        assert_eq!(decode(&mut decoder, [&end[..]]).expect("decoded"), b"");
        assert!(decoder.is_complete(), "{coding:?}");
    }
}

#[test]
fn deflate_without_its_wrapper_is_known_and_stays_without() {
    let raw = Encoder::raw_deflate()
        .whole(b"bare deflate")
        .expect("encoded");
    let mut decoder = Decoder::new(Coding::Deflate).expect("a coding");
    assert_eq!(
        decode(&mut decoder, raw.chunks(1)).expect("decoded"),
        b"bare deflate"
    );
    assert!(decoder.is_complete());
    assert_eq!(
        decoder
            .encoder()
            .expect("an encoder")
            .whole(b"bare deflate")
            .expect("encoded"),
        raw
    );
}

#[test]
fn gzip_headers_may_carry_everything_and_members_may_follow_one_another() {
    let mut gzip = flate2::GzBuilder::new()
        .filename("a name")
        .comment("a comment")
        .extra(vec![1, 2, 3])
        .write(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, b"first, ").expect("encoded");
    let mut encoded = gzip.finish().expect("encoded");
    encoded.extend(whole(Coding::Gzip, b"second"));
    let mut decoder = Decoder::new(Coding::Gzip).expect("a coding");
    assert_eq!(
        decode(&mut decoder, encoded.chunks(1)).expect("decoded"),
        b"first, second"
    );
    assert!(decoder.is_complete());
}

#[test]
fn zstd_frames_may_follow_one_another() {
    let encoded = [
        whole(Coding::Zstd, b"first, "),
        whole(Coding::Zstd, b"second"),
    ]
    .concat();
    let mut decoder = Decoder::new(Coding::Zstd).expect("a coding");
    assert_eq!(
        decode(&mut decoder, encoded.chunks(3)).expect("decoded"),
        b"first, second"
    );
}

#[test]
fn what_is_not_in_the_coding_is_an_error() {
    for coding in ALL {
        let mut decoder = Decoder::new(coding).expect("a coding");
        let plain = b"\xff\xffThis is plain text, whatever the head says about it.";
        assert_eq!(
            decode(&mut decoder, [&plain[..]]),
            Err(NotInCoding(coding)),
            "{coding:?}"
        );
    }
    let mut broken = whole(Coding::Gzip, b"checked");
    let checksum = broken.len() - 8;
    broken[checksum] ^= 1;
    let mut decoder = Decoder::new(Coding::Gzip).expect("a coding");
    assert_eq!(
        decode(&mut decoder, [&broken[..]]),
        Err(NotInCoding(Coding::Gzip))
    );
}

#[test]
fn a_small_body_that_decodes_to_a_huge_one_comes_in_pieces() {
    for coding in ALL {
        let bomb = whole(coding, &vec![0; 4 << 20]);
        assert!(bomb.len() < 64 << 10, "{coding:?}: {}", bomb.len());
        let mut decoder = Decoder::new(coding).expect("a coding");
        let mut input = &bomb[..];
        let mut output = vec![1; 1000];
        let mut length = 0;
        loop {
            let progress = decoder.step(input, &mut output).expect("decoded");
            input = &input[progress.read..];
            length += progress.written;
            if progress.is_stuck() {
                break;
            }
        }
        assert_eq!(length, 4 << 20, "{coding:?}");
    }
}

proptest! {
    #[test]
    fn a_body_comes_back_however_it_is_cut_up(
        plain in prop::collection::vec(prop_oneof![Just(b'a'), any::<u8>()], 0..2000),
        sizes in prop::collection::vec(1_usize..50, 1..20),
        pushes in 1_usize..500,
    ) {
        for coding in ALL {
            let mut encoder = Encoder::new(coding).expect("a coding");
            let mut encoded = Vec::new();
            for piece in plain.chunks(pushes) {
                encoded.extend(encoder.push(piece).expect("encoded"));
            }
            encoded.extend(encoder.finish().expect("encoded"));

            let mut pieces = Vec::new();
            let mut rest = &encoded[..];
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let mut decoder = Decoder::new(coding).expect("a coding");
            prop_assert_eq!(&decode(&mut decoder, pieces).expect("decoded"), &plain);
            prop_assert!(decoder.is_complete());
        }
    }

    #[test]
    fn no_input_makes_a_decoder_panic(
        garbage in prop::collection::vec(any::<u8>(), 0..500),
        good in 0_usize..40,
    ) {
        for coding in ALL {
            let mut input = whole(coding, b"something that begins well enough");
            input.truncate(good);
            input.extend(&garbage);
            let _any = decode(&mut Decoder::new(coding).expect("a coding"), [&input[..]]);
        }
    }
}
