//! The same at more or less length.

use squall_dialects::tokens::{self, Counting};

use crate::faults::llm_rewrite::words::pick;

/// Sentences without content.
const PADDING: [&str; 6] = [
    "It may also help to look at this from another side.",
    "In general, several factors play a part here, and each of them deserves attention.",
    "To put it in other words, the points above should be read in their context.",
    "That said, circumstances differ, and what holds here need not hold everywhere.",
    "Please bear in mind that further details may change the picture somewhat.",
    "If anything about this is unclear, it is worth going through it once more, step by step.",
];

/// Adds sentences without content until the text has `factor` times its tokens.
pub(super) fn longer(text: &str, factor: f64, choice: u64) -> String {
    let target = scaled(tokens::count(Counting::Estimate, text), factor);
    let mut longer = text.to_owned();
    for turn in 0.. {
        let said = tokens::count(Counting::Estimate, &longer);
        if said >= target && turn > 0 {
            break;
        }
        longer.push_str(if longer.ends_with('\n') { "" } else { " " });
        let sentence = pick(&PADDING, choice.wrapping_add(turn));
        longer.push_str(beginning(sentence, target.saturating_sub(said).max(1)));
    }
    longer
}

/// A sentence, or as much of it as those tokens are worth.
fn beginning(sentence: &str, tokens: u64) -> &str {
    let kept = tokens::take(Counting::Estimate, sentence, tokens);
    // A mark alone would end what was said before.
    let kept = if kept.len() < sentence.len() {
        kept.trim_end_matches([' ', ','])
    } else {
        kept
    };
    if kept.is_empty() { sentence } else { kept }
}

/// The beginning of the text, one `factor`th of its tokens.
pub(super) fn shorter(text: &str, factor: f64) -> Result<String, String> {
    let total = tokens::count(Counting::Estimate, text);
    let target = scaled(total, 1.0 / factor).max(1);
    if target >= total {
        return Err("the answer's text is too short to be compressed".to_owned());
    }
    let kept = tokens::take(Counting::Estimate, text, target);
    Ok(kept.trim_end().to_owned())
}

pub(super) fn scaled(tokens: u64, factor: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "token counts are far below 2^52, factors positive"
    )]
    let scaled = (tokens as f64 * factor).round() as u64;
    scaled
}
