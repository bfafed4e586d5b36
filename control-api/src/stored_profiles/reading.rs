//! Reads stored profiles into a library.

use std::collections::BTreeMap;
use std::env::VarError;

use squall_documents::DocumentError;
use squall_documents::Variables;
use squall_profiles::library::{Library, Source};
use squall_profiles::profile::{self, Profile};

use super::ProfileKey;
use crate::store::{Document, DocumentKind, Store, StoreError};
use crate::trust::Trust;

/// What this daemon knows of a stored profile.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) version: i64,
    pub(super) deleted: bool,
    /// Length of its text.
    pub(super) bytes: usize,
    /// Why this version is not in the library.
    pub(super) broken: Option<String>,
}

impl Held {
    pub(super) fn of(document: &Document, broken: Option<String>) -> Self {
        Self {
            version: document.version,
            deleted: document.deleted,
            bytes: document.body.len(),
            broken,
        }
    }
}

/// The newest version of every profile of every workspace.
pub(super) async fn documents(store: &Store) -> Result<Vec<(ProfileKey, Document)>, StoreError> {
    let mut all = Vec::new();
    for workspace in store.workspaces(DocumentKind::Profile).await? {
        let documents = store.documents(&workspace, DocumentKind::Profile).await?;
        let keyed = documents.into_iter().map(|document| {
            let key = ProfileKey::of(&workspace, &document.name);
            (key, document)
        });
        all.extend(keyed);
    }
    Ok(all)
}

/// Passes documents to `take` until a pass accepts none: a profile may extend a later one.
pub(super) fn lay(
    documents: &[(ProfileKey, Document)],
    library: &Library,
    trust: &Trust,
    mut take: impl FnMut(&ProfileKey, &Profile) -> Result<(), String>,
) -> Vec<(ProfileKey, Held)> {
    let mut laid = Vec::new();
    let mut waiting = Vec::new();
    for (key, document) in documents {
        match read(document, &key.view(library), trust) {
            Ok(profile) => waiting.push((key, document, profile)),
            Err(why) => laid.push((key.clone(), Held::of(document, Some(why)))),
        }
    }
    loop {
        let before = waiting.len();
        let mut refused = Vec::new();
        for (key, document, profile) in waiting {
            match take(key, &profile) {
                Ok(()) => laid.push((key.clone(), Held::of(document, None))),
                Err(why) => refused.push((key, document, profile, why)),
            }
        }
        if refused.is_empty() || refused.len() == before {
            laid.extend(
                refused
                    .into_iter()
                    .map(|(key, document, _, why)| (key.clone(), Held::of(document, Some(why)))),
            );
            return laid;
        }
        waiting = refused
            .into_iter()
            .map(|(key, document, profile, _)| (key, document, profile))
            .collect();
    }
}

/// Parses a stored profile. Values of variables are never stored. They come from this daemon's profile of that
/// name or, for a document sent without values, from the config's list.
fn read(document: &Document, library: &Library, trust: &Trust) -> Result<Profile, String> {
    let name = document.name.as_str();
    let Some(needed) = &document.variables else {
        return trust
            .variables(|variables| profile::parse_file(name, &document.body, variables))
            .map_err(|errors| first(&errors));
    };
    let known: BTreeMap<&str, &str> = match library.get(name) {
        Some((Source::Api, former)) => former.version().1.iter().collect(),
        _ => BTreeMap::new(),
    };
    let missing: Vec<&str> = needed
        .iter()
        .map(String::as_str)
        .filter(|name| !known.contains_key(name))
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "what variables stand for is never stored, and this daemon has not been told {}; put the \
             profile again with `squall profile put`",
            missing.join(", ")
        ));
    }
    let lookup = |name: &str| {
        let value = known
            .get(name)
            .filter(|_| needed.iter().any(|needed| needed == name));
        value
            .map(|value| (*value).to_owned())
            .ok_or(VarError::NotPresent)
    };
    profile::parse_file(name, &document.body, Variables::From(&lookup))
        .map_err(|errors| first(&errors))
}

/// The first of several errors, and their number.
fn first(errors: &[DocumentError]) -> String {
    match errors {
        [] => "it cannot be read".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}
