//! Profile files that commands send to a daemon, with the values of their variables.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use squall_profiles::profile::{Profile, parse_file};

use crate::failure::Failure;
use crate::text::{self, environment};

/// A profile file that was read.
pub(crate) struct ProfileFile {
    /// Its text.
    pub(crate) text: String,
    /// Its own name, else the file's.
    pub(crate) name: String,
    /// The values of its variables. Never shown.
    pub(crate) variables: BTreeMap<String, String>,
    /// The text as a document, its variables not expanded.
    document: Value,
}

/// Reads a profile file; reports all errors with their places.
pub(crate) fn read(file: &Path) -> Result<ProfileFile, Failure> {
    let text = text::read(file).map_err(Failure::Usage)?;
    let shown = file.display().to_string();
    let parsed = parse_file(&shown, &text, environment());
    let profile: Profile = parsed.map_err(|errors| text::usage(&errors))?;
    let tree = squall_documents::parse(&shown, &text).map_err(|error| text::usage(&[error]))?;
    let (_, expanded) = profile.version();
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let variables = expanded.iter().map(owned).collect();
    let stem = file.file_stem();
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    Ok(ProfileFile {
        name: profile.name.or(stem).unwrap_or_default(),
        variables,
        document: tree.value.to_json(),
        text,
    })
}

impl ProfileFile {
    /// The document, with its name in it.
    pub(crate) fn named_document(&self) -> Value {
        let mut document = self.document.clone();
        document["name"] = json!(self.name);
        document
    }
}
