//! List prices of well-known models, for budgets in money.
//!
//! Standard prices per million text tokens, as the providers published them in autumn 2026: OpenAI
//! <https://developers.openai.com/api/docs/pricing>, Anthropic
//! <https://platform.claude.com/docs/en/about-claude/pricing>, Google
//! <https://ai.google.dev/gemini-api/docs/pricing>. Other rates (long prompts, cached input,
//! batches, priority, audio and images) are counted at the standard price. Unlisted models have no
//! price.

use std::fmt;

/// Units per dollar, so that a token of the cheapest model costs a whole number of them.
pub(crate) const PARTS: u64 = 1_000_000_000_000;

/// US dollars, in trillionths; at most about eighteen million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(pub(crate) u64);

impl Usd {
    /// An amount in dollars, rounded to a millionth of a cent; zero if negative.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion of floats saturates"
    )]
    pub fn from_dollars(dollars: f64) -> Self {
        Self(((dollars * 1e8).round() as u64).saturating_mul(PARTS / 100_000_000))
    }

    /// In dollars, for output.
    #[expect(clippy::cast_precision_loss, reason = "to print")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }
}

/// As `$0.0123`, without trailing zeros.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:.8}", self.dollars());
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        write!(f, "${digits}")
    }
}

/// Token prices of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price {
    /// One input token, in trillionths of a dollar.
    input: u64,
    /// One output token, in trillionths of a dollar.
    output: u64,
}

impl Price {
    /// The cost of this many tokens.
    pub(crate) fn of(self, input: u64, output: u64) -> Usd {
        let cost = |price: u64, tokens: u64| price.saturating_mul(tokens);
        Usd(cost(self.input, input).saturating_add(cost(self.output, output)))
    }
}

/// Date of the list, for the documentation.
pub const AS_OF: &str = "2026-11";

/// Model, and price of a million input and output tokens in thousandths of a dollar.
const PRICES: &[(&str, u64, u64)] = &[
    ("gpt-5.6-sol", 5000, 30_000),
    ("gpt-5.6-terra", 2000, 12_000),
    ("gpt-5.6-luna", 200, 1200),
    ("gpt-5.5", 5000, 30_000),
    ("gpt-5.4", 2500, 15_000),
    ("gpt-5.4-mini", 750, 4500),
    ("gpt-5.4-nano", 200, 1250),
    ("gpt-5.3-codex", 1750, 14_000),
    ("gpt-5.2", 1750, 14_000),
    ("gpt-5.2-codex", 1750, 14_000),
    ("gpt-5.1", 1250, 10_000),
    ("gpt-5", 1250, 10_000),
    ("gpt-5-mini", 250, 2000),
    ("gpt-5-nano", 50, 400),
    ("gpt-4.1", 2000, 8000),
    ("gpt-4.1-mini", 400, 1600),
    ("gpt-4.1-nano", 100, 400),
    ("gpt-4o", 2500, 10_000),
    ("gpt-4o-mini", 150, 600),
    ("o4-mini", 1100, 4400),
    ("o3", 2000, 8000),
    ("o3-mini", 1100, 4400),
    ("o1", 15_000, 60_000),
    ("claude-fable-5-1", 10_000, 50_000),
    ("claude-fable-5", 10_000, 50_000),
    ("claude-opus-5-5", 4000, 20_000),
    ("claude-opus-5", 5000, 25_000),
    ("claude-opus-4-8", 5000, 25_000),
    ("claude-opus-4-7", 5000, 25_000),
    ("claude-opus-4-6", 5000, 25_000),
    ("claude-opus-4-5", 5000, 25_000),
    ("claude-opus-4-1", 15_000, 75_000),
    ("claude-opus-4", 15_000, 75_000),
    ("claude-3-opus", 15_000, 75_000),
    ("claude-sonnet-5-5", 2000, 10_000),
    ("claude-sonnet-5", 2000, 10_000),
    ("claude-sonnet-4-6", 3000, 15_000),
    ("claude-sonnet-4-5", 3000, 15_000),
    ("claude-sonnet-4", 3000, 15_000),
    ("claude-3-7-sonnet", 3000, 15_000),
    ("claude-3-5-sonnet", 3000, 15_000),
    ("claude-haiku-5-5", 100, 500),
    ("claude-haiku-4-5", 1000, 5000),
    ("claude-3-5-haiku", 800, 4000),
    ("claude-3-haiku", 250, 1250),
    ("gemini-3.8-flash", 750, 3750),
    ("gemini-3.7-flash", 750, 3750),
    ("gemini-3.6-flash", 750, 3750),
    ("gemini-3.5-flash", 1500, 9000),
    ("gemini-3.1-pro", 2000, 12_000),
    ("gemini-2.5-pro", 1250, 10_000),
    ("gemini-2.5-flash", 300, 2500),
    ("gemini-2.5-flash-lite", 100, 400),
];

