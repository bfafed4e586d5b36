//! Profiles: the API's over files over built-in ones.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::{ACCEPT, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use ring::digest::{Context, SHA256};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use squall_profiles::library::{Library, RemoveError, Source};
use squall_profiles::profile::Profile;
use squall_proxy::chaos::{INLINE, NO_CHAOS};

use super::path::{self, ProfileName};
use super::versions;
use crate::ApiState;
use crate::access::Caller;
use crate::document::{Document, WITH_VARIABLES, WithVariables};
use crate::nearest::no_profile;
use crate::openapi::{Operation, ProfileDocument, YAML};
use crate::page::{self, Page};
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::store::{DocumentKind, WriteError};
use crate::stored_profiles::{Edit, Edited, NotEdited, ProfileKey};

/// A line of the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProfileLine")]
pub(super) struct Listed {
    /// Its name.
    name: String,
    /// `builtin`, `file` or `api`.
    source: &'static str,
    /// What it is for, in a sentence.
    description: String,
    /// How many rules it has.
    rules: usize,
}

/// A profile that was put.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PutProfile")]
struct PutAnswer {
    /// Its name.
    name: String,
    /// `api`.
    source: &'static str,
    /// How many rules it has.
    rules: usize,
}

/// Profiles by name.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    mut params: Params,
) -> Result<Json<Page<Listed>>, Problem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let mut listed: Vec<Listed> = state
        .library(caller.workspace())
        .list()
        .into_iter()
        .map(|profile| Listed {
            name: profile.name,
            source: profile.source.as_str(),
            description: profile.description,
            rules: profile.rules,
        })
        .collect();
    listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(page::by_name(
        listed,
        |profile| &profile.name,
        after.as_deref(),
        limit,
    ))
}

pub(super) fn list_operation() -> Operation {
    Operation::new(
        "list_profiles",
        "Profiles by name: the API's over files over built-in ones",
    )
    .pages::<Listed>("Profiles")
}

/// One profile as the document it was written as: JSON, or with `Accept: application/yaml` its own
/// text, comments and all.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    ProfileName(name): ProfileName,
    mut params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = params.read("version", "a whole number from 1", |text| {
        text.parse().ok().filter(|version| *version > 0)
    });
    params.finish()?;
    if let Some(version) = version {
        return show_version(&state, &caller, &name, version).await;
    }
    let library = state.library(caller.workspace());
    let Some((source, profile)) = library.get(&name) else {
        return Err(Problem::not_found(no_profile(&library, &name)));
    };
    let tag = etag(profile);
    let wants_yaml = headers
        .get_all(ACCEPT)
        .iter()
        .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("yaml")));
    let mut response = if versions::is_known(&headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if wants_yaml {
        let content_type = HeaderValue::from_static("application/yaml");
        ([(CONTENT_TYPE, content_type)], profile.text.to_string()).into_response()
    } else {
        let mut document = profile.document();
        // A text of comments alone is a profile too.
        if document.is_null() {
            document = json!({});
        }
        if let Some(members) = document.as_object_mut() {
            members.entry("name").or_insert_with(|| json!(name));
        }
        Json(document).into_response()
    };
    response.headers_mut().insert(ETAG, tag);
    response
        .headers_mut()
        .insert(SOURCE, HeaderValue::from_static(source.as_str()));
    if let (Source::Api, Some(version)) =
        (source, state.profiles.version(caller.workspace(), &name))
    {
        response
            .headers_mut()
            .insert(VERSION, HeaderValue::from(version));
    }
    Ok(response)
}

pub(super) fn show_operation() -> Operation {
    Operation::new(
        "show_profile",
        "One profile, as the document it was written as",
    )
    .about(
        "With `Accept: application/yaml`, or of an older version, its own text, comments and all.",
    )
    .query::<Version>(
        "version",
        "This version of those that were put, also if it was replaced since",
    )
    .header::<String>("If-None-Match", "304 if this is its `ETag`")
    .answers::<ProfileDocument>(200, "The profile")
    .or_as::<Value>(YAML)
    .with("ETag", "Its version, for `If-Match`")
    .with("squall-profile-source", "`builtin`, `file` or `api`")
    .with(
        "squall-profile-version",
        "Which version of those that were put",
    )
    .empty(304, "It is the version that `If-None-Match` names")
    .problems([404])
    .asks_store()
}

