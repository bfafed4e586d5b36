//! Suites on the user's machine: a file, the files that it names, and this process's variables.
//!
//! The daemon gets one document with the named files inserted, and the values of its variables separately. It has
//! other files and variables of its own, and stores none of these values.

use squall_documents::VariableError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use squall_documents::variables::{Variables, expand};
use squall_harness::suite::{self, Suite, SuiteError, SuiteOfFiles, SuitePlaces};

use crate::args::DEFAULT_SUITE;
use crate::failure::Failure;
use crate::text::{self, environment};

/// A parsed suite, and the document for the daemon.
pub(crate) struct LocalSuite {
    /// The suite.
    pub(crate) suite: Suite,
    /// The document for the daemon: variables not expanded.
    pub(crate) document: Value,
    /// Values of its variables; empty for those that are not set. Never shown.
    pub(crate) secrets: BTreeMap<String, String>,
    places: SuitePlaces,
}

impl LocalSuite {
    /// Reads a suite; reports all of its errors at once.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        Self::read_noting(file).map_err(|errors| text::usage(&errors))
    }

    /// Reads a suite with these replay sessions instead of its own, if there are any.
    pub(crate) fn with_sessions(file: &Path, sessions: &[String]) -> Result<Self, Failure> {
        Self::read_files(file, sessions).map_err(|errors| text::usage(&errors))
    }

    /// The same, with the errors as a list.
    pub(crate) fn read_noting(file: &Path) -> Result<Self, Vec<String>> {
        Self::read_files(file, &[])
    }

    fn read_files(file: &Path, sessions: &[String]) -> Result<Self, Vec<String>> {
        if file == Path::new(DEFAULT_SUITE) && !file.exists() {
            let missing = format!(
                "there is no {DEFAULT_SUITE} here; name a suite with `-c FILE`, or write one with `squall init`"
            );
            return Err(vec![missing]);
        }
        let text = text::read(file).map_err(|error| vec![error])?;
        Self::parse(&file.display().to_string(), &text, environment(), sessions)
    }

    /// Parses the text of a suite.
    pub(crate) fn parse(
        file: &str,
        text: &str,
        variables: Variables<'_>,
        sessions: &[String],
    ) -> Result<Self, Vec<String>> {
        let failed = |errors: Vec<SuiteError>| text::lines(&errors);
        let SuiteOfFiles {
            suite,
            mut document,
            places,
        } = suite::read_local(file, text, variables, &open, sessions).map_err(failed)?;
        name(&mut document, file);
        Ok(Self {
            secrets: secrets(&document, variables),
            suite,
            document,
            places,
        })
    }

    /// `file:line:column` of a JSON pointer into the document.
    pub(crate) fn place(&self, pointer: &str) -> String {
        self.places.find(pointer)
    }
}

/// Reads a file that `from` names, relative to it. A folder is read as the list of its documents.
fn open(path: &str, from: &str) -> Result<(String, String), String> {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let file = folder.join(path);
    if file.is_dir() {
        let mut found = Vec::new();
        add_documents(&file, &mut found)?;
        if found.is_empty() {
            let folder = file.display();
            return Err(format!("`{folder}` has no .yaml, .yml or .json file"));
        }
        let names = found.iter().map(|found| found.strip_prefix(&file));
        let names = names.filter_map(|name| Some(name.ok()?.display().to_string()));
        let all = file.join("*").display().to_string();
        return Ok((all, names.collect::<Value>().to_string()));
    }
    let text = text::read(&file)?;
    Ok((file.display().to_string(), text))
}

/// Adds a file, or the documents in a folder and its folders by name. Hidden entries and links to folders are left out.
pub(crate) fn add_documents(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let unread = |error| format!("{}: cannot be read: {error}", path.display());
    if !std::fs::metadata(path).map_err(unread)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(unread)?;
    let entries = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(unread)?;
    entries.sort();
    for entry in entries {
        let ending = entry.extension().and_then(|ending| ending.to_str());
        let is_hidden = entry
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let enters = if entry.is_dir() {
            !entry.is_symlink()
        } else {
            matches!(ending, Some("yaml" | "yml" | "json"))
        };
        if enters && !is_hidden {
            add_documents(&entry, files)?;
        }
    }
    Ok(())
}

