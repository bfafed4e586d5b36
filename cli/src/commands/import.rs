//! `squall replay import`: writes incidents that other tools recorded as replay sessions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;
use squall_harness::count::count;
use squall_harness::import::{self, Fetching, ImportFormat, ImportOptions, Imported, Service};
use squall_journal::redact::Redactor;
use squall_journal::tape::Session;
use squall_proxy::upstream::Shared;
use squall_proxy::user_file;

use crate::args::ImportArgs;
use crate::config::{Config, DEFAULT_FILE};
use crate::daemon::dialler;
use crate::failure::Failure;
use crate::output_file;
use crate::render::paint::Paint;
use crate::render::{clean, output};
use crate::suite::LocalSuite;
use crate::text;

pub(super) async fn run(args: &ImportArgs) -> Result<(), Failure> {
    let config = configuration(args.config.as_deref())?;
    let redactor = Redactor::with_patterns(&config.redact)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let suite = args.suite.as_deref().map(LocalSuite::read).transpose()?;
    let tools = suite.map(|suite| {
        let of_suite = suite.suite.tools.written.into_iter().map(|(name, _)| name);
        of_suite
            .chain(config.proxy.tools.iter().map(|(name, _)| name.clone()))
            .collect::<BTreeSet<_>>()
    });
    let format = ImportFormat::parse(&args.from)
        .ok_or_else(|| Failure::Usage(format!("`{}` is not a format", args.from)))?;
    let source = Path::new(&args.source);
    let service =
        Service::of(format).filter(|_| !source.exists() && text::as_file(&args.source).is_none());
    let imported = match service {
        None => files(format, source, &redactor, tools.as_ref())?,
        Some(service) => {
            let shared =
                Shared::new(&config.proxy).map_err(|error| Failure::Usage(error.to_string()))?;
            let options = ImportOptions {
                name: &args.source,
                redactor: &redactor,
                tools: tools.as_ref(),
            };
            let fetching = fetching(args, service);
            let variable = |name: &str| std::env::var(name).ok();
            let fetched = fetching.run(&dialler(shared), &variable, options).await;
            fetched.map_err(|error| Failure::CouldNotRun(error.to_string()))?
        }
    };
    write(args, imported)
}

fn fetching(args: &ImportArgs, service: Service) -> Fetching {
    #[expect(
        clippy::disallowed_methods,
        reason = "ranges of time end now, by the clock of the service"
    )]
    let now = SystemTime::now();
    let since = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Fetching {
        service,
        source: args.source.clone(),
        status: args.status.clone(),
        range: args.date_range,
        min_latency_ms: 0,
        limit: args.limit,
        endpoint: args.endpoint.clone(),
        now_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
    }
}

/// The configuration of `--config`, else of `squall.yaml`. An unreadable one is an error, because it may have patterns
/// of secrets.
fn configuration(file: Option<&Path>) -> Result<Config, Failure> {
    let home = crate::home::home()?;
    let file = file.unwrap_or(Path::new(DEFAULT_FILE));
    if file == Path::new(DEFAULT_FILE) && !file.exists() {
        return Ok(Config::with_home(home));
    }
    Config::from_file(home, file)
}

/// Imports a file, or all files of a folder.
fn files(
    format: ImportFormat,
    source: &Path,
    redactor: &Redactor,
    tools: Option<&BTreeSet<String>>,
) -> Result<Imported, Failure> {
    let failed = |file: &Path, error: &dyn std::fmt::Display| {
        let file = clean(&file.display().to_string(), usize::MAX);
        Failure::Usage(format!("{file}: {error}"))
    };
    let mut files = vec![source.to_owned()];
    if source.is_dir() {
        let listed = std::fs::read_dir(source).map_err(|error| failed(source, &error))?;
        files = listed
            .flatten()
            .map(|one| one.path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
    }
    let mut imported = Imported::default();
    for file in files {
        let bytes = user_file::read(&file).map_err(|error| failed(&file, &error))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let options = ImportOptions {
            name: &name,
            redactor,
            tools,
        };
        imported
            .extend(import::read(format, &bytes, options).map_err(|error| failed(&file, &error))?);
    }
    Ok(imported)
}

/// Writes each session to a file, and lists what is not in them.
fn write(args: &ImportArgs, imported: Imported) -> Result<(), Failure> {
    let Imported { sessions, unmapped } = imported;
    if !sessions.is_empty() {
        std::fs::create_dir_all(&args.output)
            .map_err(|error| Failure::could_not(args.output.display(), error))?;
    }
    let mut items = Vec::new();
    for session in &sessions {
        let file = file(&args.output, session, &items);
        output_file::write_private(&file, &session.to_yaml())?;
        if !args.json {
            output::line(&format!("{}: {}", file.display(), contents(session)))?;
        }
        items.push((session.id.clone(), file));
    }
    for one in &unmapped {
        let warning = Paint::stderr().notable("not imported:");
        let [what, why] = [&one.what, &one.why].map(|text| clean(text, usize::MAX));
        output::report_line(&format!("{warning} {what}: {why}"));
    }
    if args.json {
        let items: Vec<_> = items
            .iter()
            .map(|(id, file)| json!({ "id": id, "file": file }))
            .collect();
        return output::json(&json!({ "items": items, "unmapped": unmapped }));
    }
    if sessions.is_empty() {
        output::line("no session was written")?;
    }
    Ok(())
}

/// The file of a session; files of one folder may have sessions with equal ids.
fn file(directory: &Path, session: &Session, taken: &[(String, PathBuf)]) -> PathBuf {
    let numbered = (2..).map(|number| format!("{}-{number}.yaml", session.id));
    let names = std::iter::once(format!("{}.yaml", session.id)).chain(numbered);
    let mut files = names.map(|name| directory.join(name));
    let is_free = |file: &PathBuf| taken.iter().all(|(_, other)| other != file);
    files.find(is_free).unwrap_or_default()
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
