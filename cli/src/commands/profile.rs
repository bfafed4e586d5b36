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

use super::{chaos_path, print_list};
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
            activate(&name, &body, scope.as_deref(), ttl, &remote).await
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
    let mut reports = Vec::new();
    let mut invalid = false;
    // The files may extend each other in any order, so they are all added first.
    let mut added = Vec::with_capacity(files.len());
    for file in files {
        let text = text::read(file).map_err(|error| vec![error]);
        added.push(text.and_then(|text| {
            let name = file.display().to_string();
            let more = library.with_file(&name, &text, environment());
            library = more.map_err(|errors| text::lines(&errors))?;
            Ok(text)
        }));
    }
    let library = known.beside(&library);
    for (file, text) in files.iter().zip(added) {
        let (errors, warnings) = match text {
            Ok(text) => check(&library, &known.tools, file, &text),
            Err(errors) => (errors, Vec::new()),
        };
        invalid |= !errors.is_empty();
        reports.push((file, errors, warnings));
    }
    if as_json {
        let documents: Vec<Value> = reports
            .iter()
            .map(|(file, errors, warnings)| {
                json!({ "file": file, "valid": errors.is_empty(), "errors": errors, "warnings": warnings })
            })
            .collect();
        output::json(&documents)?;
    } else {
        for (file, errors, warnings) in &reports {
            output::tell_findings(errors, warnings);
            if errors.is_empty() {
                output::line(&format!("{}: valid", file.display()))?;
            }
        }
    }
    if invalid {
        Err(Failure::Reported)
    } else {
        Ok(())
    }
}

/// A file's errors and, if there are none, its warnings.
fn check(
    library: &Library,
    tools: &ToolNames,
    file: &Path,
    text: &str,
) -> (Vec<String>, Vec<String>) {
    let name = file.display().to_string();
    let profile = match parse_file(&name, text, environment()) {
        Ok(profile) => profile,
        Err(errors) => return (text::lines(&errors), Vec::new()),
    };
    if let Err(error) = library.rule_set_of(&profile, tools) {
        return (vec![error.to_string()], Vec::new());
    }
    let warnings = squall_profiles::validate::validate(&profile, library, tools);
    (Vec::new(), text::lines(&warnings))
}

async fn activate(
    name: &str,
    body: &Value,
    scope: Option<&str>,
    ttl: Option<Duration>,
    remote: &RemoteArgs,
) -> Result<(), Failure> {
    let activation: Value = Client::new(remote)?.put(&chaos_path(scope), body).await?;
    if remote.json {
        return output::json(&activation);
    }
    let paint = Paint::stdout();
    let seed = &activation["seed"];
    let scope = scope.map_or("the default scope".to_owned(), |scope| {
        format!("scope {scope}")
    });
    output::line(&format!(
        "{} is active in {scope}, seed {seed}{}",
        if name == "none" {
            "no chaos".to_owned()
        } else {
            paint.name(name)
        },
        time_to_live(&activation, ttl)
    ))
}

/// The time to live of an activation, and why it differs from `--ttl`.
fn time_to_live(activation: &Value, wanted: Option<Duration>) -> String {
    let Some(holds) = activation["ttl"].as_str() else {
        return String::new();
    };
    match (activation["ttl_from"].as_str(), wanted) {
        (Some("safety.ttl"), Some(wanted)) => format!(
            ", for {holds} instead of {}: the daemon's `safety.ttl` is the maximum",
            duration::format(wanted)
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
    output::done(remote.json, &json!({ "name": name }), &line)
}

async fn delete(name: &str, remote: &RemoteArgs) -> Result<(), Failure> {
    let path = path(&[PROFILES, name], &[]);
    Client::new(remote)?.delete(&path).await?;
    let line = format!("profile {name} is deleted");
    output::done(remote.json, &json!({ "deleted": name }), &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_that_was_cut_has_its_reason() {
        let hours = |hours| Some(Duration::from_hours(hours));
        for (holds, from, wanted, expected) in [
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
            assert_eq!(time_to_live(&activation, wanted), expected);
        }
    }
}