/// What the parameter `version` may be.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "says what `version` takes")]
struct Version(#[schemars(range(min = 1, max = i64::MAX))] i64);

/// A version of a profile that was put, as its own text: it may be one that this Squall would not
/// take any more.
async fn show_version(
    state: &ApiState,
    caller: &Caller,
    name: &str,
    version: i64,
) -> Result<Response, Problem> {
    let found = state.profiles.at_version(caller.workspace(), name, version);
    let found = found.await;
    let found = found.map_err(|error| Problem::store(&error))?;
    let document = found.ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        Problem::not_found(format!(
            "profile `{shown}` has no version {version}, or none that is still kept"
        ))
    })?;
    let content_type = HeaderValue::from_static("application/yaml");
    let headers = [
        (CONTENT_TYPE, content_type),
        (SOURCE, HeaderValue::from_static(Source::Api.as_str())),
        (VERSION, HeaderValue::from(version)),
    ];
    Ok((headers, document.body).into_response())
}

/// Where the profile that is shown comes from.
const SOURCE: HeaderName = HeaderName::from_static("squall-profile-source");

/// Its version in the store.
const VERSION: HeaderName = HeaderName::from_static("squall-profile-version");

/// Puts a profile; in force, it takes effect at once.
pub(super) async fn put(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    ProfileName(name): ProfileName,
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
    let status = if edited.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let body = Json(PutAnswer {
        name,
        source: Source::Api.as_str(),
        rules,
    });
    let version = HeaderValue::from(edited.version);
    Ok((status, [(ETAG, tag), (VERSION, version)], body).into_response())
}

pub(super) fn put_operation() -> Operation {
    Operation::new(
        "put_profile",
        "Puts a profile; in force, it takes effect at once",
    )
    .guarded()
    .takes::<ProfileDocument>()
    .takes_as::<WithVariables>(WITH_VARIABLES)
    .answers::<PutAnswer>(200, "It is in the place of the API's one of that name")
    .with("ETag", "Its version, for `If-Match`")
    .with(
        "squall-profile-version",
        "Which version of those that were put",
    )
    .answers::<PutAnswer>(201, "The API had none of that name")
    .with("ETag", "Its version, for `If-Match`")
    .with(
        "squall-profile-version",
        "Which version of those that were put",
    )
    .problems([409])
    .asks_store()
}

/// Deletes a profile that the API put; what it stood over, if anything, holds again.
pub(super) async fn delete(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    ProfileName(name): ProfileName,
    params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    change(&state, &caller, &name, Edit::Delete, headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn delete_operation() -> Operation {
    Operation::new(
        "delete_profile",
        "Deletes a profile that the API put; what it stood over holds again",
    )
    .guarded()
    .empty(204, "It is deleted")
    .problems([404, 409])
    .asks_store()
}

/// Changes a profile in store and library, if it is the version that `headers` name.
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
        NotEdited::Write(WriteError::Stale) => Problem::conflict(format!(
            "profile `{name}` is being changed by others all the time; try again"
        )),
        NotEdited::Write(error @ WriteError::Nul) => {
            Problem::invalid(vec![Detail::at("", error.to_string())])
        }
        NotEdited::Write(WriteError::Store(error)) => Problem::store(&error),
    })
}

/// A profile that is put must have a name that files and commands can write.
fn check_name(name: &str) -> Result<(), Problem> {
    path::check_name("profile", name)?;
    if [NO_CHAOS, INLINE].contains(&name) {
        let detail = format!("`{name}` is reserved; give the profile another name");
        return Err(Problem::invalid(vec![Detail::at("/name", detail)]));
    }
    Ok(())
}

/// The conditions of a request, against the profile that holds.
fn check_version(library: &Library, name: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let current = library.get(name).map(|(_, profile)| etag(profile));
    versions::check(headers, current.as_ref(), &format!("profile `{name}`"))
}

/// Half of a digest of the text, in quotes, and of what variables stand for in it. Nobody can try
/// values against it: their part hangs on a key that dies with the process.
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
    let mut half = [0; 16];
    half.copy_from_slice(&digest.finish().as_ref()[..16]);
    HeaderValue::from_str(&format!("\"{:032x}\"", u128::from_be_bytes(half)))
        .expect("hex digits in quotes are a header value")
}
