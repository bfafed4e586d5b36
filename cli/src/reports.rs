//! Report files of runs.

use std::path::{Path, PathBuf};

use squall_harness::report::{Report, ReportFormat};
use squall_harness::run::{RunKind, RunRecord};
use squall_harness::suite::ReportOutput;

use crate::args::{StoreArgs, TrialArgs};
use crate::client::{Client, RUNS, path};
use crate::failure::Failure;
use crate::host;
use crate::output_file;

/// The report files of a command.
#[derive(Debug)]
pub(crate) struct Reports {
    directory: PathBuf,
    formats: Vec<ReportFormat>,
    /// File name without extension, with `{timestamp}`, `{date}`, `{time}` and `{format}`; `None`: the command's
    /// default.
    template: Option<String>,
}

impl Reports {
    /// The reports of a command of this kind. Fails if they could not be written, before the run starts.
    pub(crate) fn of(
        kind: RunKind,
        trial: &TrialArgs,
        output: &ReportOutput,
    ) -> Result<Self, Failure> {
        let reports = Self::chosen(kind, trial.output.as_deref(), output);
        if !reports.formats.is_empty() {
            let is_there = |above: &&Path| !above.as_os_str().is_empty() && above.exists();
            let above = reports.directory.ancestors().find(is_there);
            tempfile::tempfile_in(above.unwrap_or(Path::new("."))).map_err(|error| {
                let directory = reports.directory.display();
                Failure::Usage(format!(
                    "{directory}: reports cannot be written there: {error}; say where with `--output`"
                ))
            })?;
        }
        Ok(reports)
    }

    fn chosen(kind: RunKind, directory: Option<&Path>, output: &ReportOutput) -> Self {
        let formats = match (kind, output.format) {
            (RunKind::Ci, _) => vec![
                ReportFormat::Html,
                ReportFormat::Json,
                ReportFormat::Junit,
                ReportFormat::Markdown,
            ],
            (_, format) => format.into_iter().collect(),
        };
        let directory = directory.map_or_else(|| PathBuf::from(&output.path), Path::to_owned);
        Self {
            directory,
            formats,
            template: match kind {
                RunKind::Ci => None,
                _ => output.filename_template.clone(),
            },
        }
    }

    /// The directory of the files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Fetches the reports and writes them; returns their paths.
    pub(crate) async fn write(
        &self,
        client: &Client,
        run: &RunRecord,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut written = Vec::new();
        if !self.formats.is_empty() {
            output_file::create_directory(&self.directory)?;
        }
        for format in &self.formats {
            let file = self.directory.join(self.name(run, *format));
            let text = fetch(client, &run.id, *format).await?;
            output_file::write(&file, text)?;
            written.push(file);
        }
        Ok(written)
    }

    fn name(&self, run: &RunRecord, format: ReportFormat) -> String {
        let ending = format.extension();
        match &self.template {
            Some(template) => {
                let ended = run.finished_at.as_deref().unwrap_or_default();
                let (date, time) = ended.split_once('T').unwrap_or_default();
                let digits = |text: &str| text.replace(|c: char| !c.is_ascii_digit(), "");
                let time = digits(time.split(['.', 'Z', '+', '-']).next().unwrap_or_default());
                let name = template
                    .replace("{timestamp}", &format!("{}T{time}Z", digits(date)))
                    .replace("{date}", date)
                    .replace("{time}", &time)
                    .replace("{format}", ending);
                // It names a file in the directory, so slashes are replaced.
                let name = name.replace(['/', '\\'], "-");
                if template.contains("{format}") {
                    name
                } else {
                    format!("{name}.{ending}")
                }
            }
            None if run.kind == RunKind::Ci => format!("squall-ci.{ending}"),
            None => format!("squall-{}-{}.{ending}", run.kind.as_str(), run.id),
        }
    }
}

/// A report, as the daemon renders it.
pub(crate) async fn fetch(
    client: &Client,
    run: &str,
    format: ReportFormat,
) -> Result<String, Failure> {
    let query = [("format", Some(format.as_str().to_owned()))];
    let path = path(&[RUNS, run, "report"], &query);
    let media_type = format.media_type().split(';').next().unwrap_or_default();
    client.get_text(&path, media_type).await
}

/// The report of a run, by a daemon or from this machine's store.
pub(crate) async fn of_run(
    store: &StoreArgs,
    run: &str,
    format: ReportFormat,
) -> Result<String, Failure> {
    let fetch = async |client: &Client| fetch(client, run, format).await;
    host::read(store, Some(("run", run)), fetch).await
}

/// A report as a document.
pub(crate) async fn read(client: &Client, run: &str) -> Result<Report, Failure> {
    let text = fetch(client, run, ReportFormat::Json).await?;
    Report::read(&text).map_err(|error| Failure::could_not("a report of the daemon", error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use squall_harness::run::{CoverageRecord, ScoresRecord};

    use super::*;

    fn run(kind: RunKind) -> RunRecord {
        let document = json!({
            "id": "0194", "kind": kind, "name": "x", "state": "passed", "score": null, "passed": null,
            "coverage": CoverageRecord::default(), "scores": ScoresRecord::default(), "seed": 1,
            "created_at": "", "started_at": null, "finished_at": "2026-11-22T12:00:03.500Z", "error": null,
            "reason": null, "daemon": "", "documents": [],
        });
        serde_json::from_value(document).expect("a run")
    }

    #[test]
    fn reports_are_called_as_the_suite_says() {
        let of = |format, template: Option<&str>| ReportOutput {
            format,
            path: "./out".to_owned(),
            filename_template: template.map(str::to_owned),
        };
        for (kind, output, directory, expected) in [
            (
                RunKind::Ci,
                of(Some(ReportFormat::Json), Some("x")),
                None,
                &[
                    "./out/squall-ci.html",
                    "./out/squall-ci.json",
                    "./out/squall-ci.xml",
                    "./out/squall-ci.md",
                ][..],
            ),
            (
                RunKind::Chaos,
                of(Some(ReportFormat::Html), None),
                Some("there"),
                &["there/squall-chaos-0194.html"],
            ),
            (
                RunKind::Contract,
                of(
                    Some(ReportFormat::Junit),
                    Some("../mine-{timestamp}.{format}"),
                ),
                None,
                &["./out/..-mine-20261122T120003Z.xml"],
            ),
            (
                RunKind::Contract,
                of(Some(ReportFormat::Html), Some("flakestorm-{date}-{time}")),
                None,
                &["./out/flakestorm-2026-11-22-120003.html"],
            ),
            (
                RunKind::Contract,
                of(Some(ReportFormat::Markdown), Some("mine")),
                None,
                &["./out/mine.md"],
            ),
            (RunKind::Chaos, of(None, None), None, &[]),
        ] {
            let reports = Reports::chosen(kind, directory.map(Path::new), &output);
            let run = run(kind);
            let files = reports.formats.iter().map(|format| {
                let file = reports.directory.join(reports.name(&run, *format));
                file.display().to_string()
            });
            assert_eq!(files.collect::<Vec<_>>(), expected);
        }
    }
}
