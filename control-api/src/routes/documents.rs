//! Suites, contracts and replay sessions: named documents with versions.
//!
//! The path determines the kind. [`crate::runs::validation`] validates each kind.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{FromRequestParts, MatchedPath};
use axum::response::{IntoResponse, Response};
use http::header::ETAG;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use squall_harness::digest::sha256;
use squall_journal::timestamp;

use super::path::{self, Name};
use super::versions;
use crate::access::Caller;
use crate::audit::Call;
use crate::document::{self, Document};
use crate::page::{self, Page};
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::runs::validation;
use crate::state::ApiState;
use crate::store::{self, DocumentKind};
use crate::stored_documents::{Collection, Edited, NotEdited};
use crate::trust::Sent;

/// The version that is shown or was written.
const VERSION: HeaderName = HeaderName::from_static("squall-document-version");

/// A document in the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentLine")]
pub(super) struct Listed {
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

/// A document that was put.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PutDocument")]
pub(super) struct PutAnswer {
    /// Its name.
    name: String,
    /// The id of a replay session, which equals its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its new version, from 1.
    version: i64,
    /// Settings without effect and likely mistakes; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Detail>>,
}

/// The documents of the path's kind in the caller's workspace.
pub(super) struct Documents {
    state: ApiState,
    collection: Collection,
    call: Option<Arc<Call>>,
}

impl FromRequestParts<ApiState> for Documents {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let path = parts.extensions.get::<MatchedPath>();
        let kind = path.and_then(|path| match path.as_str().split('/').nth(2)? {
            "suites" => Some(DocumentKind::Suite),
            "contracts" => Some(DocumentKind::Contract),
            "replays" => Some(DocumentKind::Replay),
            _ => None,
        });
        let kind = kind.ok_or_else(|| Problem::internal("the path names no kind of document"))?;
        Ok(Self {
            state: state.clone(),
            collection: Collection {
                workspace: caller.workspace().to_owned(),
                kind,
            },
            call: caller.call().cloned(),
        })
    }
}

/// Documents by name.
pub(super) async fn list(
    documents: Documents,
    mut params: Params,
) -> Result<Json<Page<Listed>>, Problem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let stored = &documents.state.documents;
    let first = after.as_deref().unwrap_or_default();
    let listed = stored.list(&documents.collection, first, limit + 1).await?;
    let listed = listed.into_iter().map(|one| Listed {
        id: documents.id(&one.name),
        name: one.name,
        version: one.version,
        updated_at: timestamp::rfc3339(one.created_at),
    });
    let listed = listed.collect();
    Ok(page::by_name(
        listed,
        |one| &one.name,
        after.as_deref(),
        limit,
    ))
}

/// One document: JSON, or its original text with `Accept: application/yaml`. Old versions are returned as
/// original text.
pub(super) async fn show(
    documents: Documents,
    Name(name): Name,
    mut params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = versions::asked_for(&mut params);
    params.finish()?;
    let Documents {
        state, collection, ..
    } = &documents;
    let found = match version {
        Some(version) => (state.documents.at_version(collection, &name, version)).await?,
        None => state.documents.newest(collection, &name).await?,
    };
    let found = found.ok_or_else(|| match version {
        Some(version) => versions::missing(collection.kind, &name, version),
        None => documents.unknown(&name),
    })?;
    let tag = versions::tag(&found.digest);
    let version_header = HeaderValue::from(found.version);
    let shown = if versions::is_known(&headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if versions::wants_text(&headers) || version.is_some() {
        versions::text(found.body)
    } else {
        let tree = document::tree(&found.body).map_err(|error| {
            Problem::internal(format!("the stored document cannot be read: {error}"))
        })?;
        Json(tree).into_response()
    };
    Ok(([(ETAG, tag), (VERSION, version_header)], shown).into_response())
}

/// Puts a document, if it is valid and replaces the version in `headers`. Runs in progress keep the version that
/// they began with.
pub(super) async fn put(
    documents: Documents,
    Name(name): Name,
    params: Params,
    headers: HeaderMap,
    document: Document,
) -> Result<Response, Problem> {
    params.finish()?;
    let kind = documents.collection.kind;
    path::check_name(kind.as_str(), &name)?;
    let (document, sent) = match kind {
        DocumentKind::Suite => document.opened()?,
        DocumentKind::Profile | DocumentKind::Contract | DocumentKind::Replay => {
            (document, Sent::default())
        }
    };
    // Checks the bounds before the document is parsed.
    let tree = document.tree()?;
    let trust = &documents.state.trust;
    let warnings = validation::check(kind, &name, &document.text, &sent, trust);
    let warnings = warnings.map_err(Problem::invalid)?;
    path::check_called(kind, &name, tree.get("id").and_then(Value::as_str))?;
    if kind == DocumentKind::Replay {
        documents.check_contract(&tree).await?;
    }
    let tag = versions::tag(&sha256(&document.text));
    let edited = documents.edit(&name, Some(document.text), headers).await?;
    let body = Json(PutAnswer {
        id: documents.id(&name),
        name,
        version: edited.version,
        warnings: (!warnings.is_empty()).then_some(warnings),
    });
    let headers = [(ETAG, tag), (VERSION, HeaderValue::from(edited.version))];
    Ok((versions::status(edited.created), headers, body).into_response())
}

/// Deletes a document; its versions remain.
pub(super) async fn delete(
    documents: Documents,
    Name(name): Name,
    params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    documents.edit(&name, None, headers).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Documents {
    /// A replay session's contract must exist.
    async fn check_contract(&self, session: &Value) -> Result<(), Problem> {
        let Some(contract) = session.get("contract").and_then(Value::as_str) else {
            return Ok(());
        };
        let contracts = Collection {
            kind: DocumentKind::Contract,
            ..self.collection.clone()
        };
        let found = self.state.documents.newest(&contracts, contract).await?;
        if found.is_some() {
            return Ok(());
        }
        let contract: String = contract.chars().take(64).collect();
        let detail = format!(
            "there is no contract `{contract}`; put it with `PUT /v1/contracts/{{name}}`, or name none"
        );
        Err(Problem::invalid(vec![Detail::at("/contract", detail)]))
    }

    /// Writes a new version; without a `body`, a deletion.
    async fn edit(
        &self,
        name: &str,
        body: Option<String>,
        headers: HeaderMap,
    ) -> Result<Edited, Problem> {
        let at = self.state.recorder.unix_ms(Instant::now());
        let what = format!("{} `{name}`", self.collection.kind.as_str());
        let guarded = what.clone();
        let guard = move |held: Option<&store::Document>| {
            let tag = held.map(|held| versions::tag(&held.digest));
            versions::check(&headers, tag.as_ref(), &guarded)
        };
        let (collection, call) = (self.collection.clone(), self.call.clone());
        let stored = Arc::clone(&self.state.documents);
        let edited = stored.edit(collection, name.to_owned(), body, at, call, guard);
        edited.await.map_err(|error| match error {
            NotEdited::Refused(problem) => problem,
            NotEdited::Unknown => self.unknown(name),
            NotEdited::Write(error) => versions::not_written(error, &what),
        })
    }

    /// The document's id: for a replay session its name.
    fn id(&self, name: &str) -> Option<String> {
        (self.collection.kind == DocumentKind::Replay).then(|| name.to_owned())
    }

    fn unknown(&self, name: &str) -> Problem {
        let name: String = name.chars().take(64).collect();
        Problem::not_found(format!(
            "there is no {} `{name}`",
            self.collection.kind.as_str()
        ))
    }
}
