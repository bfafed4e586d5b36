//! Suites and contracts: documents under a name, each of their versions kept.
//!
//! What they have in common. What makes sense as which is said by [`crate::runs::validation`].

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use squall_harness::digest::sha256;
use squall_journal::timestamp;

use super::{path, versions};
use crate::ApiState;
use crate::access::Caller;
use crate::audit::Call;
use crate::document::{self, Document};
use crate::openapi::{Operation, YAML};
use crate::page::{self, Page};
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::runs::validation;
use crate::store::{self, DocumentKind, WriteError};
use crate::stored_documents::{Collection, NotEdited};
use crate::trust::Sent;

/// Which version is shown, or was written.
const VERSION: HeaderName = HeaderName::from_static("squall-document-version");

/// A line of the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentLine")]
pub(super) struct Listed {
    /// Its name.
    name: String,
    /// The same, of a replay session.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Which version it is, from 1.
    version: i64,
    /// When that was put, RFC 3339.
    updated_at: String,
}

/// A document that was put.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PutDocument")]
pub(super) struct PutAnswer {
    /// Its name.
    name: String,
    /// The same, of a replay session.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Which version it is now, from 1.
    version: i64,
    /// What of it changes nothing, or surely is not meant; absent: nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Detail>>,
}

/// What the parameter `version` may be.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "says what `version` takes")]
struct Version(#[schemars(range(min = 1, max = i64::MAX))] i64);

/// What is said alike of showing suites and contracts.
pub(super) fn shown<T: JsonSchema>(operation: Operation) -> Operation {
    operation
        .about("With `Accept: application/yaml`, or of an older version, its own text, comments and all.")
        .query::<Version>("version", "This version, also if it was replaced since")
        .header::<String>("If-None-Match", "304 if this is its `ETag`")
        .answers::<T>(200, "The document")
        .or_as::<Value>(YAML)
        .with("ETag", TAG)
        .with("squall-document-version", WHICH)
        .empty(304, "It is the version that `If-None-Match` names")
        .problems([404])
        .asks_store()
}

/// What is said alike of putting them.
pub(super) fn taken<T: JsonSchema>(operation: Operation) -> Operation {
    operation
        .guarded()
        .takes::<T>()
        .answers::<PutAnswer>(200, "It is the newest version")
        .with("ETag", TAG)
        .with("squall-document-version", WHICH)
        .answers::<PutAnswer>(201, "There was none of that name")
        .with("ETag", TAG)
        .with("squall-document-version", WHICH)
        .problems([409])
        .asks_store()
}

/// What is said alike of deleting them.
pub(super) fn deleted(operation: Operation) -> Operation {
    operation
        .guarded()
        .empty(204, "It is deleted; its versions stay")
        .problems([404, 409])
        .asks_store()
}

const TAG: &str = "Its version, for `If-Match`";
const WHICH: &str = "Which version it is";

/// Documents of one kind, of the caller's workspace.
pub(super) struct Documents<'a> {
    state: &'a ApiState,
    collection: Collection,
    call: Option<Arc<Call>>,
}

impl<'a> Documents<'a> {
    pub(super) fn of(state: &'a ApiState, caller: &Caller, kind: DocumentKind) -> Self {
        let workspace = caller.workspace().to_owned();
        Self {
            state,
            collection: Collection { workspace, kind },
            call: caller.call().cloned(),
        }
    }

    /// By name.
    pub(super) async fn list(&self, mut params: Params) -> Result<Json<Page<Listed>>, Problem> {
        let limit = page::limit(&mut params);
        let after = page::after_name(&mut params);
        params.finish()?;
        let stored = &self.state.documents;
        let first = after.as_deref().unwrap_or_default();
        let found = stored.list(&self.collection, first, limit + 1).await;
        let listed = found.map_err(|error| Problem::store(&error))?;
        let listed = listed.into_iter().map(|one| Listed {
            id: self.id(&one.name),
            name: one.name,
            version: one.version,
            updated_at: timestamp::rfc3339(one.created_at),
        });
        Ok(page::by_name(
            listed.collect(),
            |one| &one.name,
            after.as_deref(),
            limit,
        ))
    }

