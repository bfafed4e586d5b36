//! `squall profile`: manages the daemon's profiles, and checks profile files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use squall_control_api::WITH_VARIABLES;
use squall_documents::duration;
use squall_documents::variables::mentions_variable;
use squall_profiles::library::Library;
use squall_profiles::profile::parse_file;
use squall_profiles::tools::ToolNames;

use super::{Findings, chaos_path, fleet_query, print_list};
use crate::args::{ProfileCommand, ReadArgs, RemoteArgs};
use crate::client::{Client, path};
use crate::failure::Failure;
use crate::host;
use crate::known::Known;
use crate::profile_file;
use crate::render::output;
use crate::render::paint::Paint;
use crate::text::{self, environment};

const PROFILES: &str = "/v1/profiles";

const COLUMNS: [(&str, &str, &str); 4] = [
    ("NAME", "name", ""),
    ("SOURCE", "source", ""),
    ("RULES", "rules", ""),
    ("DESCRIPTION", "description", ""),
];

pub(super) async fn run(action: ProfileCommand) -> Result<(), Failure> {
    match action {
        ProfileCommand::List(read) => {
            let list = async |client: &Client| client.list(PROFILES).await;
            let items = host::read(&read.store, None, list).await?;
            print_list(&items, read.json, &COLUMNS, "no profiles")
        }
        ProfileCommand::Show { name, read } => show(&name, &read).await,
        ProfileCommand::Validate {
            files,
            config,
            json,
        } => validate(&files, config.as_deref(), json),
        ProfileCommand::Use {
            name,
            scope,
            seed,
            ttl,
            fleet,
            remote,
        } => {
            let (name, mut body) = match text::as_file(&name) {
                Some(file) => {
                    let profile = profile_file::read(file)?;
                    let body = json!({
                        "profile": profile.named_document(),
                        "secrets": profile.variables,
                    });
                    (profile.name, body)
                }
                None => (name.clone(), json!({ "profile": name })),
            };
            body["seed"] = json!(seed);
            body["ttl"] = json!(ttl.map(|ttl| format!("{}ms", ttl.as_millis())));
            let query = fleet_query(fleet);
            let path = format!("{}{query}", chaos_path(scope.as_deref()));
            let activation: Value = Client::new(&remote)?.put(&path, &body).await?;
            if remote.json {
                return output::json(&activation);
            }
            output::line(&activated(&name, &activation, scope.as_deref(), ttl, fleet))
        }
        ProfileCommand::Put { file, name, remote } => put(&file, name, &remote).await,
        ProfileCommand::Delete { name, remote } => delete(&name, &remote).await,
    }
}

async fn show(name: &str, args: &ReadArgs) -> Result<(), Failure> {
    if let Some(file) = text::as_file(name) {
        let profile = profile_file::read(file)?;
        return if args.json {
            output::json(&profile.named_document())
        } else {
            output::document(&format!("{}\n", profile.text.trim_end()))
        };
    }
    let path = path(&[PROFILES, name], &[]);
    let show = async |client: &Client| {
        if args.json {
            return output::json(&client.get::<Value>(&path).await?);
        }
        let text = client.get_text(&path, "application/yaml").await?;
        output::document(&format!("{}\n", text.trim_end()))
    };
    host::read(&args.store, None, show).await
}

/// Checks files like the daemon does, and prints errors and warnings.
fn validate(files: &[PathBuf], config: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let known = Known::read(config)?;
    let mut library = Library::builtin();
    // The files may extend each other in any order, so they are all added first.
    let mut add = |file: &PathBuf| -> Result<String, Vec<String>> {
        let text = text::read(file).map_err(|error| vec![error])?;
        let more = library.with_file(&file.display().to_string(), &text, environment());
        library = more.map_err(|errors| text::lines(&errors))?;
        Ok(text)
    };
    let added: Vec<_> = files.iter().map(&mut add).collect();
    let library = known.beside(&library);
    let found = files.iter().zip(added).map(|(file, text)| {
        let checked = text.and_then(|text| check(&library, &known.tools, file, &text));
        let (warnings, errors) = match checked {
            Ok(warnings) => (warnings, Vec::new()),
            Err(errors) => (Vec::new(), errors),
        };
        Findings {
            file: file.display().to_string(),
            summary: String::new(),
            errors,
            warnings,
        }
    });
    let found: Vec<_> = found.collect();
    if as_json {
        output::json(&found.iter().map(Findings::document).collect::<Vec<_>>())?;
    } else {
        found.iter().try_for_each(Findings::print)?;
    }
    found.iter().try_for_each(Findings::verdict)
}

