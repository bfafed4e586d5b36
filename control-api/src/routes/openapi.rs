//! The API's OpenAPI 3.1 description.
//!
//! `openapi.yaml` describes the request and response of each operation. Path, method and role come from the table
//! of routes; response schemas come from the Rust types.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::Method;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use squall_harness::report::{Report, ReportFormat};
use squall_harness::run::{RunKind, RunRecord, RunState};
use squall_journal::record::{ExchangeRecord, ExplainedRecord, Kind};

use super::{audit, chaos, daemon, documents, profiles, table, tapes, tokens};
use crate::access::{Needs, Role, Rule};
use crate::audit::{Entry, Outcome};
use crate::page::Page;
use crate::runs::incidents::Incident;
use crate::store::StoredRecording;

const JSON: &str = "application/json";

/// JSON pointer to the schemas of a description.
const PARTS: &str = "#/components/schemas/";

/// `openapi.yaml`; the file documents its members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    operations: BTreeMap<String, Operation>,
    problems: BTreeMap<String, Answer>,
    texts: Map<String, Value>,
    schemas: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Operation {
    summary: String,
    about: Option<String>,
    query: Map<String, Value>,
    headers: Map<String, Value>,
    guarded: bool,
    takes: Option<String>,
    takes_also: Map<String, Value>,
    optional: bool,
    example: Option<Value>,
    pages: Option<Pages>,
    answers: BTreeMap<String, Answer>,
    problems: BTreeSet<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    of: String,
    by: String,
    about: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    about: String,
    json: Option<Value>,
    content: Map<String, Value>,
    headers: BTreeMap<String, String>,
}

/// The OpenAPI document of every route, built on first use.
pub(super) async fn show() -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string().into());
    ([(http::header::CONTENT_TYPE, JSON)], text.clone()).into_response()
}

pub(super) fn description() -> Value {
    let text = include_str!("openapi.yaml");
    let described: Description = serde_saphyr::from_str(text).expect("a test reads it");
    let mut paths = Map::new();
    let mut tags = Vec::new();
    let routes = table();
    for route in &routes {
        let tag = json!({ "name": tag(route.rule.path) });
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        let mut written = described.operation(route.rule, route.operation);
        let links = routes
            .iter()
            .filter_map(|next| link(&route.rule, &next.rule, next.operation));
        add_links(&mut written["responses"], &links.collect());
        let path = paths.entry(route.rule.path).or_insert_with(|| json!({}));
        path[route.rule.method.as_str().to_ascii_lowercase()] = written;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Squall",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "What is in force, what went through.",
            "description": "`x-squall-role` is the role that a token needs for a call, once there are tokens. \
                Every error is a problem (RFC 9457).",
            "license": { "name": "Apache License 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Not asked for while there are no tokens, and the API is on loopback.",
                },
            },
            "responses": described.problems(),
            "schemas": described.parts(),
        },
    })
}

