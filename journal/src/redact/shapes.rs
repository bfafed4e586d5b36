//! Secrets recognised by their shape.
//!
//! Sources: the providers' documented prefixes. `docs/redaction.md` has the same table, and a test compares.

use std::sync::LazyLock;

use super::Secret;
use crate::patterns::{CARD, Patterns, is_card};

const ALNUM: &str = "A-Za-z0-9";
const WORD: &str = "A-Za-z0-9_";
const KEY: &str = "A-Za-z0-9_-";
const UPPER: &str = "A-Z0-9";
const DOTTED: &str = "A-Za-z0-9_.-";
const PATH: &str = "A-Za-z0-9_/-";
const BEARER: &str = "A-Za-z0-9._~+/=-";
pub(super) const HEX: &str = "0-9A-Fa-f";
pub(super) const BASE64: &str = "A-Za-z0-9+/=";

/// Keys: issuer, prefix, characters of the rest, and its least length. Of two prefixes where one begins with the
/// other, the longer is first.
#[rustfmt::skip]
pub(super) const KEYS: &[(&str, &str, &str, usize)] = &[
    ("Squall", "squall_", HEX, 64),
    ("Anthropic", "sk-ant-", KEY, 8),
    ("OpenRouter", "sk-or-", KEY, 8),
    ("Langfuse", "sk-lf-", KEY, 16),
    ("OpenAI, DeepSeek and others", "sk-", KEY, 8),
    ("Stripe", "sk_live_", ALNUM, 8),
    ("Stripe", "sk_test_", ALNUM, 8),
    ("Stripe", "rk_live_", ALNUM, 8),
    ("Stripe", "rk_test_", ALNUM, 8),
    ("Stripe", "whsec_", BASE64, 24),
    ("Google", "AIza", KEY, 20),
    ("Google", "ya29.", KEY, 20),
    ("Google", "GOCSPX-", KEY, 20),
    ("AWS", "AKIA", UPPER, 16),
    ("AWS", "ASIA", UPPER, 16),
    ("AWS", "ABIA", UPPER, 16),
    ("AWS", "ACCA", UPPER, 16),
    ("AWS Bedrock", "ABSK", BASE64, 60),
    ("GitHub", "ghp_", ALNUM, 20),
    ("GitHub", "gho_", ALNUM, 20),
    ("GitHub", "ghu_", ALNUM, 20),
    ("GitHub", "ghs_", ALNUM, 20),
    ("GitHub", "ghr_", ALNUM, 20),
    ("GitHub", "github_pat_", WORD, 20),
    ("GitLab", "glpat-", KEY, 16),
    ("GitLab", "gldt-", KEY, 16),
    ("GitLab", "glrt-", KEY, 16),
    ("GitLab", "glcbt-", KEY, 16),
    ("Slack", "xoxa-", KEY, 10),
    ("Slack", "xoxb-", KEY, 10),
    ("Slack", "xoxe-", KEY, 10),
    ("Slack", "xoxe.", DOTTED, 10),
    ("Slack", "xoxo-", KEY, 10),
    ("Slack", "xoxp-", KEY, 10),
    ("Slack", "xoxr-", KEY, 10),
    ("Slack", "xoxs-", KEY, 10),
    ("Slack", "xapp-", KEY, 10),
    ("Slack", "hooks.slack.com/services/", PATH, 8),
    ("npm", "npm_", ALNUM, 20),
    ("PyPI", "pypi-", KEY, 16),
    ("Groq", "gsk_", ALNUM, 20),
    ("Hugging Face", "hf_", ALNUM, 20),
    ("Replicate", "r8_", ALNUM, 20),
    ("xAI", "xai-", KEY, 16),
    ("Perplexity", "pplx-", KEY, 16),
    ("Tavily", "tvly-", KEY, 16),
    ("Fireworks", "fw-", KEY, 16),
    ("Fireworks", "fw_", ALNUM, 20),
    ("NVIDIA", "nvapi-", KEY, 16),
    ("LangSmith", "lsv2_pt_", WORD, 16),
    ("LangSmith", "lsv2_sk_", WORD, 16),
    ("Pinecone", "pcsk_", WORD, 20),
    ("SendGrid", "SG.", DOTTED, 60),
    ("Shopify", "shpat_", HEX, 32),
    ("Shopify", "shpca_", HEX, 32),
    ("Shopify", "shppa_", HEX, 32),
    ("Shopify", "shpss_", HEX, 32),
    ("DigitalOcean", "dop_v1_", HEX, 64),
    ("DigitalOcean", "doo_v1_", HEX, 64),
    ("DigitalOcean", "dor_v1_", HEX, 64),
    ("Databricks", "dapi", HEX, 32),
    ("HashiCorp Vault", "hvs.", KEY, 24),
    ("HashiCorp Vault", "hvb.", KEY, 24),
    ("Supabase", "sbp_", HEX, 40),
    ("Linear", "lin_api_", ALNUM, 32),
    ("Notion", "ntn_", ALNUM, 40),
    ("Figma", "figd_", KEY, 40),
    ("Atlassian", "ATATT3x", BEARER, 64),
    ("Grafana", "glsa_", WORD, 32),
    ("Grafana", "glc_", BASE64, 32),
    ("Sentry", "sntrys_", BASE64, 32),
    ("Sentry", "sntryu_", HEX, 64),
    ("age", "AGE-SECRET-KEY-1", UPPER, 58),
];