    /// One of them: JSON, or with `Accept: application/yaml` its own text, comments and all; an old
    /// version as its own text.
    pub(super) async fn show(
        &self,
        name: &str,
        mut params: Params,
        headers: &HeaderMap,
    ) -> Result<Response, Problem> {
        let version = params.read("version", "a whole number from 1", |text| {
            text.parse().ok().filter(|version: &i64| *version > 0)
        });
        params.finish()?;
        let stored = &self.state.documents;
        let found = match version {
            Some(version) => stored.at_version(&self.collection, name, version).await,
            None => stored.newest(&self.collection, name).await,
        };
        let found = found.map_err(|error| Problem::store(&error))?;
        let found = found.ok_or_else(|| self.unknown(name, version))?;
        let tag = etag(&found);
        let accepted = headers.get_all(ACCEPT);
        let wants_yaml = accepted
            .iter()
            .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("yaml")));
        let mut response = if versions::is_known(headers, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if wants_yaml || version.is_some() {
            let content_type = HeaderValue::from_static("application/yaml");
            ([(CONTENT_TYPE, content_type)], found.body).into_response()
        } else {
            let tree = document::tree(&found.body).map_err(|error| {
                Problem::internal(format!("the stored document cannot be read: {error}"))
            })?;
            Json(tree).into_response()
        };
        let version = HeaderValue::from(found.version);
        response.headers_mut().insert(ETAG, tag);
        response.headers_mut().insert(VERSION, version);
        Ok(response)
    }

    /// Puts one, if it makes sense and is written over the version that `headers` name.
    pub(super) async fn put(
        &self,
        name: String,
        params: Params,
        headers: HeaderMap,
        document: Document,
    ) -> Result<Response, Problem> {
        params.finish()?;
        path::check_name(self.collection.kind.as_str(), &name)?;
        let kind = self.collection.kind;
        let (document, sent) = match kind {
            DocumentKind::Suite => document.opened()?,
            DocumentKind::Profile | DocumentKind::Contract | DocumentKind::Replay => {
                (document, Sent::default())
            }
        };
        // Bounded before it is read.
        let tree = document.tree()?;
        let checked = validation::check(kind, &name, &document.text, &sent, &self.state.trust);
        let warnings = checked.map_err(Problem::invalid)?;
        path::check_called(kind, &name, tree.get("id").and_then(Value::as_str))?;
        if kind == DocumentKind::Replay {
            self.check_contract(&tree).await?;
        }
        let edited = self.edit(name.clone(), Some(document.text), headers).await;
        let edited = edited?;
        let status = if edited.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let body = Json(PutAnswer {
            id: self.id(&name),
            name,
            version: edited.version,
            warnings: (!warnings.is_empty()).then_some(warnings),
        });
        let version = HeaderValue::from(edited.version);
        Ok((status, [(ETAG, edited.tag), (VERSION, version)], body).into_response())
    }

    /// The contract that a replay session names must be there.
    async fn check_contract(&self, session: &Value) -> Result<(), Problem> {
        let Some(contract) = session.get("contract").and_then(Value::as_str) else {
            return Ok(());
        };
        let contracts = Collection {
            kind: DocumentKind::Contract,
            ..self.collection.clone()
        };
        let stored = &self.state.documents;
        let found = stored.newest(&contracts, contract).await;
        if found.map_err(|error| Problem::store(&error))?.is_some() {
            return Ok(());
        }
        let contract: String = contract.chars().take(64).collect();
        let detail = format!(
            "there is no contract `{contract}`; put it with `PUT /v1/contracts/{{name}}`, or name none"
        );
        Err(Problem::invalid(vec![Detail::at("/contract", detail)]))
    }

    /// Deletes one; its versions stay.
    pub(super) async fn delete(
        &self,
        name: String,
        params: Params,
        headers: HeaderMap,
    ) -> Result<StatusCode, Problem> {
        params.finish()?;
        self.edit(name, None, headers).await?;
        Ok(StatusCode::NO_CONTENT)
    }

    async fn edit(
        &self,
        name: String,
        body: Option<String>,
        headers: HeaderMap,
    ) -> Result<Put, Problem> {
        let at = self.state.recorder.unix_ms(Instant::now());
        let what = format!("{} `{name}`", self.collection.kind.as_str());
        let guarded = what.clone();
        let guard = move |held: Option<&store::Document>| {
            versions::check(&headers, held.map(etag).as_ref(), &guarded)
        };
        let tag = tag_of(sha256(body.as_deref().unwrap_or_default()));
        let stored = Arc::clone(&self.state.documents);
        let edited = stored.edit(
            self.collection.clone(),
            name.clone(),
            body,
            at,
            self.call.clone(),
            guard,
        );
        let edited = edited.await.map_err(|error| match error {
            NotEdited::Refused(problem) => problem,
            NotEdited::Unknown => self.unknown(&name, None),
            NotEdited::Write(WriteError::Stale) => Problem::conflict(format!(
                "{what} is being changed by others all the time; try again"
            )),
            NotEdited::Write(error @ WriteError::Nul) => {
                Problem::invalid(vec![Detail::at("", error.to_string())])
            }
            NotEdited::Write(WriteError::Store(error)) => Problem::store(&error),
        })?;
        Ok(Put {
            created: edited.created,
            version: edited.version,
            tag,
        })
    }

    /// What is called by an id has its name as that too.
    fn id(&self, name: &str) -> Option<String> {
        (self.collection.kind == DocumentKind::Replay).then(|| name.to_owned())
    }

    fn unknown(&self, name: &str, version: Option<i64>) -> Problem {
        let kind = self.collection.kind.as_str();
        let name: String = name.chars().take(64).collect();
        Problem::not_found(match version {
            Some(version) => {
                format!("{kind} `{name}` has no version {version}, or none that is still kept")
            }
            None => format!("there is no {kind} `{name}`"),
        })
    }
}

struct Put {
    created: bool,
    version: i64,
    tag: HeaderValue,
}

/// Half of the digest of its text, in quotes.
fn etag(document: &store::Document) -> HeaderValue {
    tag_of(document.digest.clone())
}

fn tag_of(mut digest: String) -> HeaderValue {
    digest.truncate(32);
    HeaderValue::from_str(&format!("\"{digest}\""))
        .expect("hex digits in quotes are a header value")
}
