//! `squall report`: the report of a run in one of its formats.

use squall_harness::report::ReportFormat;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::judging::read_report;
use crate::output_file;
use crate::render::output;
use crate::{reports, text};

pub(super) async fn run(report: ReportArgs) -> Result<(), Failure> {
    if let Some(file) = &report.output {
        output_file::check(file)?;
    }
    let format = ReportFormat::parse(&report.format).unwrap_or(ReportFormat::Html);
    let text = if let Some(file) = text::as_file(&report.run) {
        read_report(file)?.render(format)
    } else {
        reports::of_run(&report.store, &report.run, format).await?
    };
    match &report.output {
        Some(file) => output_file::write(file, text),
        None => output::document(&text),
    }
}
