//! Words that no model wrote.

/// Refusals as models phrase them.
pub(crate) const REFUSALS: [&str; 5] = [
    "I'm sorry, but I can't help with that.",
    "I'm not able to assist with that request.",
    "I cannot provide help with this. Is there something else I can do for you?",
    "I won't be able to help with that, as it falls outside of what I can support.",
    "Sorry, that isn't something I can do.",
];

/// A refusal, by the draw.
pub(crate) fn refusal(choice: u64) -> &'static str {
    pick(&REFUSALS, choice)
}

/// The `choice`th of some words, beginning again after the last.
pub(crate) fn pick<'w>(words: &[&'w str], choice: u64) -> &'w str {
    let count = u64::try_from(words.len()).unwrap_or(1).max(1);
    let at = usize::try_from(choice % count).unwrap_or_default();
    words.get(at).copied().unwrap_or_default()
}

/// Characters without meaning: letters that are no words, text read in the wrong encoding, control
/// characters. The same for the same draw.
pub(crate) fn garbage(choice: u64) -> String {
    const MOJIBAKE: [&str; 6] = ["Ã©", "â€™", "ï»¿", "\u{fffd}", "Ð¿Ñ€", "\u{0}"];
    let mut state = choice;
    let mut text = String::new();
    for word in 0..40 {
        state = next(state);
        if state.is_multiple_of(5) {
            text.push_str(pick(&MOJIBAKE, state >> 8));
        } else {
            let letters = 2 + (state >> 4) % 7;
            for letter in 0..letters {
                let shift = 8 + letter * 7;
                let letter = u8::try_from((state >> shift) % 26).unwrap_or_default();
                text.push(char::from(b'a' + letter));
            }
        }
        if word < 39 {
            text.push(' ');
        }
    }
    text
}

/// The irregular figure after this one (`SplitMix64`).
fn next(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_the_same_for_the_same_draw_and_no_text_for_any() {
        assert_eq!(garbage(7), garbage(7));
        assert_ne!(garbage(7), garbage(8));
        assert_eq!(garbage(7).split(' ').count(), 40);
    }

    #[test]
    fn every_draw_picks_a_refusal() {
        for choice in 0..10 {
            assert!(REFUSALS.contains(&refusal(choice)));
        }
        assert_ne!(refusal(0), refusal(1));
    }
}
