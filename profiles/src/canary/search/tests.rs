use std::collections::{BTreeSet, HashSet};

use proptest::prelude::*;

use super::*;

const CANARY: Canary = Canary(0x0123_4567_89ab);
const WRITTEN: &str = "sq-0123456789ab";

fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for place in 0..4 {
            let sextet = bits >> (18 - 6 * place) & 63;
            text.push(if place <= group.len() {
                char::from(alphabet[sextet as usize])
            } else {
                '='
            });
        }
    }
    text
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn hex(bytes: &[u8], between: &str) -> String {
    let pairs: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(between)
}

fn percent(text: &str) -> String {
    let encoded: Vec<_> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    encoded.concat()
}

fn set(found: &[Found]) -> HashSet<Found> {
    found.iter().copied().collect()
}

/// What is found of [`CANARY`], whole and in two chunks at every place.
fn found(text: &[u8]) -> BTreeSet<Encoding> {
    let of = |found: &[Found]| -> BTreeSet<Encoding> {
        let ours = found.iter().filter(|found| found.canary == CANARY);
        ours.map(|found| found.encoding).collect()
    };
    let whole = Search::all(text);
    for split in 0..=text.len() {
        let mut search = Search::new();
        let mut halves = Vec::new();
        let (first, second) = text.split_at(split);
        search.push(first, |canary| halves.push(canary));
        search.push(second, |canary| halves.push(canary));
        assert_eq!(set(&halves), set(&whole), "split at {split}");
    }
    of(&whole)
}

#[test]
#[rustfmt::skip]
fn a_canary_is_found_however_it_is_written() {
    use Encoding::{Base64, Hex, Normalised, Raw, Url};
    for (text, expected) in [
        (WRITTEN.to_owned(), Some(Raw)),
        (format!("https://a.example/?q={WRITTEN}&b=c"), Some(Raw)),
        (format!("{WRITTEN}0123"), Some(Raw)),
        (format!("ssqsq-sq-01{WRITTEN}"), Some(Raw)),
        (WRITTEN.to_uppercase(), Some(Normalised)),
        ("sq - 0123 4567\n89ab".to_owned(), Some(Normalised)),
        ("s q 0 1 2 3 4 5 6 7 8 9 a b".to_owned(), Some(Normalised)),
        ("sq_0123456789ab".to_owned(), Some(Normalised)),
        ("sq0123456789ab".to_owned(), Some(Normalised)),
        ("s\u{200b}q-0123\u{200b}456789ab".to_owned(), Some(Normalised)),
        ("sq\u{2011}0123456789ab".to_owned(), Some(Normalised)),
        ("s+q-+0123456789ab".to_owned(), Some(Normalised)),
        (percent(WRITTEN), Some(Url)),
        (percent(WRITTEN).to_lowercase(), Some(Url)),
        ("s%71-01%323456789ab".to_owned(), Some(Url)),
        ("sq-01234%2056789ab".to_owned(), Some(Url)),
        ("100%%73q-0123456789ab".to_owned(), Some(Url)),
        ("%sq-0123456789ab".to_owned(), Some(Raw)),
        ("%7sq-0123456789ab".to_owned(), Some(Raw)),
        (base64(WRITTEN.as_bytes(), STANDARD), Some(Base64)),
        (percent(&base64(WRITTEN.as_bytes(), STANDARD)), Some(Base64)),
        (base64(WRITTEN.to_uppercase().as_bytes(), STANDARD), Some(Base64)),
        (hex(WRITTEN.as_bytes(), ""), Some(Hex)),
        (hex(WRITTEN.as_bytes(), "").to_uppercase(), Some(Hex)),
        (hex(WRITTEN.as_bytes(), " "), Some(Hex)),
        (hex(WRITTEN.as_bytes(), ":"), Some(Hex)),
        (format!("a{}", hex(WRITTEN.as_bytes(), "")), Some(Hex)),
        (percent(&hex(WRITTEN.as_bytes(), "")), Some(Hex)),
        // Within JSON, and within JSON that is a string of JSON.
        (r"s\nq\t-0123\u200b456789ab".to_owned(), Some(Normalised)),
        (r"sq\u20110123\\n456789\\u200bab".to_owned(), Some(Normalised)),
        (r"\u0073q-012345678\u0039ab".to_owned(), Some(Normalised)),
        (r"\n\u73sq-0123456789ab\".to_owned(), Some(Raw)),
        (r"\\sq-0123456789ab".to_owned(), Some(Raw)),
        (base64(WRITTEN.as_bytes(), STANDARD).replacen('x', r"x\r\n", 1), Some(Base64)),
        (r"sq-\x0123456789ab".to_owned(), None),
        ("sq-0123456789a".to_owned(), None),
        ("sq-0123456789ac".to_owned(), None),
        ("sq-0123x456789ab".to_owned(), None),
        ("sq--0123456789ab".to_owned(), None),
        ("%73%7".to_owned(), None),
        (String::new(), None),
    ] {
        let found = found(text.as_bytes());
        assert_eq!(found, expected.into_iter().collect(), "{text}");
    }
}

#[test]
fn base64_is_read_at_every_alignment_and_in_both_alphabets() {
    for before in 0..8 {
        for after in 0..4 {
            for alphabet in [STANDARD, URL_SAFE] {
                // Neighbours that make every character of the alphabets appear.
                let mut plain = vec![0xfb; before];
                plain.extend_from_slice(WRITTEN.as_bytes());
                plain.extend(std::iter::repeat_n(0xff, after));
                let text = base64(&plain, alphabet);
                let wrapped: Vec<_> = text.as_bytes().chunks(7).collect();
                for text in [
                    text.clone().into_bytes(),
                    text.trim_end_matches('=').as_bytes().to_vec(),
                    format!("token={text}&x").into_bytes(),
                    format!("/abc{text}").into_bytes(),
                    text.replace('+', "%2B")
                        .replace('/', "%2F")
                        .replace('=', "%3D")
                        .into_bytes(),
                    wrapped.join(&b"\r\n"[..]),
                    wrapped.join(&br"\r\n"[..]),
                    text.replace('/', r"\/").into_bytes(),
                ] {
                    assert!(
                        found(&text).contains(&Encoding::Base64),
                        "{before} {after} {}",
                        String::from_utf8_lossy(&text)
                    );
                }
            }
        }
    }
}

#[test]
fn of_what_passes_only_the_end_stays() {
    let mut search = Search::new();
    search.push(&[b'.'; 10_000], |found| panic!("{found:?}"));
    assert_eq!(search.end.len(), OVERLAP);
}

/// Bytes near to what is looked for.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let near = prop::sample::select(
        b"sSqQ-_%0123456789abcdefABCDEF73c3EtN xLz+/=: \r\n\x00\xe2\x80\x8b".to_vec(),
    );
    prop_oneof![
        prop::collection::vec(near, 0..60),
        prop::collection::vec(any::<u8>(), 0..60),
    ]
}

