//! Pages of `docs/` that are written by the code they describe.
//!
//! A page that is out of date fails its test; `INSTA_UPDATE=always` writes it anew.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a panic here is a failed test, which says why"
)]

use std::fmt::Write as _;
use std::path::Path;

/// Holds that `docs/NAME` is `text`, or writes it.
fn is_page(name: &str, text: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&page, text).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        written == text,
        "docs/{name} is out of date; write it anew with INSTA_UPDATE=always"
    );
}

#[test]
fn the_page_of_prices_lists_what_budgets_go_by() {
    let mut text = format!(
        "# Prices\n\n\
         What `after_usd` of [`quota_exhausted`](faults.md#budgets) and `usd` in \
         [`GET /v1/scopes`](api.md#chaos) go\nby. This page is written by the code that uses it.\n\n\
         Dollars for a million tokens of text, standard list prices as published, collected in {}:\n\
         [OpenAI](https://developers.openai.com/api/docs/pricing),\n\
         [Anthropic](https://platform.claude.com/docs/en/about-claude/pricing) and\n\
         [Google](https://ai.google.dev/gemini-api/docs/pricing). What costs more or less than that \
         is counted as if\nit did not: long prompts, cached input, batches, priority, audio and \
         images, other clouds. Gemini 3.6 to\n3.8 Flash are at the price that holds until the end of 2026. So `usd` is a figure to test with, \
         not a bill.\n\n\
         A model is known by this name with a date, a version, `latest` or `preview` behind it \
         and a vendor or\nregion before it: `gpt-4o-2024-08-06`, `openai/gpt-4o`, \
         `us.anthropic.claude-sonnet-4-5-20250929-v1:0`. Any\nother model has no price, and none \
         is guessed.\n\n\
         | model | in | out |\n|---|--:|--:|\n",
        squall_profiles::prices::AS_OF
    );
    for (model, input, output) in squall_profiles::prices::list() {
        writeln!(text, "| `{model}` | {input:.2} | {output:.2} |").unwrap();
    }
    is_page("prices.md", &text);
}
