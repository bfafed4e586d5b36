//! Profiles, suites, contracts and replay sessions: named documents with versions.
//!
//! The path determines the kind. [`crate::runs::validation`] validates each kind.

use std::time::Instant;

use axum::Json;
use axum::extract::{FromRequestParts, MatchedPath};
use axum::response::{IntoResponse, Response};
use http::header::ETAG;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use squall_harness::digest::sha256;
use squall_journal::timestamp;
use squall_profiles::library::ProfileSource;
use squall_profiles::profile::Profile;
use squall_proxy::chaos::{INLINE, NO_CHAOS};

use super::path::{self, Name};
use super::versions;
use crate::access::Caller;
use crate::document::{self, RequestDocument};
use crate::nearest::no_profile;
use crate::page::{self, ListPage};
use crate::problem::{ApiProblem, ProblemDetail};
use crate::query::Params;
use crate::runs::validation;
use crate::state::ApiState;
use crate::store::{DocumentKey, DocumentKind, DocumentText, StoredDocument, StoredVersion};
use crate::stored_documents::{self, Written, newest};
use crate::stored_profiles;
use crate::trust::SentVariables;

/// The source of the profile that is shown.
const SOURCE: HeaderName = HeaderName::from_static("squall-profile-source");

/// A document in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DocumentLine {
    /// Its name.
    name: String,
    /// The id of a replay session, which equals its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its newest version, from 1.
    version: i64,
    /// When that version was put, RFC 3339.
    updated_at: String,
}

/// A profile in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProfileLine {
    /// Its name.
    name: String,
    /// `builtin`, `file` or `api`.
    source: &'static str,
    /// Its purpose, in a sentence.
    description: String,
    /// Number of its rules.
    rules: usize,
}

/// A version of a profile.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VersionLine {
    /// Its number, from 1.
    version: i64,
    /// When it was put or deleted, RFC 3339.
    created_at: String,
    /// The name of the token, `-` without tokens; `null` for versions of earlier releases.
    created_by: Option<String>,
    /// Whether it is a deletion.
    deleted: bool,
}

/// A document that was put.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PutDocument {
    /// Its name.
    name: String,
    /// The id of a replay session, which equals its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its new version, from 1; absent for a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// `api`, for a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    /// Number of a profile's rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    /// Settings without effect and likely mistakes; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<ProblemDetail>>,
}

/// The documents of the path's kind in the caller's workspace.
pub(super) struct Documents {
    state: ApiState,
    kind: DocumentKind,
    caller: Caller,
}

impl FromRequestParts<ApiState> for Documents {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiProblem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let path = parts.extensions.get::<MatchedPath>();
        let kind = match path.and_then(|path| path.as_str().split('/').nth(2)) {
            Some("profiles") => DocumentKind::Profile,
            Some("suites") => DocumentKind::Suite,
            Some("contracts") => DocumentKind::Contract,
            Some("replays") => DocumentKind::Replay,
            _ => return Err(ApiProblem::internal("the path names no kind of document")),
        };
        Ok(Self {
            state: state.clone(),
            kind,
            caller,
        })
    }
}

/// Documents by name.
pub(super) async fn list(
    documents: Documents,
    mut params: Params,
) -> Result<Json<ListPage<DocumentLine>>, ApiProblem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let (workspace, kind) = (documents.caller.workspace(), documents.kind);
    let first = after.as_deref().unwrap_or_default();
    let listed = documents
        .state
        .store
        .listed(workspace, kind, first, limit + 1);
    let listed = listed.await?.into_iter();
    let listed = listed.map(|(name, version, created_at)| DocumentLine {
        id: (kind == DocumentKind::Replay).then(|| name.clone()),
        name,
        version,
        updated_at: timestamp::rfc3339(created_at.unsigned_abs()),
    });
    let listed = listed.collect();
    Ok(page::by_name(
        listed,
        |one| &one.name,
        after.as_deref(),
        limit,
    ))
}