/// Kind, pattern, and a test of the match.
type SecretShape = (&'static str, &'static str, fn(&str) -> bool);

#[rustfmt::skip]
const OTHERS: &[SecretShape] = &[
    ("JSON Web Token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", any),
    ("Telegram", r"\bbot[0-9]{6,12}:[A-Za-z0-9_-]{30,}", any),
    ("private key", r"(?s)-----BEGIN [A-Z0-9 ]{0,50}PRIVATE KEY(?: BLOCK)?-----(?:.*?-----END [A-Z0-9 ]{0,50}PRIVATE KEY(?: BLOCK)?-----|.*)", any),
    ("credentials", r"(?i-u)\bbearer {1,8}(?P<v>[a-z0-9._~+/=-]{16,})", any),
    ("credentials", r"(?i-u)\bbasic {1,8}(?P<v>[a-z0-9+/]{5,}=+)", any),
    ("credentials", r#"(?i-u)\bauthorization[ :="']{1,4}(?:bearer|basic|token) {1,8}(?P<v>[a-z0-9._~+/=-]{4,})"#, any),
    ("credentials", r#"(?i-u)\b(?:aws_secret_access_key[ :="']{1,5}|accountkey=)(?P<v>[a-z0-9+/=]{40,})"#, any),
    ("user information", r#"://(?P<v>[^\s/?#"'<>]+)@"#, is_user_info),
    ("payment card", CARD, is_card),
];

fn any(_: &str) -> bool {
    true
}

/// `user:password`, or a user that looks like a key.
fn is_user_info(written: &str) -> bool {
    written.len() >= 16 || (written.len() > 1 && written.contains(':'))
}

/// [`KEYS`], then [`OTHERS`].
static SHAPES: LazyLock<Patterns> = LazyLock::new(|| {
    let keys = KEYS.iter().map(|(_, prefix, class, least)| {
        let prefix = regex::escape(prefix);
        format!("{prefix}[{class}]{{{least},}}")
    });
    let keys: Vec<String> = keys.collect();
    let keys = format!(r"(?:\b|_)(?P<v>{})", keys.join("|"));
    let others = OTHERS.iter().map(|(_, pattern, _)| *pattern);
    Patterns::new([&*keys].into_iter().chain(others))
});

/// Finds secrets in a text, without decoding.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    for (row, range) in SHAPES.find(text) {
        let written = &text[range.clone()];
        let name = match row.checked_sub(1).map(|row| OTHERS[row]) {
            None => {
                let mut keys = KEYS.iter().filter(|key| written.starts_with(key.1));
                keys.next().map(|key| key.0)
            }
            Some((name, _, is_one)) => is_one(written).then_some(name),
        };
        found.extend(name.map(|name| Secret::new(range, name)));
    }
}
