//! `squall report`: the report of a run in one of its formats.

use squall_harness::report::ReportFormat;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::host::Host;
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
        let host = Box::pin(Host::store(&report.store)).await?;
        let text = reports::fetch(host.client(), &report.run, format).await;
        let text = host.in_store(text, &format!("run `{}`", report.run), "squall runs list");
        host.close().await;
        text?
    };
    match &report.output {
        Some(file) => output_file::write(file, text),
        None => output::document(&text),
    }
}