/// Profiles by name. Those put by API replace files, and files replace built-in ones.
pub(super) async fn list_profiles(
    documents: Documents,
    mut params: Params,
) -> Result<Json<ListPage<ProfileLine>>, ApiProblem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let library = documents.state.library(documents.caller.workspace());
    let listed = library.list().into_iter().map(|profile| ProfileLine {
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

/// The versions of a profile that are stored, the newest first, on one page. Files and built-in profiles have none.
pub(super) async fn list_versions(
    documents: Documents,
    Name(name): Name,
    params: Params,
) -> Result<Json<ListPage<VersionLine>>, ApiProblem> {
    params.finish()?;
    let key = documents.key(&name);
    let versions = documents.state.store.versions(&key).await?;
    let library = documents.state.library(&key.workspace);
    if versions.is_empty() && library.get(&name).is_none() {
        return Err(ApiProblem::not_found(no_profile(&library, &name)));
    }
    let line = |version: StoredVersion| VersionLine {
        version: version.version,
        created_at: timestamp::rfc3339(version.created_at.unsigned_abs()),
        created_by: version.created_by,
        deleted: version.is_deletion,
    };
    Ok(Json(ListPage {
        items: versions.into_iter().map(line).collect(),
        next_cursor: None,
    }))
}

/// One document: JSON, or its original text with `Accept: application/yaml`. Old versions are returned as original
/// text, because this Squall may no longer accept them.
pub(super) async fn show(
    documents: Documents,
    Name(name): Name,
    mut params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let version = versions::requested(&mut params);
    params.finish()?;
    let (key, store) = (documents.key(&name), &documents.state.store);
    let mut source = (documents.kind == DocumentKind::Profile).then_some(ProfileSource::Api);
    let stored = match version {
        Some(version) => {
            let found = store.document(&key, version).await?;
            let text = found.and_then(|found| found.text);
            Some((
                version,
                text.ok_or_else(|| versions::missing(&key, version))?,
            ))
        }
        // While the store is away, profiles in memory are shown without a version.
        None if source.is_some() => newest(store, &key).await.ok().flatten(),
        None => newest(store, &key).await?,
    };
    let (shown_version, text, digest) = match stored {
        stored if source.is_none() || version.is_some() => {
            let (version, text) = stored.ok_or_else(|| stored_documents::unknown(&key))?;
            let digest = sha256(&text.body);
            (Some(version), text.body, digest)
        }
        stored => {
            // What is in force, even if the newest version cannot be used here.
            let library = documents.state.library(&key.workspace);
            let Some((origin, profile)) = library.get(&name) else {
                return Err(ApiProblem::not_found(no_profile(&library, &name)));
            };
            source = Some(origin);
            let stored = stored.filter(|_| origin == ProfileSource::Api);
            let version = stored.map(|(version, _)| version);
            let digest = stored_profiles::digest(profile);
            (version, profile.text.to_string(), digest)
        }
    };
    let tag = versions::tag(&digest);
    let mut shown = if versions::is_known(&headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if versions::wants_text(&headers) || version.is_some() {
        versions::text(text)
    } else {
        let mut tree = document::stored(&text)?;
        if documents.kind == DocumentKind::Profile {
            // A text that holds only comments is a valid profile.
            if tree.is_null() {
                tree = json!({});
            }
            if let Some(members) = tree.as_object_mut() {
                members.entry("name").or_insert_with(|| json!(name));
            }
        }
        Json(tree).into_response()
    };
    let answer = shown.headers_mut();
    answer.insert(ETAG, tag);
    answer.extend(shown_version.map(|version| (documents.version_header(), version.into())));
    let source = source.map(|source| HeaderValue::from_static(source.as_str()));
    answer.extend(source.map(|source| (SOURCE, source)));
    Ok(shown)
}

/// Puts a document, if it is valid and replaces the version in `headers`. Chaos in force uses a new profile at once; runs
/// in progress keep the version that they began with.
pub(super) async fn put(
    documents: Documents,
    Name(name): Name,
    params: Params,
    headers: HeaderMap,
    document: RequestDocument,
) -> Result<Response, ApiProblem> {
    params.finish()?;
    let kind = documents.kind;
    path::check_name(kind.as_str(), &name)?;
    let trust = &documents.state.trust;
    let (mut profile, mut warnings) = (None, Vec::new());
    let text = if kind == DocumentKind::Profile {
        if [NO_CHAOS, INLINE].contains(&name.as_str()) {
            let detail = format!("`{name}` is reserved; give the profile another name");
            return Err(ApiProblem::invalid_at("/name", detail));
        }
        let parsed = document.profile(&name, trust)?;
        path::check_called(kind, &name, parsed.name.as_deref())?;
        let names = || parsed.version().1.iter().map(|(name, _)| name.to_owned());
        let variables = document.has_variables().then(|| names().collect());
        let body = parsed.text.to_string();
        profile = Some(parsed);
        DocumentText { body, variables }
    } else {
        let (document, sent) = match kind {
            DocumentKind::Suite => document.opened()?,
            DocumentKind::Profile | DocumentKind::Contract | DocumentKind::Replay => {
                (document, SentVariables::default())
            }
        };
        let tree = document.tree()?.value.to_json();
        warnings = validation::check(kind, &name, &document.text, &sent, trust)
            .map_err(ApiProblem::invalid)?;
        path::check_called(kind, &name, tree.get("id").and_then(Value::as_str))?;
        if kind == DocumentKind::Replay {
            documents.check_contract(&tree).await?;
        }
        DocumentText {
            body: document.text,
            variables: None,
        }
    };
    let digest = profile.as_ref().map(stored_profiles::digest);
    let tag = versions::tag(&digest.unwrap_or_else(|| sha256(&text.body)));
    let rules = profile.as_ref().map(|profile| profile.rules.len());
    let new = Some((profile, text));
    let written = documents.write(&name, new, &headers).await?;
    let body = Json(PutDocument {
        id: (kind == DocumentKind::Replay).then(|| name.clone()),
        name,
        version: rules.is_none().then_some(written.version),
        source: rules.map(|_| ProfileSource::Api.as_str()),
        rules,
        warnings: (!warnings.is_empty()).then_some(warnings),
    });
    let status = if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let version = HeaderValue::from(written.version);
    let headers = [(ETAG, tag), (documents.version_header(), version)];
    Ok((status, headers, body).into_response())
}

/// Deletes a document; its versions remain. After a profile that was put by API, a file or built-in profile of that name
/// takes effect again.
pub(super) async fn delete(
    documents: Documents,
    Name(name): Name,
    params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, ApiProblem> {
    params.finish()?;
    documents.write(&name, None, &headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Documents {
    fn key(&self, name: &str) -> DocumentKey {
        DocumentKey {
            workspace: self.caller.workspace().to_owned(),
            kind: self.kind,
            name: name.to_owned(),
        }
    }

    /// The header with the version that is shown or was written.
    fn version_header(&self) -> HeaderName {
        HeaderName::from_static(match self.kind {
            DocumentKind::Profile => "squall-profile-version",
            DocumentKind::Suite | DocumentKind::Contract | DocumentKind::Replay => {
                "squall-document-version"
            }
        })
    }

    /// A replay session's contract must exist.
    async fn check_contract(&self, session: &Value) -> Result<(), ApiProblem> {
        let Some(contract) = session.get("contract").and_then(Value::as_str) else {
            return Ok(());
        };
        let key = DocumentKey {
            kind: DocumentKind::Contract,
            ..self.key(contract)
        };
        if newest(&self.state.store, &key).await?.is_some() {
            return Ok(());
        }
        let contract: String = contract.chars().take(64).collect();
        let detail = format!(
            "there is no contract `{contract}`; put it with `PUT /v1/contracts/{{name}}`, or name none"
        );
        Err(ApiProblem::invalid_at("/contract", detail))
    }

    /// Writes a new version, with the parsed profile of a profile's text; without either, a deletion.
    async fn write(
        &self,
        name: &str,
        new: Option<(Option<Profile>, DocumentText)>,
        headers: &HeaderMap,
    ) -> Result<Written, ApiProblem> {
        let at = self.state.recorder.unix_ms(Instant::now());
        let (key, caller) = (self.key(name), &self.caller);
        let what = format!("{} `{name}`", self.kind.as_str());
        let check = |digest: Option<&str>| {
            versions::check(headers, digest.map(versions::tag).as_ref(), &what)
        };
        if self.kind == DocumentKind::Profile {
            let new = new.and_then(|(profile, text)| Some((profile?, text)));
            return self.state.profiles.edit(&key, new, at, caller, check).await;
        }
        let text = new.map(|(_, text)| text);
        let is_deletion = text.is_none();
        let check = |held: Option<&StoredDocument>| {
            check(held.map(|held| held.digest.as_str()))?;
            match held {
                None if is_deletion => Err(stored_documents::unknown(&key)),
                _ => Ok(()),
            }
        };
        let store = &self.state.store;
        stored_documents::write(store, &key, text.as_ref(), at, caller, check).await
    }
}
