//! Certificates: signed statements about runs, as an HTML page or a PDF.
//!
//! ```text
//! page ── before │ seal │ after      seal = base64 of {"signature": …, "statement": …}
//!           └──── SHA-256 ────┘         └─ statement.page_sha256, signed with the rest
//! ```
//!
//! The statement is canonical JSON: sorted keys, no spaces, numbers as originally written. It is signed with
//! Ed25519 (RFC 8032). It contains the digest of the whole file without the seal, so every change of the file is
//! detected, in every version of Squall. A certificate proves only that the holder of a key made the statement. The
//! reader must compare the key's fingerprint to know the signer.

mod key;
mod pdf;
mod sheet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::key::{KeyError, SigningKey};
use super::Report;
use crate::digest::{canonical, hex, sha256};
use crate::run::{
    CoverageRecord, DemandRecord, DocumentVersion, RunKind, RunRecord, RunState, ScenarioRecord,
    ScoresRecord,
};
use squall_documents::named;

/// The mark before the seal. It occurs only once in a file.
const BEGIN: &str = "SQUALL-CERTIFICATE-1:";
/// The mark after the seal.
const END: &str = ":END";

/// The version of the statement.
const VERSION: u32 = 1;

/// Prefix of the signed bytes, so that signatures for other purposes are not valid for certificates.
const PURPOSE: &[u8] = b"squall certificate 1\n";

/// The statement of a certificate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Version of this format: 1.
    pub certificate_version: u32,
    /// The tester who states that the run was made.
    pub tester: String,
    /// The agent's name in the run; `null` if it has none.
    pub agent: Option<String>,
    /// Id of the run.
    pub run: String,
    /// What the run executed.
    pub kind: RunKind,
    /// The suite's name.
    pub suite: String,
    /// The final state; also `failed` if the score is below the suite's pass threshold.
    pub state: RunState,
    /// Whether the agent met the pass criteria; `null` if the run is inconclusive.
    pub passed: Option<bool>,
    /// The overall score, 0 to 100; `null` if there was nothing to judge.
    pub score: Option<f64>,
    /// The minimum score, including the suite's pass threshold; `null` if none was set.
    pub min_score: Option<f64>,
    /// The scores of its parts.
    pub scores: ScoresRecord,
    /// What was executed.
    pub coverage: CoverageRecord,
    /// Suite, contract and profiles, with versions and digests.
    pub documents: Vec<DocumentVersion>,
    /// The judged invariants.
    #[serde(default)]
    pub demands: Vec<DemandRecord>,
    /// The scenarios with their rules.
    #[serde(default)]
    pub scenarios: Vec<ScenarioRecord>,
    /// Seed of every draw.
    pub seed: u64,
    /// When the run ended, RFC 3339.
    pub finished_at: Option<String>,
    /// When the certificate was signed, RFC 3339.
    pub issued_at: String,
    /// Version of the Squall that signed it.
    pub squall_version: String,
    /// SHA-256 of the file without its seal, 64 hex digits.
    pub page_sha256: String,
    /// The Ed25519 key that verifies the signature, base64.
    pub public_key: String,
}

named! {
    /// The format of a certificate.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CertificateFormat {
        /// An HTML page.
        Html = "html",
        /// A PDF.
        Pdf = "pdf",
    }
}

impl CertificateFormat {
    /// The format for a file name's extension.
    pub fn of_file(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        let ending = ending.to_ascii_lowercase();
        Self::parse(if ending == "htm" { "html" } else { &ending })
    }
}

/// No certificate can be issued for a run that is not finished.
#[derive(Debug, thiserror::Error)]
#[error("the run {run} is {}; a certificate is of a run that is over", .state.as_str())]
pub struct NotOver {
    run: String,
    state: RunState,
}

/// Why a file is not a genuine certificate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGenuine {
    /// There is no seal, or more than one.
    #[error(
        "not a certificate of Squall: the file has {0} signed statements instead of one; \
         `squall certificate RUN --output FILE` writes one"
    )]
    Seals(usize),
    /// The seal is malformed.
    #[error("the signed statement was changed: {0}")]
    Unreadable(String),
    /// This code does not support its version.
    #[error("the certificate is of version {0}, and this Squall verifies version {VERSION}")]
    Version(u64),
    /// The signature does not match the statement.
    #[error("the signature does not match the statement: the file was changed")]
    Signature,
    /// The statement is genuine, but the rest of the file is not.
    #[error(
        "the file was changed: it does not show what was signed; the signed statement itself is intact"
    )]
    Page,
}

/// A certificate whose signature is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Genuine {
    /// Its statement.
    pub statement: Statement,
    /// The fingerprint of its key, to be compared with the signer's published one.
    pub fingerprint: String,
}

