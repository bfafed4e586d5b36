//! `squall replay import`: writes incidents that other tools recorded as replay sessions.

use std::path::Path;

use serde_json::json;
use squall_harness::count::count;
use squall_harness::import::{self, Fetching, ImportFormat, Imported, Service, Unmapped};
use squall_journal::tape::Session;
use squall_proxy::user_file;

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::output_file;
use crate::render::paint::Paint;
use crate::render::{clean, output};
use crate::sources::{ImportSetup, now_ms};
use crate::suite::LocalSuite;
use crate::text;

pub(super) async fn run(args: &ImportArgs) -> Result<(), Failure> {
    let suite = args.suite.as_deref().map(LocalSuite::read).transpose()?;
    let setup = ImportSetup::new(args.config.as_deref(), suite.as_ref())?;
    let format = ImportFormat::parse(&args.from)
        .ok_or_else(|| Failure::Usage(format!("`{}` is not a format", args.from)))?;
    let source = Path::new(&args.source);
    let service =
        Service::of(format).filter(|_| !source.exists() && text::as_file(&args.source).is_none());
    let (mut imported, failed) = match service {
        None => files(format, source, &setup)?,
        Some(service) => {
            let fetching = Fetching {
                service,
                source: args.source.clone(),
                status: args.status.clone(),
                range: args.date_range,
                min_latency_ms: 0,
                limit: args.limit,
                endpoint: args.endpoint.clone(),
                now_ms: now_ms(),
            };
            let fetched = setup.fetch(&fetching).await;
            (
                fetched.map_err(|error| Failure::CouldNotRun(error.to_string()))?,
                0,
            )
        }
    };
    imported.number_ids();
    write(args, &imported)?;
    match (failed, imported.sessions.is_empty()) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::NotPassed),
        _ => Err(Failure::Reported),
    }
}

/// Imports a file, or all files of a folder. Also returns the number of those that cannot be read; they are listed.
fn files(
    format: ImportFormat,
    source: &Path,
    setup: &ImportSetup,
) -> Result<(Imported, usize), Failure> {
    let mut files = vec![source.to_owned()];
    if source.is_dir() {
        let listed = std::fs::read_dir(source)
            .map_err(|error| Failure::Usage(format!("{}: {error}", source.display())))?;
        files = listed
            .flatten()
            .map(|one| one.path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
    }
    let (mut imported, mut failed) = (Imported::default(), 0);
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let bytes = user_file::read(&file).map_err(|error| error.to_string());
        let read = bytes.and_then(|bytes| import::read(format, &bytes, setup.options(&name)));
        match read {
            Ok(read) => imported.extend(read),
            Err(why) => {
                failed += 1;
                let what = file.display().to_string();
                imported.unmapped.push(Unmapped { what, why });
            }
        }
    }
    Ok((imported, failed))
}

/// Writes each session to a file, and lists what is not in them.
fn write(args: &ImportArgs, imported: &Imported) -> Result<(), Failure> {
    let Imported { sessions, unmapped } = imported;
    if !sessions.is_empty() {
        output_file::create_directory(&args.output)?;
    }
    let mut items = Vec::new();
    for session in sessions {
        let file = args.output.join(format!("{}.yaml", session.id));
        output_file::write_private(&file, &session.to_yaml())?;
        if !args.json {
            output::line(&format!("{}: {}", file.display(), contents(session)))?;
        }
        items.push(json!({ "id": session.id, "file": file }));
    }
    for one in unmapped {
        let warning = Paint::stderr().notable("not imported:");
        let [what, why] = [&one.what, &one.why].map(|text| clean(text, usize::MAX));
        output::report_line(&format!("{warning} {what}: {why}"));
    }
    if args.json {
        return output::json(&json!({ "items": items, "unmapped": unmapped }));
    }
    if sessions.is_empty() {
        output::line("no session was written")?;
    }
    Ok(())
}

/// What a session has.
fn contents(session: &Session) -> String {
    let parts = [
        (session.exchanges.len(), "exchange"),
        (session.tool_responses.len(), "tool response"),
        (session.llm_responses.len(), "model response"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts
        .map(|(number, noun)| count(number as u64, noun))
        .collect();
    if parts.is_empty() {
        return "the input only".to_owned();
    }
    parts.join(", ")
}
