//! Secrets that are known by how they look: what they begin with, what they are made of, how long they
//! are.
//!
//! One line a shape. `docs/redaction.md` shows the same table to those who ask what is taken out, and a
//! test compares. Source: the providers' documented prefixes.

use super::checks;

/// What the rest of a secret is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// `A-Z a-z 0-9`.
    Alnum,
    /// Those and `_`.
    Word,
    /// Those and `-`.
    Key,
    /// `A-Z 0-9`.
    Upper,
    /// `0-9 a-f A-F`.
    Hex,
    /// `A-Z a-z 0-9 + / =`.
    Base64,
    /// What keys are made of, and `.`.
    Dotted,
    /// What keys are made of, and `/`.
    Path,
    /// RFC 6750: `A-Z a-z 0-9 - . _ ~ + / =`.
    Bearer,
}

/// How many there are.
pub(super) const CLASSES: usize = 9;

impl Of {
    pub(super) fn holds(self, byte: u8) -> bool {
        let extra: &[u8] = match self {
            Self::Alnum => b"",
            Self::Word => b"_",
            Self::Key => b"_-",
            Self::Upper => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => return byte.is_ascii_hexdigit(),
            Self::Base64 => b"+/=",
            Self::Dotted => b"_-.",
            Self::Path => b"_-/",
            Self::Bearer => b"._~+/=-",
        };
        byte.is_ascii_alphanumeric() || extra.contains(&byte)
    }
}

/// A shape of secrets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Whose it is, for people.
    pub(super) name: &'static str,
    /// What it begins with.
    pub(super) prefix: &'static str,
    /// What comes then.
    pub(super) of: Of,
    /// How much of that there is at least.
    pub(super) least: usize,
    /// What tells it for certain, of what comes behind the prefix.
    pub(super) check: Option<fn(&str) -> bool>,
}

const fn shape(name: &'static str, prefix: &'static str, of: Of, least: usize) -> Shape {
    Shape {
        name,
        prefix,
        of,
        least,
        check: None,
    }
}

const fn checked(name: &'static str, prefix: &'static str, of: Of, least: usize) -> Shape {
    Shape {
        check: Some(checks::has_crc),
        ..shape(name, prefix, of, least)
    }
}

/// Of two whose prefixes begin alike the longer one comes first.
pub(super) const SHAPES: &[Shape] = &[
    shape("Squall", "squall_", Of::Hex, 64),
    shape("Anthropic", "sk-ant-", Of::Key, 8),
    shape("OpenRouter", "sk-or-", Of::Key, 8),
    shape("OpenAI, DeepSeek and others", "sk-", Of::Key, 8),
    shape("Stripe", "sk_live_", Of::Alnum, 8),
    shape("Stripe", "sk_test_", Of::Alnum, 8),
    shape("Stripe", "rk_live_", Of::Alnum, 8),
    shape("Stripe", "rk_test_", Of::Alnum, 8),
    shape("Stripe", "whsec_", Of::Base64, 24),
    shape("Google", "AIza", Of::Key, 20),
    shape("Google", "ya29.", Of::Key, 20),
    shape("Google", "GOCSPX-", Of::Key, 20),
    shape("AWS", "AKIA", Of::Upper, 16),
    shape("AWS", "ASIA", Of::Upper, 16),
    shape("AWS", "ABIA", Of::Upper, 16),
    shape("AWS", "ACCA", Of::Upper, 16),
    shape("AWS Bedrock", "ABSK", Of::Base64, 60),
    checked("GitHub", "ghp_", Of::Alnum, 20),
    checked("GitHub", "gho_", Of::Alnum, 20),
    checked("GitHub", "ghu_", Of::Alnum, 20),
    checked("GitHub", "ghs_", Of::Alnum, 20),
    checked("GitHub", "ghr_", Of::Alnum, 20),
    shape("GitHub", "github_pat_", Of::Word, 20),
    shape("GitLab", "glpat-", Of::Key, 16),
    shape("GitLab", "gldt-", Of::Key, 16),
    shape("GitLab", "glrt-", Of::Key, 16),
    shape("GitLab", "glcbt-", Of::Key, 16),
    shape("Slack", "xoxa-", Of::Key, 10),
    shape("Slack", "xoxb-", Of::Key, 10),
    shape("Slack", "xoxe-", Of::Key, 10),
    shape("Slack", "xoxe.", Of::Dotted, 10),
    shape("Slack", "xoxo-", Of::Key, 10),
    shape("Slack", "xoxp-", Of::Key, 10),
    shape("Slack", "xoxr-", Of::Key, 10),
    shape("Slack", "xoxs-", Of::Key, 10),
    shape("Slack", "xapp-", Of::Key, 10),
    shape("Slack", "hooks.slack.com/services/", Of::Path, 8),
    checked("npm", "npm_", Of::Alnum, 20),
    shape("PyPI", "pypi-", Of::Key, 16),
    shape("Groq", "gsk_", Of::Alnum, 20),
    shape("Hugging Face", "hf_", Of::Alnum, 20),
    shape("Replicate", "r8_", Of::Alnum, 20),
    shape("xAI", "xai-", Of::Key, 16),
    shape("Perplexity", "pplx-", Of::Key, 16),
    shape("Tavily", "tvly-", Of::Key, 16),
    shape("Fireworks", "fw-", Of::Key, 16),
    shape("Fireworks", "fw_", Of::Alnum, 20),
    shape("NVIDIA", "nvapi-", Of::Key, 16),
    shape("LangSmith", "lsv2_pt_", Of::Word, 16),
    shape("LangSmith", "lsv2_sk_", Of::Word, 16),
    shape("Langfuse", "sk-lf-", Of::Key, 16),
    shape("Pinecone", "pcsk_", Of::Word, 20),
    shape("SendGrid", "SG.", Of::Dotted, 60),
    shape("Shopify", "shpat_", Of::Hex, 32),
    shape("Shopify", "shpca_", Of::Hex, 32),
    shape("Shopify", "shppa_", Of::Hex, 32),
    shape("Shopify", "shpss_", Of::Hex, 32),
    shape("DigitalOcean", "dop_v1_", Of::Hex, 64),
    shape("DigitalOcean", "doo_v1_", Of::Hex, 64),
    shape("DigitalOcean", "dor_v1_", Of::Hex, 64),
    shape("Databricks", "dapi", Of::Hex, 32),
    shape("HashiCorp Vault", "hvs.", Of::Key, 24),
    shape("HashiCorp Vault", "hvb.", Of::Key, 24),
    shape("Supabase", "sbp_", Of::Hex, 40),
    shape("Linear", "lin_api_", Of::Alnum, 32),
    shape("Notion", "ntn_", Of::Alnum, 40),
    shape("Figma", "figd_", Of::Key, 40),
    shape("Atlassian", "ATATT3x", Of::Bearer, 64),
    shape("Grafana", "glsa_", Of::Word, 32),
    shape("Grafana", "glc_", Of::Base64, 32),
    shape("Sentry", "sntrys_", Of::Base64, 32),
    shape("Sentry", "sntryu_", Of::Hex, 64),
    shape("age", "AGE-SECRET-KEY-1", Of::Upper, 58),
];