/// Issues the certificate of a finished run, as the content of a file.
pub fn issue(
    report: &Report,
    tester: &str,
    issued_at: &str,
    key: &SigningKey,
    form: CertificateFormat,
) -> Result<Vec<u8>, NotOver> {
    let run = &report.run;
    if !run.state.is_over() {
        let (run, state) = (run.id.clone(), run.state);
        return Err(NotOver { run, state });
    }
    let mut statement = statement(run, tester, issued_at, key);
    // Digest and signature have the same length as their placeholders, so the page can be rendered first.
    let placeholder = sealed(&statement, &"0".repeat(128));
    let sheet = sheet::of(&statement, &key.fingerprint());
    let seal = format!("{BEGIN}{placeholder}{END}");
    let mut file = match form {
        CertificateFormat::Html => sheet::page(&sheet, &seal).into_bytes(),
        CertificateFormat::Pdf => pdf::document(&sheet, &seal),
    };
    let (before, after) = around(&file, placeholder.as_bytes());
    statement.page_sha256 = digest_of(before, after);
    let signature = key.sign(&signed(&statement));
    let seal = sealed(&statement, &hex(&signature));
    let at = before.len();
    file.splice(at..at + placeholder.len(), seal.into_bytes());
    Ok(file)
}

/// Verifies that a file is a certificate and that no byte of it was changed.
pub fn verify(file: &[u8]) -> Result<Genuine, NotGenuine> {
    let places: Vec<_> = places(file, BEGIN.as_bytes()).collect();
    let &[at] = places.as_slice() else {
        return Err(NotGenuine::Seals(places.len()));
    };
    let unreadable = |why: &str| NotGenuine::Unreadable(why.to_owned());
    let (before, rest) = file.split_at(at + BEGIN.len());
    let length = find(rest, END.as_bytes()).ok_or_else(|| unreadable("it has no end"))?;
    let (seal, after) = rest.split_at(length);
    let text = STANDARD
        .decode(seal)
        .map_err(|_| unreadable("it is no base64"))?;
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| NotGenuine::Unreadable(error.to_string()))?;
    if canonical(&value).as_bytes() != text {
        return Err(unreadable("it is not canonical JSON"));
    }
    let version = value["statement"]["certificate_version"].as_u64();
    if let Some(other) = version.filter(|version| *version != u64::from(VERSION)) {
        return Err(NotGenuine::Version(other));
    }
    let statement: Statement = serde_json::from_value(value["statement"].clone())
        .map_err(|error| NotGenuine::Unreadable(error.to_string()))?;
    let public_key = STANDARD
        .decode(&statement.public_key)
        .map_err(|_| unreadable("its key is no base64"))?;
    let signature = value["signature"].as_str().and_then(unhex);
    let signature = signature.ok_or_else(|| unreadable("its signature is no hexadecimal"))?;
    if text != seal_of(&value["statement"], &hex(&signature)).as_bytes() {
        return Err(unreadable(
            "it holds more than a statement and its signature",
        ));
    }
    // Uses the statement in the file, because this version may serialise it differently.
    let said = [PURPOSE, canonical(&value["statement"]).as_bytes()].concat();
    UnparsedPublicKey::new(&ED25519, &public_key)
        .verify(&said, &signature)
        .map_err(|_| NotGenuine::Signature)?;
    if digest_of(before, after) != statement.page_sha256 {
        return Err(NotGenuine::Page);
    }
    let fingerprint = key::fingerprint(&public_key);
    Ok(Genuine {
        statement,
        fingerprint,
    })
}

fn statement(run: &RunRecord, tester: &str, issued_at: &str, key: &SigningKey) -> Statement {
    let threshold = run.pass_threshold;
    let least = threshold.into_iter().chain(run.min_score);
    let is_below = threshold.is_some_and(|least| run.score.is_none_or(|score| score < least));
    let fails = run.passed == Some(true) && is_below;
    Statement {
        certificate_version: VERSION,
        tester: tester.to_owned(),
        agent: run.agent.clone(),
        run: run.id.clone(),
        kind: run.kind,
        suite: run.name.clone(),
        state: if fails { RunState::Failed } else { run.state },
        passed: run.passed.map(|passed| passed && !fails),
        score: run.score,
        min_score: least.reduce(f64::max),
        scores: run.scores.clone(),
        coverage: run.coverage.clone(),
        documents: run.documents.clone(),
        demands: run.demands.clone(),
        scenarios: run.scenarios.clone(),
        seed: run.seed,
        finished_at: run.finished_at.clone(),
        issued_at: issued_at.to_owned(),
        squall_version: env!("CARGO_PKG_VERSION").to_owned(),
        page_sha256: "0".repeat(64),
        public_key: STANDARD.encode(key.public()),
    }
}

/// The signed bytes.
fn signed(statement: &Statement) -> Vec<u8> {
    [PURPOSE, canonical(&json!(statement)).as_bytes()].concat()
}

/// The content between the marks.
fn sealed(statement: &Statement, signature: &str) -> String {
    STANDARD.encode(seal_of(&json!(statement), signature))
}

/// The seal before base64 encoding: only a statement and its signature.
fn seal_of(statement: &Value, signature: &str) -> String {
    canonical(&json!({ "statement": statement, "signature": signature }))
}

fn around<'f>(file: &'f [u8], middle: &[u8]) -> (&'f [u8], &'f [u8]) {
    let at = find(file, middle).expect("the page carries its seal");
    (&file[..at], &file[at + middle.len()..])
}

fn digest_of(before: &[u8], after: &[u8]) -> String {
    let whole = [before, after].concat();
    sha256(whole)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    places(text, wanted).next()
}

fn places<'t>(text: &'t [u8], wanted: &'t [u8]) -> impl Iterator<Item = usize> + 't {
    let windows = text.windows(wanted.len()).enumerate();
    windows
        .filter(move |(_, window)| *window == wanted)
        .map(|(at, _)| at)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text
        .bytes()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests;
