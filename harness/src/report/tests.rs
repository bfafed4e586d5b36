mod forms;

use serde_json::json;
use squall_journal::redact::{REDACTED, Redactor};

use super::testing::{fixture, run};
use super::*;

#[test]
fn g48_a_report_reads_back_and_keeps_to_its_schema() {
    let report = fixture();
    let written = json!(report);
    assert_eq!(
        Report::read(&written.to_string()).expect("reads back"),
        report
    );
    let schema = jsonschema::validator_for(&Report::schema()).expect("a schema");
    let wrong: Vec<_> = schema
        .iter_errors(&written)
        .map(|error| error.to_string())
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(!schema.is_valid(&json!({ "report_version": 1 })));
}

#[test]
fn what_is_no_report_says_what_is_wrong() {
    let mut newer = json!(fixture());
    newer["report_version"] = json!(2);
    for (text, expected) in [
        (newer.to_string(), "the report is of version 2"),
        ("<html>".to_owned(), "this is no report of Squall"),
        ("{}".to_owned(), "missing field `report_version`"),
    ] {
        let error = Report::read(&text).expect_err("no report").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn exchanges_of_failed_cells_come_before_all_others() {
    let mut run = run();
    let mut many = run.cells.swap_remove(0);
    many.evidence[0].exchanges = (0..2 * MOST_EXCHANGES).map(|n| format!("p-{n}")).collect();
    run.cells.insert(0, many);
    let wanted = wanted(&run);
    assert_eq!(wanted.len(), MOST_EXCHANGES);
    let place = |id: &str| wanted.iter().position(|wanted| wanted == id);
    let failed = place("1-7").max(place("gone-1"));
    assert!(failed < place("1-6"), "failed before in error");
    assert!(place("1-6") < place("p-0"), "in error before passed");
    assert_eq!(wanted.iter().filter(|id| *id == "1-7").count(), 1);
}

#[test]
fn only_exchanges_that_are_named_are_in_and_the_missing_ones_are_counted() {
    let mut run = run();
    let report = fixture();
    assert_eq!(report.exchanges_left_out, 1, "gone-1");
    run.cells.truncate(1);
    let fewer = Report::new(run, report.exchanges, String::new(), &Redactor::default());
    assert_eq!((fewer.exchanges.len(), fewer.exchanges_left_out), (0, 0));
}

#[test]
fn secrets_are_in_no_text_of_a_report() {
    let key = ["sk", "proj", "abcdefghijklmnopqrstuvwxyz0123456789ABCD"].join("-");
    let mut run = run();
    run.name = format!("with {key}");
    run.warnings = vec![format!("a warning of {key}")];
    run.error = Some(key.clone());
    let cell = &mut run.cells[0];
    cell.reason = Some(format!("because of {key}"));
    cell.evidence[0].prompt = format!("use {key}");
    cell.evidence[0].answer = Some(format!("used {key}"));
    cell.evidence[0].reason = Some(format!("it used {key}"));
    let report = Report::new(run, Vec::new(), String::new(), &Redactor::default());
    let written = json!(report).to_string();
    assert!(!written.contains(&key));
    assert_eq!(written.matches(REDACTED).count(), 7);
}