/// The tag of a path: its first part below `/v1`.
fn tag(path: &'static str) -> &'static str {
    let part = path
        .strip_prefix("/v1/")
        .and_then(|rest| rest.split('/').next());
    part.unwrap_or("daemon")
}

impl Description {
    fn operation(&self, rule: Rule, id: &str) -> Value {
        let operation = self.operations.get(id).expect("a test looks for it");
        let needed = rule.needs.role().map(Role::as_str);
        let mut written = json!({
            "operationId": id,
            "summary": operation.summary,
            "tags": [tag(rule.path)],
            "x-squall-role": needed.unwrap_or("none"),
            "security": needed.map(|role| json!({ "token": [role] })).into_iter().collect::<Vec<_>>(),
        });
        if let Some(about) = &operation.about {
            written["description"] = json!(about);
        }
        let parameters = self.parameters(rule, operation);
        if !parameters.is_empty() {
            written["parameters"] = json!(parameters);
        }
        if let Some(taken) = &operation.takes {
            let taken = json!(taken);
            let mut content = self.content([(JSON, &taken), ("application/yaml", &taken)]);
            content.extend(self.content(&operation.takes_also));
            if let Some(example) = &operation.example {
                content[JSON]["example"] = example.clone();
            }
            written["requestBody"] = json!({ "required": !operation.optional, "content": content });
        }
        written["responses"] = self.answers(rule, operation);
        written
    }

    fn parameters(&self, rule: Rule, operation: &Operation) -> Vec<Value> {
        let mut all = Vec::new();
        let mut add = |place: &str, name: &str, about: &Value, schema: &Value| {
            all.push(json!({
                "name": name,
                "in": place,
                "required": place == "path",
                "description": about,
                "schema": self.schema(schema),
            }));
        };
        for name in rule
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{'))
        {
            let name = name.trim_end_matches('}');
            let (about, schema) = match name {
                "scope" => ("A scope; `default` is everything in no other", "ScopeName"),
                "id" => ("Its id", "Name"),
                _ => ("Its name", "Name"),
            };
            add("path", name, &json!(about), &json!(schema));
        }
        if rule.method == Method::POST {
            let about =
                "Makes a retry safe: the same key and request get the first response, for a day";
            add(
                "header",
                "Idempotency-Key",
                &json!(about),
                &json!("IdempotencyKey"),
            );
        }
        for (name, row) in &operation.query {
            add("query", name, &row[1], &row[0]);
        }
        if let Some(pages) = &operation.pages {
            let about = json!("Entries of a page; 100 if absent");
            add("query", "limit", &about, &json!("Limit"));
            let about = json!("`next_cursor` of the page before");
            add("query", "cursor", &about, &json!(pages.by));
        }
        if operation.guarded {
            let about = "Only if this is the `ETag` of what is there; `*` for anything";
            add("header", "If-Match", &json!(about), &json!("string"));
            let about = "`*`: only if nothing is there";
            add("header", "If-None-Match", &json!(about), &json!("string"));
        }
        for (name, row) in &operation.headers {
            add("header", name, &row[1], &row[0]);
        }
        all
    }

    fn answers(&self, rule: Rule, operation: &Operation) -> Value {
        let answers = operation.answers.iter();
        let mut answers: Map<_, _> = answers
            .map(|(status, answer)| (status.clone(), self.answer(answer, false)))
            .collect();
        if let Some(pages) = &operation.pages {
            let page = Answer {
                about: pages.about.clone(),
                json: Some(json!(format!("{}Page", pages.of))),
                ..Answer::default()
            };
            answers.insert("200".to_owned(), self.answer(&page, false));
        }
        // A request without a host, and one from a foreign page.
        let mut problems = BTreeSet::from([400, 403]);
        problems.extend(&operation.problems);
        if operation.takes.is_some() {
            problems.extend([413, 415, 422]);
        }
        if operation.guarded {
            problems.insert(412);
        }
        if rule.method == Method::POST {
            // The key was used for another request, is in use, or cannot be written.
            problems.extend([409, 413, 422, 503]);
        }
        // Requests that end chaos have no rate limit, but failed authentication has one.
        if rule.needs != Needs::Nothing {
            problems.extend([401, 429]);
        }
        for status in problems {
            let problem = json!({ "$ref": format!("#/components/responses/{status}") });
            answers.insert(status.to_string(), problem);
        }
        answers.into()
    }

    fn answer(&self, answer: &Answer, is_problem: bool) -> Value {
        let mut written = json!({ "description": answer.about });
        let content = self.content(answer.json.iter().map(|schema| (JSON, schema)));
        let content: Map<_, _> = content
            .into_iter()
            .chain(self.content(&answer.content))
            .collect();
        if !content.is_empty() {
            written["content"] = content.into();
        }
        for (name, about) in &answer.headers {
            let schema = json!({ "type": "string" });
            written["headers"][name] =
                json!({ "description": about, "required": is_problem, "schema": schema });
        }
        written
    }

    fn content<'a, N: AsRef<str>>(
        &self,
        forms: impl IntoIterator<Item = (N, &'a Value)>,
    ) -> Map<String, Value> {
        let forms = forms.into_iter();
        let form = |(name, schema): (N, &Value)| {
            let schema = json!({ "schema": self.schema(schema) });
            (name.as_ref().to_owned(), schema)
        };
        forms.map(form).collect()
    }

    /// The schema with this name; any value without a name.
    fn schema(&self, named: &Value) -> Value {
        let Some(name) = named.as_str() else {
            return named.clone();
        };
        let text = self.texts.get(name).cloned();
        text.unwrap_or_else(|| json!({ "$ref": format!("{PARTS}{name}") }))
    }

    /// One response for each status of a problem.
    fn problems(&self) -> Map<String, Value> {
        let content = Map::from_iter([("application/problem+json".to_owned(), json!("Problem"))]);
        let written = |(status, answer): (&String, &Answer)| {
            let mut written = self.answer(answer, true);
            written["content"] = self.content(&content).into();
            (status.clone(), written)
        };
        self.problems.iter().map(written).collect()
    }

    /// All schemas by name: hand-written ones, profiles, and responses.
    fn parts(&self) -> Map<String, Value> {
        let profile = squall_profiles::schema::profile_schema().to_string();
        let profile = profile.replace("#/$defs/", PARTS);
        let mut profile: Map<String, Value> =
            serde_json::from_str(&profile).expect("it is written as JSON");
        profile.shift_remove("$schema");
        let mut parts = match profile.shift_remove("$defs") {
            Some(Value::Object(parts)) => parts,
            _ => Map::new(),
        };
        parts.insert("Profile".to_owned(), profile.into());
        parts.extend(answered());
        parts.extend(self.schemas.clone());
        parts.sort_keys();
        parts
    }
}

/// Schemas of the Rust types in responses.
fn answered() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = PARTS[1..].trim_end_matches('/').into();
        settings.meta_schema = None;
    });
    let mut generator = settings.for_serialize().into_generator();
    macro_rules! add {
        ($($shape:ty,)*) => { $( generator.subschema_for::<$shape>(); )* };
    }
    add!(
        Page<Entry>,
        Page<chaos::InForce>,
        Page<documents::Listed>,
        Page<ExchangeRecord>,
        Page<Incident>,
        Page<profiles::Listed>,
        Page<StoredRecording>,
        Page<RunRecord>,
        Page<tokens::Listed>,
        audit::Verdict,
        daemon::Health,
        daemon::Ready,
        documents::PutAnswer,
        ExplainedRecord,
        ReportFormat,
        Kind,
        Outcome,
        profiles::PutAnswer,
        Report,
        Role,
        RunKind,
        RunState,
        tapes::Line,
        tokens::MadeAnswer,
    );
    generator.take_definitions(true)
}

