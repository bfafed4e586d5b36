//! The visible content of a certificate, and its HTML page.

use super::{BEGIN, Statement};
use crate::count::count;
use crate::report::{html, shown, words};

const STYLE: &str = include_str!("sheet.css");

/// The visible content, independent of the format.
pub(super) struct Sheet {
    /// The name of the suite.
    pub(super) title: String,
    /// The verdict in a word.
    pub(super) verdict: String,
    /// Score and coverage, in a sentence.
    pub(super) lead: String,
    /// Groups of lines, each with a name and a value.
    pub(super) groups: Vec<(&'static str, Vec<(String, String)>)>,
    /// A statement of what the certificate proves.
    pub(super) foot: &'static str,
    /// Whether the agent passed.
    pub(super) passed: Option<bool>,
}

pub(super) fn of(statement: &Statement, fingerprint: &str) -> Sheet {
    let coverage = &statement.coverage;
    let score = match statement.score {
        Some(score) => format!("Score {} of 100", words::score(score)),
        None => "No score".to_owned(),
    };
    let lead = format!(
        "{score}, with {} of {} under chaos exercised and {} applied.",
        coverage.exercised,
        count(coverage.chaos_cells, "cell"),
        count(coverage.rules_applied, "fault")
    );
    let mut sheet = Sheet {
        title: statement.suite.clone(),
        verdict: statement.state.as_str().to_owned(),
        lead,
        groups: vec![
            ("Agent and suite", tested(statement)),
            ("Invariants and scenarios", demanded(statement)),
            ("Result", came_to(statement)),
            ("Sources", made_of(statement)),
            ("Who says so", signed_by(statement, fingerprint)),
        ],
        foot: "The file carries this statement signed with Ed25519. “squall certificate verify FILE” finds any change to \
               it; compare the key's fingerprint with the one that the tester names.",
        passed: statement.passed,
    };
    // All texts are made visible, and none may contain the mark of the seal.
    let rows = sheet.groups.iter_mut().flat_map(|(_, rows)| rows);
    let texts = rows.flat_map(|(name, value)| [name, value]);
    for text in texts.chain([&mut sheet.title]) {
        *text = shown(text).replace(BEGIN, "SQUALL-CERTIFICATE-1 :");
    }
    sheet
}

fn row(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn tested(statement: &Statement) -> Vec<(String, String)> {
    let kind = statement.kind;
    vec![
        row("Agent", statement.agent.as_deref().unwrap_or("not named")),
        row("Tried", format!("{}: {}", kind.as_str(), words::kind(kind))),
        row("Run", &*statement.run),
        row(
            "Over at",
            statement.finished_at.as_deref().unwrap_or("unknown"),
        ),
        row("Seed", statement.seed.to_string()),
    ]
}

/// Most invariants, most scenarios and most rules of one that are shown; the statement has them all.
const SHOWN: usize = 100;

/// Invariants with what they demand, and scenarios with their rules.
fn demanded(statement: &Statement) -> Vec<(String, String)> {
    let more = |left: usize| (left > 0).then(|| row("And", format!("{left} more")));
    let demands = statement.demands.iter().take(SHOWN).map(|one| {
        let parameters = match &*one.parameters {
            "" => String::new(),
            some => format!(", {some}"),
        };
        let told = format!("{} ({}){parameters}", one.r#type, one.severity);
        row(&format!("Invariant {}", one.invariant), told)
    });
    let scenarios = statement.scenarios.iter().take(SHOWN).map(|one| {
        let mut rules: Vec<_> = one.rules.iter().take(SHOWN).cloned().collect();
        if rules.is_empty() {
            rules.push("no chaos".to_owned());
        }
        row(&format!("Scenario {}", one.name), rules.join("; "))
    });
    demands
        .chain(more(statement.demands.len().saturating_sub(SHOWN)))
        .chain(scenarios)
        .chain(more(statement.scenarios.len().saturating_sub(SHOWN)))
        .collect()
}

fn came_to(statement: &Statement) -> Vec<(String, String)> {
    let threshold = statement.min_score;
    let threshold = threshold.map_or_else(|| "none required".to_owned(), |least| least.to_string());
    let mut rows = vec![
        row("Score", words::score_or_none(statement.score)),
        row("Pass threshold", threshold),
    ];
    let components = words::components(&statement.scores);
    rows.extend(
        components
            .into_iter()
            .map(|(name, score)| row(name, words::score(score))),
    );
    let invocations = statement.coverage.agent_invocations;
    rows.push(row("Invocations of the agent", invocations.to_string()));
    rows
}

fn made_of(statement: &Statement) -> Vec<(String, String)> {
    let mut rows: Vec<_> = statement
        .documents
        .iter()
        .map(|document| {
            let version = document.shown_version();
            let version =
                version.map_or_else(String::new, |version| format!(", version {version}"));
            let value = format!("{}{version}, SHA-256 {}", document.name, document.digest);
            row(&document.kind, value)
        })
        .collect();
    if !statement.documents.iter().any(|one| one.kind == "agent") {
        rows.push(row(
            "agent",
            "none of its files is known, so no digest tells it from others",
        ));
    }
    rows.push(row("Squall", &*statement.squall_version));
    rows
}

fn signed_by(statement: &Statement, fingerprint: &str) -> Vec<(String, String)> {
    vec![
        row("Tester", &*statement.tester),
        row("Date", &*statement.issued_at),
        row("Public key (Ed25519)", &*statement.public_key),
        row("Its fingerprint", fingerprint),
    ]
}

/// The sheet as a page that carries its seal.
pub(super) fn page(sheet: &Sheet, seal: &str) -> String {
    let class = match sheet.passed {
        Some(true) => "verdict passed",
        Some(false) => "verdict failed",
        None => "verdict",
    };
    let body = maud::html! {
        main {
            p class="eyebrow" { "Squall certificate" }
            h1 { (sheet.title) }
            p class=(class) { (sheet.verdict) }
            p class="lead" { (sheet.lead) }
            @for (heading, rows) in &sheet.groups {
                h2 { (heading) }
                dl { @for (name, value) in rows { dt { (name) } dd { (value) } } }
            }
            p class="foot" { (sheet.foot) }
            details {
                summary { "The signed statement, base64" }
                pre tabindex="0" role="region" aria-label="Signed statement" { (seal) }
            }
        }
    };
    let title = format!("Certificate: {} {}", sheet.title, sheet.verdict);
    html::page(&title, STYLE, &body)
}