/// A file's warnings, or its errors.
fn check(
    library: &Library,
    tools: &ToolNames,
    file: &Path,
    text: &str,
) -> Result<Vec<String>, Vec<String>> {
    let profile = parse_file(&file.display().to_string(), text, environment());
    let profile = profile.map_err(|errors| text::lines(&errors))?;
    let rules = library.rule_set_of(&profile, tools);
    rules.map_err(|error| vec![error.to_string()])?;
    let warnings = squall_profiles::validate::validate(&profile, library, tools);
    Ok(text::lines(&warnings))
}

/// The line for an activation.
fn activated(
    name: &str,
    activation: &Value,
    scope: Option<&str>,
    ttl: Option<Duration>,
    fleet: bool,
) -> String {
    let scope = scope.map_or("the default scope".to_owned(), |scope| {
        format!("scope {scope}")
    });
    let fleet = if fleet {
        " of every daemon of the fleet"
    } else {
        ""
    };
    let ttl = time_to_live(activation, ttl);
    if name == "none" {
        return format!("no chaos in {scope}{fleet}{ttl}");
    }
    let (name, seed) = (Paint::stdout().name(name), &activation["seed"]);
    format!("{name} is active in {scope}{fleet}, seed {seed}{ttl}")
}

/// The time to live of an activation, and why it differs from `--ttl`.
fn time_to_live(activation: &Value, requested: Option<Duration>) -> String {
    let Some(holds) = activation["ttl"].as_str() else {
        return String::new();
    };
    // A fleet's is what was left when this daemon applied it.
    let close = |requested: &Duration| {
        let holds = duration::parse(holds).unwrap_or_default();
        requested.saturating_sub(holds) < Duration::from_secs(1)
    };
    if let Some(requested) = requested.filter(close) {
        return format!(", for {}", duration::format(requested));
    }
    match (activation["ttl_from"].as_str(), requested) {
        (Some("safety.ttl"), Some(requested)) => format!(
            ", for {holds} instead of {}: the daemon's `safety.ttl` is the maximum",
            duration::format(requested)
        ),
        (Some("safety.ttl"), None) => format!(", for {holds}, the daemon's `safety.ttl`"),
        _ => format!(", for {holds}"),
    }
}

/// Stores a profile in the daemon.
async fn put(file: &Path, name: Option<String>, remote: &RemoteArgs) -> Result<(), Failure> {
    // Read here first, so that errors have the file's name and place.
    let profile = profile_file::read(file)?;
    let is_json = file
        .extension()
        .is_some_and(|extension| extension == "json");
    // The daemon has other variables, so their values are sent beside the text. It never returns them.
    let (content_type, body) = if mentions_variable(&profile.text) {
        let sent = json!({ "document": profile.text, "variables": profile.variables });
        (WITH_VARIABLES, sent.to_string())
    } else if is_json {
        ("application/json", profile.text)
    } else {
        ("application/yaml", profile.text)
    };
    let name = name.unwrap_or(profile.name);
    let path = path(&[PROFILES, &name], &[]);
    let client = Client::new(remote)?;
    client.put_text(&path, content_type, body).await?;
    let line = format!("profile {name} is stored; activate it with `squall profile use {name}`");
    output::result(remote.json, &json!({ "name": name }), &line)
}

async fn delete(name: &str, remote: &RemoteArgs) -> Result<(), Failure> {
    let path = path(&[PROFILES, name], &[]);
    Client::new(remote)?.delete(&path).await?;
    let line = format!("profile {name} is deleted");
    output::result(remote.json, &json!({ "deleted": name }), &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_that_was_cut_has_its_reason() {
        let hours = |hours| Some(Duration::from_hours(hours));
        for (holds, from, requested, expected) in [
            (json!(null), json!(null), None, ""),
            (json!("2h"), json!("request"), hours(2), ", for 2h"),
            (
                json!("1h"),
                json!("safety.ttl"),
                hours(2),
                ", for 1h instead of 2h: the daemon's `safety.ttl` is the maximum",
            ),
            (
                json!("1h"),
                json!("safety.ttl"),
                None,
                ", for 1h, the daemon's `safety.ttl`",
            ),
        ] {
            let activation = json!({ "ttl": holds, "ttl_from": from });
            assert_eq!(time_to_live(&activation, requested), expected);
        }
    }
}
