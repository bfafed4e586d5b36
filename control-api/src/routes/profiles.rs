//! Profiles: those put by API replace files, and files replace built-in ones.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::ETAG;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use ring::digest::{Context, SHA256};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use squall_harness::digest::hex;
use squall_profiles::library::{Library, RemoveError, Source};
use squall_profiles::profile::Profile;
use squall_proxy::chaos::{INLINE, NO_CHAOS};

use super::path::{self, Name};
use super::versions;
use crate::access::Caller;
use crate::document::Document;
use crate::nearest::no_profile;
use crate::page::{self, Page};
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::state::ApiState;
use crate::store::DocumentKind;
use crate::stored_documents::Edited;
use crate::stored_profiles::{Edit, NotEdited, ProfileKey};

/// A profile in the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProfileLine")]
pub(super) struct Listed {
    /// Its name.
    name: String,
    /// `builtin`, `file` or `api`.
    source: &'static str,
    /// Its purpose, in a sentence.
    description: String,
    /// Number of its rules.
    rules: usize,
}

/// A profile that was put.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PutProfile")]
pub(super) struct PutAnswer {
    /// Its name.
    name: String,
    /// `api`.
    source: &'static str,
    /// Number of its rules.
    rules: usize,
}

/// Profiles by name.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Listed>>, Problem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let listed = state.library(caller.workspace()).list().into_iter();
    let listed = listed.map(|profile| Listed {
        name: profile.name,
        source: profile.source.as_str(),
        description: profile.description,
        rules: profile.rules,
    });
    let mut listed: Vec<_> = listed.collect();
    listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(page::by_name(
        listed,
        |one| &one.name,
        after.as_deref(),
        limit,
    ))
}

/// One profile: JSON, or its original text with `Accept: application/yaml`. An old version is returned as
/// original text, because this Squall may no longer accept it.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    Name(name): Name,
    mut params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = versions::asked_for(&mut params);
    params.finish()?;
    let (profiles, workspace) = (&state.profiles, caller.workspace());
    if let Some(version) = version {
        let found = profiles.at_version(workspace, &name, version).await?;
        let missing = || versions::missing(DocumentKind::Profile, &name, version);
        let text = versions::text(found.ok_or_else(missing)?.body);
        let source = HeaderValue::from_static(Source::Api.as_str());
        let headers = [(SOURCE, source), (VERSION, HeaderValue::from(version))];
        return Ok((headers, text).into_response());
    }
    let library = state.library(workspace);
    let Some((source, profile)) = library.get(&name) else {
        return Err(Problem::not_found(no_profile(&library, &name)));
    };
    let tag = etag(profile);
    let mut shown = if versions::is_known(&headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if versions::wants_text(&headers) {
        versions::text(profile.text.to_string())
    } else {
        let mut document = profile.document();
        // A text that holds only comments is a valid profile.
        if document.is_null() {
            document = json!({});
        }
        if let Some(members) = document.as_object_mut() {
            members.entry("name").or_insert_with(|| json!(name));
        }
        Json(document).into_response()
    };
    let version = profiles.version(workspace, &name);
    if let Some(version) = version.filter(|_| source == Source::Api) {
        let version = HeaderValue::from(version);
        shown.headers_mut().insert(VERSION, version);
    }
    let source = HeaderValue::from_static(source.as_str());
    Ok(([(ETAG, tag), (SOURCE, source)], shown).into_response())
}

/// The source of the profile that is shown.
const SOURCE: HeaderName = HeaderName::from_static("squall-profile-source");

/// Its version in the store.
const VERSION: HeaderName = HeaderName::from_static("squall-profile-version");

/// Puts a profile; chaos in force uses it at once.
pub(super) async fn put(
    State(state): State<ApiState>,
    caller: Caller,
    Name(name): Name,
    params: Params,
    headers: HeaderMap,
    document: Document,
) -> Result<Response, Problem> {
    params.finish()?;
    check_name(&name)?;
    let profile = document.profile(&name, &state.trust)?;
    path::check_called(DocumentKind::Profile, &name, profile.name.as_deref())?;
    let (tag, rules) = (etag(&profile), profile.rules.len());
    let variables = document.has_variables().then(|| {
        let (_, expanded) = profile.version();
        expanded.iter().map(|(name, _)| name.to_owned()).collect()
    });
    let edit = Edit::Put { profile, variables };
    let edited = change(&state, &caller, &name, edit, headers).await?;
    let body = Json(PutAnswer {
        name,
        source: Source::Api.as_str(),
        rules,
    });
    let headers = [(ETAG, tag), (VERSION, HeaderValue::from(edited.version))];
    Ok((versions::status(edited.created), headers, body).into_response())
}

/// Deletes a profile that was put by API; a file or built-in profile of that name takes effect again.
pub(super) async fn delete(
    State(state): State<ApiState>,
    caller: Caller,
    Name(name): Name,
    params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    change(&state, &caller, &name, Edit::Delete, headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes a profile in store and library, if it has the version in `headers`.
async fn change(
    state: &ApiState,
    caller: &Caller,
    name: &str,
    edit: Edit,
    headers: HeaderMap,
) -> Result<Edited, Problem> {
    let at = state.recorder.unix_ms(Instant::now());
    let checked = name.to_owned();
    let guard = move |library: &Library| check_version(library, &checked, &headers);
    let profiles = Arc::clone(&state.profiles);
    let key = ProfileKey::of(caller.workspace(), name);
    let call = caller.call().cloned();
    let edited = profiles.edit(Arc::clone(&state.chaos), key, edit, at, call, guard);
    edited.await.map_err(|error| match error {
        NotEdited::Refused(problem) => problem,
        NotEdited::Profile(error) => Problem::profile(&[error]),
        NotEdited::Remove(RemoveError::Unknown(_)) => {
            Problem::not_found(no_profile(&state.library(caller.workspace()), name))
        }
        NotEdited::Remove(error @ RemoveError::NotFromApi { .. }) => {
            Problem::conflict(error.to_string())
        }
        NotEdited::InForce { profile, source } => Problem::conflict(format!(
            "profile `{profile}` is in force and would no longer be valid: {source}"
        )),
        NotEdited::Quota(over) => Problem::conflict(over.to_string()),
        NotEdited::Write(error) => versions::not_written(error, &format!("profile `{name}`")),
    })
}

/// The name of a profile that is put must be usable in files and commands.
fn check_name(name: &str) -> Result<(), Problem> {
    path::check_name("profile", name)?;
    if [NO_CHAOS, INLINE].contains(&name) {
        let detail = format!("`{name}` is reserved; give the profile another name");
        return Err(Problem::invalid(vec![Detail::at("/name", detail)]));
    }
    Ok(())
}

/// Checks the conditions of a request against the current profile.
fn check_version(library: &Library, name: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let current = library.get(name).map(|(_, profile)| etag(profile));
    versions::check(headers, current.as_ref(), &format!("profile `{name}`"))
}

/// Half of a digest of the text and the values of its variables, in quotes. The values are hashed with a key of
/// this process, so that clients cannot guess them.
fn etag(profile: &Profile) -> HeaderValue {
    #[expect(
        clippy::disallowed_methods,
        reason = "decides nothing: it keeps values from being tried"
    )]
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let (text, expanded) = profile.version();
    let mut digest = Context::new(&SHA256);
    digest.update(text.as_bytes());
    if !expanded.is_empty() {
        digest.update(&KEY.hash_one(expanded).to_be_bytes());
    }
    versions::tag(&hex(digest.finish().as_ref()))
}