/// A link from one route to another: to routes of the object that it creates, lists or puts.
fn link(from: &Rule, to: &Rule, id: &str) -> Option<(String, Value)> {
    let rest = to.path.strip_prefix(from.path)?;
    let (parameter, source) = if *from.method == Method::PUT {
        let is_same = rest.is_empty() && *to.method == Method::PUT;
        let is_of_it = rest.is_empty() || rest.starts_with('/');
        let parameter = parameter(from.path).filter(|_| is_of_it && !is_same)?;
        (parameter, format!("$request.path.{parameter}"))
    } else if from.path.contains('{') {
        return None;
    } else {
        let parameter = parameter(rest).filter(|_| rest.starts_with("/{"))?;
        let is_made = *from.method == Method::POST;
        let place = if is_made { "" } else { "/items/0" };
        (parameter, format!("$response.body#{place}/{parameter}"))
    };
    let link = json!({ "operationId": id, "parameters": { parameter: source } });
    Some((id.to_owned(), link))
}

/// The first parameter of a path.
fn parameter(path: &'static str) -> Option<&'static str> {
    let parameter = path.split('/').find_map(|part| part.strip_prefix('{'));
    parameter?.strip_suffix('}')
}

/// Adds links to the JSON responses of an operation.
fn add_links(answers: &mut Value, links: &Map<String, Value>) {
    let answers = answers.as_object_mut().into_iter().flatten();
    for (status, answer) in answers.filter(|_| !links.is_empty()) {
        if status.starts_with('2') && answer["content"].get(JSON).is_some() {
            answer["links"] = json!(links);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_is_described_is_a_route_s() {
        let text = include_str!("openapi.yaml");
        let described: Description = serde_saphyr::from_str(text).expect("YAML");
        let routes: BTreeSet<_> = table().iter().map(|route| route.operation).collect();
        let described: BTreeSet<_> = described.operations.keys().map(String::as_str).collect();
        assert_eq!(described, routes);
    }
}