/// The price of a model as requests name it. A vendor or region may precede the name (`openai/…`,
/// `us.anthropic.…`), and a date or version may follow it.
pub(crate) fn of_model(model: &str) -> Option<Price> {
    let model = model.to_ascii_lowercase();
    let listed = PRICES.iter().find(|(name, ..)| names(&model, name));
    // A thousandth of a dollar per million tokens is a billionth of a dollar per token.
    listed.map(|(_, input, output)| Price {
        input: input * (PARTS / 1_000_000_000),
        output: output * (PARTS / 1_000_000_000),
    })
}

/// The list, for the documentation: model, dollars per million input and output tokens.
pub fn list() -> impl Iterator<Item = (&'static str, f64, f64)> {
    #[expect(clippy::cast_precision_loss, reason = "to print")]
    let dollars = |thousandths: u64| thousandths as f64 / 1000.0;
    let all = PRICES.iter();
    all.map(move |(name, input, output)| (*name, dollars(*input), dollars(*output)))
}

fn names(model: &str, name: &str) -> bool {
    model.match_indices(name).any(|(at, _)| {
        let before = &model[..at];
        let after = &model[at + name.len()..];
        (before.is_empty() || before.ends_with(['/', '.'])) && is_a_version(after)
    })
}

/// Whether the text after a model's name is only a date or a version.
fn is_a_version(rest: &str) -> bool {
    let Some(version) = rest.strip_prefix(['-', '@', ':']) else {
        return rest.is_empty();
    };
    let digits = version.bytes().take_while(u8::is_ascii_digit).count();
    // Fewer digits belong to the name of another model.
    digits >= 3
        || ["latest", "preview", "v1", "v2"]
            .iter()
            .any(|word| version.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_its_name_and_no_other_by_a_part_of_it() {
        for (model, price) in [
            ("gpt-4o", Some((2_500_000, 10_000_000))),
            ("GPT-4o-2024-08-06", Some((2_500_000, 10_000_000))),
            ("openai/gpt-4o-mini", Some((150_000, 600_000))),
            ("gpt-5", Some((1_250_000, 10_000_000))),
            ("gpt-5.7", None),
            ("gpt-5-ultra", None),
            ("my-gpt-4o", None),
            ("claude-opus-4-20250514", Some((15_000_000, 75_000_000))),
            ("claude-opus-4-9", None),
            ("claude-opus-4-5-20251101", Some((5_000_000, 25_000_000))),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                Some((1_000_000, 5_000_000)),
            ),
            ("gemini-3.1-pro-preview", Some((2_000_000, 12_000_000))),
            ("gemini-2.5-flash-lite", Some((100_000, 400_000))),
            ("llama3.2", None),
            ("", None),
        ] {
            let found = of_model(model).map(|price| (price.input, price.output));
            assert_eq!(found, price, "{model}");
        }
    }

    #[test]
    fn every_model_has_one_price() {
        let mut names: Vec<_> = PRICES.iter().map(|(name, ..)| name).collect();
        let listed = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed);
        let cost = of_model("o1").unwrap().of(1_000_000, 2_000_000).dollars();
        assert!((cost - 135.0).abs() < 1e-9, "{cost}");
    }
}
