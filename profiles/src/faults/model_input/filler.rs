//! Meaningless text with a given number of tokens.
//!
//! The count is exact for OpenAI's models and needs no vocabulary: with the space before it every word
//! of the filler is one token of `o200k_base` and of `cl100k_base`, and so is every mark, as counted
//! with tiktoken. For other vocabularies, which are not public or none of the two, it is an estimate.

use squall_dialects::tokens::{self, Counting};

/// Sentences that lead nowhere. None asks for anything, so a model that answers them has lost its
/// thread.
const SENTENCES: [&str; 12] = [
    "The lamp beside the window was moved twice before noon and then put back where it had been.",
    "Somebody had counted the chairs in the hall, and the number was written on a small card.",
    "Between the two hills lies a road that is neither long nor short, and few people take it.",
    "In the third drawer there was a ball of string, a blunt pencil and a map of another town.",
    "The kettle had been filled, emptied and filled again without anybody making tea.",
    "On most days the ferry leaves a little later than the sign says, and nobody minds.",
    "A grey coat hung on the hook by the door, and under it stood a pair of dry boots.",
    "The clock in the corridor was right, though it was seldom looked at by those who passed.",
    "Some of the letters were tied with ribbon, the others lay loose at the bottom of the box.",
    "There were apples on the table, most of them red, one of them green, and none of them cut.",
    "The fence had been painted in spring, so by autumn it looked much as it had the year before.",
    "Nobody could say who had ordered the carpet, but it lay straight and was of a plain brown.",
];

/// What all of them together are worth.
const ROUND: u64 = 236;

/// Text that is worth exactly so many tokens.
pub fn of(count: u64) -> String {
    let round = SENTENCES.join(" ");
    let mut text = String::new();
    // One round too many, which is cut off again.
    for _ in 0..=count / ROUND {
        text.push_str(if text.is_empty() { "" } else { " " });
        text.push_str(&round);
    }
    let kept = tokens::take(Counting::Estimate, &text, count).len();
    text.truncate(kept);
    text
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    #[test]
    fn filler_is_worth_what_was_asked() {
        for count in [0, 1, 7, 235, 236, 237, 5000, 100_000] {
            assert_eq!(tokens::count(Counting::Estimate, &of(count)), count);
        }
    }

    /// Golden values: with other sentences they have to be counted again, by both vocabularies.
    #[test]
    fn the_sentences_are_those_that_were_counted() {
        let round = SENTENCES.join(" ");
        assert_eq!(
            (
                tokens::count(Counting::Estimate, &round),
                xxh3_64(round.as_bytes())
            ),
            (ROUND, 10_720_868_752_719_420_726)
        );
        let marks = round.matches([',', '.']).count();
        assert_eq!(round.split(' ').count() + marks, 236);
    }
}
