//! Incidents that other tools recorded, as replay sessions: documents, and traces of OpenTelemetry as a collector gets
//! them.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use squall_documents::{Fields, Tree};
use squall_harness::import::otlp::OtlpFormat;
use squall_harness::import::{self, ImportFormat, ImportOptions, Imported, Unmapped};
use squall_journal::tape::Session;

use crate::access::Caller;
use crate::document::{self, RequestDocument, text};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::{DocumentKey, DocumentKind, DocumentText};
use crate::stored_documents;
use crate::tasks;

/// Why a collector rejects spans.
const REJECTED: &str = "spans have invalid ids, or their trace has more than 8 MiB";

/// The sessions of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ImportedReplays {
    /// Ids of the replay sessions that were put.
    items: Vec<String>,
    /// What is not in them.
    unmapped: Vec<Unmapped>,
}

/// A request to import.
struct ImportRequest {
    format: ImportFormat,
    document: String,
    name: Option<String>,
}

/// Imports a document, and puts its sessions.
pub(super) async fn create(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
    document: RequestDocument,
) -> Result<Response, ApiProblem> {
    params.finish()?;
    let request = document.fields(read)?;
    let recorder = state.recorder.clone();
    let imported = tasks::blocking(move || {
        let options = ImportOptions {
            name: request.name.as_deref().unwrap_or("import"),
            redactor: recorder.redactor(),
            tools: None,
        };
        import::read(request.format, request.document.as_bytes(), options)
    });
    let imported = imported.await;
    let imported = imported.map_err(|error| ApiProblem::invalid_at("/document", error))?;
    let mut items = Vec::new();
    for session in &imported.sessions {
        put(&state, &caller, session).await?;
        items.push(session.id.clone());
    }
    let unmapped = imported.unmapped;
    Ok((
        StatusCode::CREATED,
        Json(ImportedReplays { items, unmapped }),
    )
        .into_response())
}

fn read(fields: &mut Fields<'_, '_>) -> Option<ImportRequest> {
    fields.require("from", "the format of the document");
    fields.require("document", "the document, as it is or as a text");
    let format = fields.word("from", "", "format", ImportFormat::NAMES);
    let document = fields.any("document", "");
    let document = document.map(|node| match &node.value {
        Tree::Scalar { text, .. } => text.clone(),
        tree @ (Tree::Null | Tree::List(_) | Tree::Map(_)) => tree.to_json().to_string(),
    });
    let names = "1 to 64 characters of a-z, A-Z, 0-9, `.`, `_` and `-`";
    let is_name = |name: &str| name.len() <= 64 && squall_proxy::is_scope_name(name);
    let name = fields.field("name", "", text(names, is_name));
    Some(ImportRequest {
        format: format?,
        document: document?,
        name,
    })
}

/// Puts a session, unless it is stored already.
async fn put(state: &ApiState, caller: &Caller, session: &Session) -> Result<(), ApiProblem> {
    let key = DocumentKey {
        workspace: caller.workspace().to_owned(),
        kind: DocumentKind::Replay,
        name: session.id.clone(),
    };
    let body = session.to_yaml();
    let newest = stored_documents::newest(&state.store, &key).await?;
    if newest.is_some_and(|(_, text)| text.body == body) {
        return Ok(());
    }
    let text = DocumentText {
        body,
        variables: None,
    };
    let at = state.recorder.unix_ms(Instant::now());
    let check = |_: Option<&_>| Ok(());
    let written = stored_documents::write(&state.store, &key, Some(&text), at, caller, check);
    written.await.map(drop)
}

/// Collects spans. A trace with calls of tools or models becomes a replay session, which is rewritten as more spans
/// arrive.
pub(super) async fn collect(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
    request: Request,
) -> Result<Response, ApiProblem> {
    params.finish()?;
    let (format, is_gzip) = format(request.headers())?;
    let body = document::body(request).await?;
    let (recorder, collected) = (state.recorder.clone(), Arc::clone(&state.traces));
    let workspace = caller.workspace().to_owned();
    let imported = tasks::blocking(move || {
        let (spans, rejected) = format.spans(&body, is_gzip)?;
        let (traces, left_out) = collected.add(&workspace, spans);
        let traces = traces.into_iter();
        let imported = traces.map(|spans| import::of_spans(spans, recorder.redactor()));
        Ok::<_, String>((imported.collect::<Vec<_>>(), rejected + left_out))
    });
    let (imported, rejected) = imported.await.map_err(ApiProblem::malformed)?;
    for trace in imported {
        store(&state, &caller, trace).await?;
    }
    let media_type = match format {
        OtlpFormat::Json => "application/json",
        OtlpFormat::Protobuf => "application/x-protobuf",
    };
    let headers = [(CONTENT_TYPE, media_type)];
    Ok((headers, format.response(rejected, REJECTED)).into_response())
}

/// The format of a request of OTLP, and whether its body is compressed.
fn format(headers: &HeaderMap) -> Result<(OtlpFormat, bool), ApiProblem> {
    let header = |name| headers.get(name).and_then(|it| it.to_str().ok());
    let media_type = header(CONTENT_TYPE).unwrap_or_default();
    let format = OtlpFormat::of(media_type).ok_or_else(|| {
        ApiProblem::unsupported_type("send OTLP as application/json or application/x-protobuf")
    })?;
    match header(CONTENT_ENCODING) {
        None | Some("identity") => Ok((format, false)),
        Some("gzip") => Ok((format, true)),
        Some(_) => Err(ApiProblem::unsupported_type(
            "the content-encoding must be gzip",
        )),
    }
}

/// Puts the session of a trace; traces without calls of tools and models are not sessions.
async fn store(state: &ApiState, caller: &Caller, imported: Imported) -> Result<(), ApiProblem> {
    for one in &imported.unmapped {
        tracing::info!("not in a session: {}: {}", one.what, one.why);
    }
    for session in &imported.sessions {
        if !session.tool_responses.is_empty() || !session.llm_responses.is_empty() {
            put(state, caller, session).await?;
        }
    }
    Ok(())
}
