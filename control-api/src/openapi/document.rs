//! The description as a whole.

use std::collections::BTreeSet;

use http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::links;
use super::operation::{Answer, JSON, Operation, Parameter, Shape};
use super::profile::PARTS;
use crate::access::{Needs, Role, Rule};
use crate::problem::{ProblemDocument, STATUSES};

/// The OpenAPI document of these routes, in their order.
pub(crate) fn document(routes: impl IntoIterator<Item = (Rule, Operation)>) -> Value {
    let routes: Vec<_> = routes.into_iter().collect();
    let mut shapes = Shapes::new();
    let mut paths = Map::new();
    let mut tags: Vec<&str> = Vec::new();
    for (rule, operation) in &routes {
        let tag = tag(rule.path);
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        let method = rule.method.as_str().to_ascii_lowercase();
        let mut written = written(rule, operation, tag, &mut shapes);
        links::add(&mut written["responses"], rule, operation, &routes);
        let path = paths.entry(rule.path).or_insert_with(|| json!({}));
        path[method] = written;
    }
    let tags: Vec<_> = tags.iter().map(|tag| json!({ "name": tag })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Squall",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "What is in force, what went through.",
            "description": ABOUT,
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
            "responses": problems(),
            "schemas": shapes.finish(),
        },
    })
}

const ABOUT: &str = "`x-squall-role` is the role that a token needs for a call, once there are tokens. \
    Every error is a problem (RFC 9457).";

/// What a path is about: its first part under `/v1`.
fn tag(path: &'static str) -> &'static str {
    let part = path
        .strip_prefix("/v1/")
        .and_then(|rest| rest.split('/').next());
    part.unwrap_or("daemon")
}

fn written(rule: &Rule, operation: &Operation, tag: &str, shapes: &mut Shapes) -> Value {
    let needed = rule.needs.role().map(Role::as_str);
    let mut written = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag],
        "x-squall-role": needed.unwrap_or("none"),
        "security": needed.map(|role| json!({ "token": [role] })).into_iter().collect::<Vec<_>>(),
    });
    if let Some(about) = operation.about {
        written["description"] = json!(about);
    }
    let mut parameters: Vec<_> = of_path(rule.path);
    if rule.method == Method::POST {
        parameters.push(idempotency_key());
    }
    let taken = operation.parameters.iter();
    parameters.extend(taken.map(|parameter| shapes.parameter(parameter)));
    if !parameters.is_empty() {
        written["parameters"] = json!(parameters);
    }
    if !operation.body.is_empty() {
        let content = operation.body.iter();
        let content: Map<_, _> = content
            .map(|(media_type, shape)| {
                let mut taken = json!({ "schema": shapes.taken(*shape) });
                if let Some(example) = operation.example.as_ref().filter(|_| *media_type == JSON) {
                    taken["example"] = example.clone();
                }
                ((*media_type).to_owned(), taken)
            })
            .collect();
        written["requestBody"] = json!({ "required": !operation.or_nothing, "content": content });
    }
    written["responses"] = answers(rule, operation, shapes);
    written
}

fn answers(rule: &Rule, operation: &Operation, shapes: &mut Shapes) -> Value {
    let mut answers = Map::new();
    for answer in &operation.answers {
        answers.insert(answer.status.to_string(), shapes.answer(answer));
    }
    // A request without a host, and one from a foreign page.
    let mut problems = BTreeSet::from([400, 403]);
    problems.extend(&operation.problems);
    if rule.method == Method::POST {
        // Of a key that stands for something else, is being acted on, or cannot be written down.
        problems.extend([409, 413, 422, 503]);
    }
    match rule.needs {
        Needs::Nothing => {}
        // The brake is never too fast for a good token; an address may offer bad ones only so often.
        Needs::Brake | Needs::Role(_) => problems.extend([401, 429]),
    }
    for status in problems {
        let reference = json!({ "$ref": format!("#/components/responses/{status}") });
        answers.insert(status.to_string(), reference);
    }
    answers.into()
}

/// Parameters of the path: `{scope}` is a scope, everything else the name or id of something.
fn of_path(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| {
            let (about, pattern) = match name {
                "scope" => (
                    "A scope; `default` is everything in no other",
                    "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$",
                ),
                "id" => ("Its id", "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"),
                _ => ("Its name", "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"),
            };
            json!({
                "name": name,
                "in": "path",
                "required": true,
                "description": about,
                "schema": { "type": "string", "pattern": pattern },
            })
        })
        .collect()
}

/// What the layer for it takes.
fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "Makes asking again safe: the same key and request get the first answer, for a day",
        "schema": { "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" },
    })
}

/// An answer for each status that a problem has.
fn problems() -> Map<String, Value> {
    let content = json!({
        "application/problem+json": { "schema": { "$ref": format!("#{PARTS}/Problem") } },
    });
    let answers = STATUSES.iter().map(|status| {
        let mut answer = json!({ "description": status.when, "content": content });
        if let Some((name, about)) = status.header {
            answer["headers"][name] = header(about, true);
        }
        (status.code.to_string(), answer)
    });
    answers.collect()
}

fn header(about: &str, required: bool) -> Value {
    json!({ "description": about, "required": required, "schema": { "type": "string" } })
}

/// Schemas of what is taken and of what is answered: a member with a default may be left out of the one
/// and is always in the other.
struct Shapes {
    taken: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Shapes {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = PARTS.into();
            settings.meta_schema = None;
        });
        let mut answered = settings.clone().for_serialize().into_generator();
        answered.subschema_for::<ProblemDocument>();
        Self {
            taken: settings.for_deserialize().into_generator(),
            answered,
        }
    }

    fn taken(&mut self, shape: Shape) -> Value {
        shape(&mut self.taken).to_value()
    }

    fn parameter(&mut self, parameter: &Parameter) -> Value {
        json!({
            "name": parameter.name,
            "in": parameter.place,
            "required": false,
            "description": parameter.about,
            "schema": self.taken(parameter.shape),
        })
    }

    fn answer(&mut self, answer: &Answer) -> Value {
        let mut written = json!({ "description": answer.about });
        for (media_type, shape) in &answer.content {
            let schema = shape(&mut self.answered).to_value();
            written["content"][*media_type] = json!({ "schema": schema });
        }
        for (name, about) in &answer.headers {
            written["headers"][*name] = header(about, false);
        }
        written
    }

    /// All parts, by name.
    fn finish(mut self) -> Map<String, Value> {
        let mut parts = self.answered.take_definitions(true);
        parts.extend(self.taken.take_definitions(true));
        parts.sort_keys();
        parts
    }
}
