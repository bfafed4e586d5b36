//! `squall report`: a run's report, in one of its forms.

use std::path::Path;

use squall_harness::report::{self, Format};

use crate::args::Report;
use crate::failure::Failure;
use crate::host::Host;
use crate::output_file;
use crate::render::output;
use crate::reports;
use crate::text;

pub(super) async fn run(report: Report) -> Result<(), Failure> {
    if let Some(file) = &report.output {
        output_file::check(file)?;
    }
    let format = Format::from(report.format);
    let file = Path::new(&report.run);
    let text = if file.is_file() || is_path(&report.run) {
        drawn_again(file, format)?
    } else {
        fetched(&report, format).await?
    };
    match &report.output {
        Some(file) => output_file::write(file, text),
        None => output::document(&text),
    }
}

/// Whether a file is meant: ids of runs have neither dots nor slashes.
fn is_path(named: &str) -> bool {
    named.contains(['.', '/', '\\'])
}

/// The report of a run that a daemon has, or the store.
async fn fetched(report: &Report, format: Format) -> Result<String, Failure> {
    let host = Box::pin(Host::open(&report.site, None)).await?;
    let text = reports::fetch(host.client(), &report.run, format).await;
    host.close().await;
    text
}

/// A report that was kept as JSON, in another form.
fn drawn_again(file: &Path, format: Format) -> Result<String, Failure> {
    let text = text::read(file).map_err(|error| {
        let error = error.in_file(file);
        Failure::Usage(format!(
            "{error}; name a report, as `squall report RUN --format json` writes it, or a run: `squall runs list`"
        ))
    })?;
    let read = report::Report::read(&text)
        .map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    Ok(read.render(format))
}
