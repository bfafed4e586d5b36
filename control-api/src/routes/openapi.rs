//! The API's description, OpenAPI 3.1: `openapi.yaml`, completed from the table of routes and from Rust types.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::Method;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use squall_harness::report::{Report, ReportFormat};
use squall_harness::run::{RunKind, RunRecord, RunState};
use squall_journal::record::{ExchangeRecord, ExplainedRecord, Kind};

use super::{
    audit, caller, chaos, daemon, documents, dry_run, fleet, imports, table, tapes, tokens,
};
use crate::access::{AccessRule, TokenRole};
use crate::audit::{AuditEntry, AuditOutcome};
use crate::clients::ClientLine;
use crate::page::ListPage;
use crate::problem::ProblemDetail;
use crate::runs::incidents::Incident;
use crate::store::StoredRecording;

/// JSON pointer to the schemas of a description.
const SCHEMAS: &str = "#/components/schemas/";

/// The OpenAPI document of every route, built on first use.
pub(super) async fn show() -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string().into());
    let json = [(http::header::CONTENT_TYPE, "application/json")];
    (json, text.clone()).into_response()
}

pub(super) fn description() -> Value {
    let text = include_str!("openapi.yaml");
    let document = squall_documents::parse("openapi.yaml", text).expect("a test reads it");
    let mut document = document.value.to_json();
    document["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    let mut tags = Vec::new();
    for route in table() {
        let rule = route.rule;
        let method = rule.method.as_str().to_ascii_lowercase();
        let operation = &mut document["paths"][rule.path][method];
        let tag = rule.path.strip_prefix("/v1/");
        let tag = tag.and_then(|rest| rest.split('/').next());
        let tag = tag.unwrap_or("daemon");
        let needed = rule.needs.role().map(TokenRole::as_str);
        let security: Vec<_> = needed
            .iter()
            .map(|role| json!({ "token": [role] }))
            .collect();
        operation["tags"] = json!([tag]);
        operation["x-squall-role"] = json!(needed.unwrap_or("none"));
        operation["security"] = json!(security);
        for status in common_problems(rule, !operation["requestBody"].is_null()) {
            operation["responses"][status.to_string()] =
                json!({ "$ref": format!("#/components/responses/{status}") });
        }
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    document["tags"] = tags.iter().map(|tag| json!({ "name": tag })).collect();
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.extend(derived_schemas());
        schemas.sort_keys();
    }
    document
}

/// The errors that every operation of this kind has.
fn common_problems(rule: AccessRule, has_body: bool) -> BTreeSet<u16> {
    // A request without a host, and one from a foreign page.
    let mut problems = BTreeSet::from([400, 403]);
    if has_body {
        problems.extend([413, 415, 422]);
    }
    if *rule.method == Method::POST {
        // The key was used for another request, is in use, or cannot be written.
        problems.extend([409, 413, 422, 503]);
    }
    // Requests that end chaos have no rate limit, but failed authentication has one.
    if rule.needs.role().is_some() {
        problems.extend([401, 429]);
    }
    problems
}

/// Schemas of profiles, and of the Rust types in responses.
fn derived_schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS[1..].trim_end_matches('/').into();
        settings.meta_schema = None;
    });
    let mut generator = settings.for_serialize().into_generator();
    macro_rules! add {
        ($($shape:ty,)*) => { $( generator.subschema_for::<$shape>(); )* };
    }
    add!(
        ListPage<AuditEntry>,
        ListPage<chaos::InForce>,
        ListPage<ClientLine>,
        ListPage<documents::DocumentLine>,
        ListPage<documents::ProfileLine>,
        ListPage<documents::VersionLine>,
        ListPage<ExchangeRecord>,
        ListPage<Incident>,
        ListPage<StoredRecording>,
        ListPage<RunRecord>,
        ListPage<tapes::TapeLine>,
        ListPage<tokens::TokenLine>,
        audit::AuditVerdict,
        caller::CallerLine,
        AuditOutcome,
        daemon::Health,
        daemon::Ready,
        documents::PutDocument,
        dry_run::DryRunReport,
        fleet::FleetState,
        ExplainedRecord,
        ReportFormat,
        Kind,
        ProblemDetail,
        Report,
        RunKind,
        RunState,
        imports::ImportedReplays,
        tokens::CreatedToken,
        TokenRole,
    );
    let mut schemas = generator.take_definitions(true);
    let profile = squall_profiles::schema::profile_schema().to_string();
    let profile = profile.replace("#/$defs/", SCHEMAS);
    let mut profile: Map<String, Value> =
        serde_json::from_str(&profile).expect("it is written as JSON");
    profile.shift_remove("$schema");
    if let Some(Value::Object(parts)) = profile.shift_remove("$defs") {
        schemas.extend(parts);
    }
    schemas.insert("Profile".to_owned(), profile.into());
    schemas
}
