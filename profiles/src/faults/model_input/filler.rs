//! Text that says nothing and is worth a number of tokens.

use squall_dialects::tokens;

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

/// Text that is worth exactly so many tokens.
pub(super) fn tokens(count: u64, _model: Option<&str>) -> String {
    let sentences: u64 = SENTENCES
        .iter()
        .map(|sentence| tokens::count(sentence))
        .sum();
    let mut text = String::new();
    // One round too many, which is cut off again.
    for _ in 0..=count / sentences.max(1) {
        for sentence in SENTENCES {
            text.push_str(sentence);
            text.push(' ');
        }
        text.push('\n');
    }
    let kept = tokens::take(&text, count).len();
    text.truncate(kept);
    text
}