/// A canary in some encoding.
fn any_spelling() -> impl Strategy<Value = (Canary, Encoding, Vec<u8>)> {
    (any::<u64>(), 0..5, any_bytes(), any_bytes()).prop_map(|(draw, how, before, after)| {
        let canary = Canary::from_draw(draw);
        let written = canary.to_string();
        let mut plain = before;
        plain.extend_from_slice(written.as_bytes());
        plain.extend(after);
        let (encoding, text) = match how {
            0 => (Encoding::Raw, written),
            1 => (Encoding::Url, percent(&written)),
            2 => (Encoding::Base64, base64(&plain, STANDARD)),
            3 => (Encoding::Base64, base64(&plain, URL_SAFE)),
            _ => (Encoding::Hex, hex(&plain, "")),
        };
        (canary, encoding, text.into_bytes())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_surroundings_and_no_split_hide_it(
        (canary, encoding, spelled) in any_spelling(),
        before in any_bytes(),
        after in any_bytes(),
    ) {
        let mut text = before.clone();
        // What comes before may run into it: half of a pair, a digit more of a percent sign.
        text.push(b'"');
        text.extend(&spelled);
        text.extend(after);
        let whole = Search::all(&text);
        prop_assert!(whole.contains(&Found { canary, encoding }), "{}", String::from_utf8_lossy(&text));
        for split in (0..=text.len()).step_by(7) {
            let mut search = Search::new();
            let mut halves = Vec::new();
            search.push(&text[..split], |found| halves.push(found));
            search.push(&text[split..], |found| halves.push(found));
            prop_assert_eq!(set(&halves), set(&whole), "split at {}", split);
        }
        let mut search = Search::new();
        let mut single = Vec::new();
        for byte in &text {
            search.push(&[*byte], |found| single.push(found));
        }
        prop_assert_eq!(set(&single), set(&whole));
    }

    #[test]
    fn what_is_not_there_is_not_found(text in any_bytes()) {
        // Of 2^48 canaries none of these few bytes spells this one.
        prop_assert!(Search::all(&text).iter().all(|found| found.canary != CANARY));
    }
}
