//! A canary between any bytes, in every encoding: it is found, in chunks too if the text is short, and
//! nothing panics.
//!
//! The first two bytes choose encoding and chunk size; the rest stands around the canary, and what is
//! encoded with it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_journal::record::Encoding;
use squall_profiles::canary::{Canary, Found, Search};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fuzz_target!(|input: &[u8]| {
    let [choice, size, around @ ..] = input else {
        return;
    };
    let size = usize::from(*size).max(1);
    chunked(around, size);
    let (before, after) = around.split_at(around.len() / 2);
    let canary = Canary::from_draw(0x0123_4567_89ab);
    let written = canary.to_string().into_bytes();
    let inner = [before, &written, after].concat();
    let (encoding, spelled) = match choice % 4 {
        0 => (Encoding::Raw, written),
        1 => (
            Encoding::Url,
            written
                .iter()
                .map(|byte| format!("%{byte:02x}"))
                .collect::<String>()
                .into(),
        ),
        2 => (
            Encoding::Hex,
            inner
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
                .into(),
        ),
        _ => (Encoding::Base64, base64(&inner)),
    };
    // A mark between, so that what stands before is not read as the encoding's own beginning.
    let text = [before, b"\"", &spelled, b"\"", after].concat();
    assert!(chunked(&text, size).contains(&Found { canary, encoding }));
});

/// What is found at once. A text of up to 256 bytes has the same finds in chunks.
fn chunked(text: &[u8], size: usize) -> Vec<Found> {
    let whole = Search::all(text);
    let mut search = Search::new();
    let mut found = Vec::new();
    for chunk in text.chunks(size) {
        search.push(chunk, |canary| found.push(canary));
    }
    if text.len() < 256 {
        assert!(whole.iter().all(|one| found.contains(one)));
    }
    whole
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for group in bytes.chunks(3) {
        let mut padded = [0; 3];
        padded[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        let sextets = [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift & 63) as usize]);
        text.extend_from_slice(&sextets[..=group.len()]);
    }
    text
}
