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

use squall_profiles::family::Family;
use squall_profiles::faults::modes;

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
         Prices that `after_usd` of [`quota_exhausted`](faults.md#budgets) and `usd` in \
         [`GET /v1/scopes`](api.md#chaos) use, in US\ndollars per million tokens of text. They are \
         estimates for tests, not a bill.\n\n\
         The source is the standard list prices in {}: \
         [OpenAI](https://developers.openai.com/api/docs/pricing),\n\
         [Anthropic](https://platform.claude.com/docs/en/about-claude/pricing) and\n\
         [Google](https://ai.google.dev/gemini-api/docs/pricing). Discounts and surcharges are ignored: \
         long prompts, cached\ninput, batches, priority, audio, images, other clouds. Gemini 3.6 to 3.8 \
         Flash have the price that is valid until the\nend of 2026.\n\n\
         A name matches with a date, a version, `latest` or `preview` after it, and a vendor or region \
         before it:\n`gpt-4o-2024-08-06`, `openai/gpt-4o`, \
         `us.anthropic.claude-sonnet-4-5-20250929-v1:0`. Other models have no price.\n\
         This page is generated.\n\n\
         | model | in | out |\n|---|--:|--:|\n",
        squall_profiles::prices::AS_OF
    );
    for (model, input, output) in squall_profiles::prices::list() {
        writeln!(text, "| `{model}` | {input:.2} | {output:.2} |").unwrap();
    }
    is_page("prices.md", &text);
}

#[test]
fn the_page_of_faults_has_a_row_for_each_mode() {
    let page = include_str!("../../docs/faults.md");
    for (family, heading) in [
        (Family::Network, "\n## Network\n"),
        (Family::Tool, "\n## Tools\n"),
        (Family::Llm, "\n## Models\n"),
        (Family::Context, "\n### Context attacks\n"),
    ] {
        let (_, section) = page.split_once(heading).expect(heading);
        let section = section.split("\n## ").next().unwrap_or_default();
        let mut listed = Vec::new();
        let mut lines = section.lines();
        // Rows of the tables whose first column is the mode.
        while lines.any(|line| line.starts_with("| mode |") || line.starts_with("| type |")) {
            let rows = lines
                .by_ref()
                .skip(1)
                .take_while(|line| line.starts_with('|'));
            listed.extend(rows.filter_map(|row| row.split('`').nth(1)));
        }
        let mut modes: Vec<_> = modes(family).iter().map(|mode| mode.name).collect();
        listed.sort_unstable();
        modes.sort_unstable();
        assert_eq!(listed, modes, "{heading}");
    }
}