/// Without a name of its own, a suite gets the name of its file.
fn name(document: &mut Value, file: &str) {
    let stem = Path::new(file).file_stem();
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    if let (Some(members), Some(stem)) = (document.as_object_mut(), stem) {
        members.entry("name").or_insert(Value::String(stem));
    }
}

/// The values of a document's variables.
fn secrets(document: &Value, variables: Variables<'_>) -> BTreeMap<String, String> {
    let Variables::From(lookup) = variables else {
        return BTreeMap::new();
    };
    let found = RefCell::new(BTreeMap::new());
    let keep = |name: &str| -> Result<String, VariableError> {
        let value = lookup(name);
        // An unset variable has a default, which also applies to an empty value, as in a shell.
        let set = value.clone().unwrap_or_default();
        found.borrow_mut().insert(name.to_owned(), set);
        value
    };
    each_text(document, &mut |text| {
        // Texts that cannot be expanded were rejected when the suite was parsed.
        let _ = expand(text, Variables::From(&keep));
    });
    found.into_inner()
}

fn each_text(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(members) => {
            for (name, member) in members {
                see(name);
                each_text(member, see);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Result<String, VariableError> {
        match name {
            "HOST" => Ok("127.0.0.1:1".to_owned()),
            "TOKEN" => Ok("hunter2".to_owned()),
            _ => Err(VariableError::NotSet),
        }
    }

    #[test]
    fn variables_are_sent_apart_and_never_in_the_document() {
        let text = "agent:\n  endpoint: http://$HOST/$unset\n  headers: {Authorization: 'Bearer ${TOKEN}'}\n\
                    golden_prompts: ['${NOPE:-hello} $${TOKEN}']\ninvariants: [{type: completes}]\n";
        let read = LocalSuite::parse(
            "dir/my suite.yaml",
            text,
            Variables::From(&environment),
            &[],
        );
        let read = read.map_err(|errors| errors.join("\n")).expect("a suite");
        assert_eq!(read.document["name"], "my suite");
        assert_eq!(read.document["agent"]["endpoint"], "http://${HOST}/$unset");
        assert_eq!(
            read.document["agent"]["headers"]["Authorization"],
            "Bearer ${TOKEN}"
        );
        assert!(!read.document.to_string().contains("hunter2"));
        let secrets: Vec<_> = read.secrets.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(
            secrets,
            [("HOST", "127.0.0.1:1"), ("NOPE", ""), ("TOKEN", "hunter2")]
        );
        assert_eq!(read.place("/agent/headers"), "dir/my suite.yaml:3:12");
    }

    #[test]
    fn files_are_found_beside_the_one_that_names_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let suite = directory.path().join("suite.yaml");
        std::fs::create_dir(directory.path().join("parts")).expect("a directory");
        for (name, text) in [
            (
                "suite.yaml",
                "agent: {endpoint: 'http://a.test/'}\ngolden_prompts: [x]\ncontract: parts/contract.yaml\n",
            ),
            (
                "parts/contract.yaml",
                "name: polite\ninvariants: [{id: a, type: json_schema, schema: schema.json}]\nchaos_matrix: [{name: clean}]\n",
            ),
            ("parts/schema.json", r#"{"type": "object"}"#),
        ] {
            std::fs::write(directory.path().join(name), text).expect("a file");
        }
        let read = LocalSuite::read_noting(&suite).map_err(|errors| errors.join("\n"));
        let read = read.expect("a suite");
        assert_eq!(
            read.document["contract"]["invariants"][0]["schema"]["type"],
            "object"
        );
        std::fs::remove_file(directory.path().join("parts/schema.json")).expect("a file");
        let errors = LocalSuite::read_noting(&suite).err().expect("errors");
        assert!(
            errors[0].contains("parts/contract.yaml:2:49: ")
                && errors[0].contains("cannot be read"),
            "{errors:?}"
        );
    }
}
