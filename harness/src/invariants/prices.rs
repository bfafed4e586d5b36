//! `prices:`: what models' tokens cost.

use squall_documents::Fields;
use squall_profiles::glob::Glob;

use crate::pattern::glob;

/// Prices of model tokens, by globs for model names; the first match applies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(Vec<(Glob, TokenPrice)>);

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenPrice {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
}

impl Prices {
    /// US dollars for the tokens of a model; `None`: it has no price.
    #[expect(clippy::cast_precision_loss, reason = "to multiply with a price")]
    pub fn cost(&self, model: &str, input: u64, output: u64) -> Option<f64> {
        let (_, price) = self.0.iter().find(|(glob, _)| glob.matches(model))?;
        // Prices are per million tokens.
        Some((input as f64 * price.input + output as f64 * price.output) / 1e6)
    }

    /// Whether no price is configured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Prices {
    let what = "a map from model to `{input: 2.5, output: 10}`, dollars for a million tokens";
    let about = "What models' tokens cost, by a glob over their names.";
    let pairs = fields.field("prices", about, |value| {
        value.pairs(what, |name, value| {
            let glob = glob(value.reader, name);
            let price = value.fields("`{input: 2.5, output: 10}`", |fields| {
                let about = "US dollars for a million tokens in.";
                let input = fields.real("input", about, 0.0..=f64::MAX, " US dollars");
                let about = "US dollars for a million tokens out.";
                let output = fields.real("output", about, 0.0..=f64::MAX, " US dollars");
                for side in ["input", "output"] {
                    fields.require(side, "US dollars for a million tokens");
                }
                Some(TokenPrice {
                    input: input?,
                    output: output?,
                })
            });
            Some((glob?, price?))
        })
    });
    let pairs = pairs.unwrap_or_default().into_iter();
    Prices(pairs.map(|(_, price)| price).collect())
}
