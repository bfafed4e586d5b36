//! Validates suites, contracts and replay sessions, and checks what they may do here.
//!
//! Documents from the API are untrusted: they may not start programs or read files here. Such a suite is rejected
//! when it is sent, not when its run starts.

use serde_json::Value;
use squall_harness::session;
use squall_harness::suite::{self, Suite, SuiteError, Touched};

use crate::problem::ProblemDetail;
use crate::store::DocumentKind;
use crate::trust::SentVariables;
use crate::trust::Trust;

/// Warnings about a document that is put: settings without effect and likely mistakes; or all of its errors.
/// Variables of a suite may be `sent` with it. They are not stored; each run sends them again.
pub(crate) fn check(
    kind: DocumentKind,
    name: &str,
    text: &str,
    sent: &SentVariables,
    trust: &Trust,
) -> Result<Vec<ProblemDetail>, Vec<ProblemDetail>> {
    match kind {
        DocumentKind::Suite => {
            let suite = suite_of(name, text, sent, trust, ProblemDetail::located)?;
            Ok(suite.notes.iter().map(ProblemDetail::located).collect())
        }
        DocumentKind::Contract => contract_of(name, text, trust),
        DocumentKind::Replay => match session::parse(name, text) {
            Ok(_) => Ok(Vec::new()),
            Err(errors) => Err(errors.iter().map(ProblemDetail::pointed).collect()),
        },
        DocumentKind::Profile => Ok(Vec::new()),
    }
}

/// Parses the suite of the posted document; its errors point below `/suite`. It may use the variables that the
/// config lists and those `sent` with it.
pub(crate) fn suite(
    name: &str,
    document: &Value,
    sent: &SentVariables,
    trust: &Trust,
) -> Result<Suite, Vec<ProblemDetail>> {
    let text = document.to_string();
    let read = suite_of(name, &text, sent, trust, ProblemDetail::pointed);
    read.map_err(|wrong| {
        let below = |detail: ProblemDetail| ProblemDetail {
            pointer: detail.pointer.map(|at| format!("/suite{at}")),
            ..detail
        };
        wrong.into_iter().map(below).collect()
    })
}

fn suite_of(
    name: &str,
    text: &str,
    sent: &SentVariables,
    trust: &Trust,
    located: impl Fn(&SuiteError) -> ProblemDetail,
) -> Result<Suite, Vec<ProblemDetail>> {
    let read = trust.variables_and(sent, |variables| suite::parse(name, text, variables));
    let suite = read.map_err(|errors| errors.iter().map(located).collect::<Vec<_>>())?;
    allowed(suite.touches(), trust)?;
    Ok(suite)
}

fn contract_of(
    name: &str,
    text: &str,
    trust: &Trust,
) -> Result<Vec<ProblemDetail>, Vec<ProblemDetail>> {
    let located = |errors: &[SuiteError]| {
        errors
            .iter()
            .map(ProblemDetail::located)
            .collect::<Vec<_>>()
    };
    let read = trust.variables(|variables| suite::parse_contract(name, text, variables));
    let (contract, notes) = read.map_err(|errors| located(&errors))?;
    allowed(suite::touched_by_contract(&contract), trust)?;
    Ok(located(&notes))
}

fn allowed(touched: Vec<Touched>, trust: &Trust) -> Result<(), Vec<ProblemDetail>> {
    let wrong: Vec<_> = touched
        .into_iter()
        .filter_map(|one| match one {
            Touched::Program { .. } if trust.may_start_programs() => None,
            Touched::Program { pointer } => Some(ProblemDetail::at(
                pointer,
                "this would start a program on the daemon's machine; a document that arrives by API may do \
                 that only with `safety.commands: true` in squall.yaml",
            )),
            Touched::File { pointer } => Some(ProblemDetail::at(
                pointer,
                "this names a file, and the daemon reads none for a document that arrives by API; write \
                 what is in it here",
            )),
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}
