use std::collections::BTreeSet;
use std::ptr;
use std::time::Duration;

use http::HeaderName;

use super::*;
use crate::json::Document;
use crate::model::{LimitFigures, LimitScope};

/// Conditions that are a provider's own.
const OWN: [&str; 7] = [
    "",
    "live",
    "responses",
    "realtime",
    "listed",
    "server_sent_events",
    "invoke_stream",
];

/// Names in templates that no file defines: values of the exchange, those of one provider, and
/// functions.
const NAMES: &str = "draw account model asked previous_response input_tokens api_version masked status reason \
                     retry_after wait limit used requested left next_number next_event response version method uuid \
                     hex letters between below plus max min thousands text vendor refill reset \
                     seconds millis ceil go protobuf date";

fn errors() -> Vec<ModelError> {
    let limit = |scope, retry_after: Option<u64>, figures| ModelError::RateLimit {
        scope,
        retry_after: retry_after.map(Duration::from_millis),
        figures,
    };
    let figures = |requested| LimitFigures {
        per_minute: 600,
        used: 350,
        requested,
    };
    let mut errors: Vec<_> = [500, 502, 503, 504, 529, 599]
        .map(|status| ModelError::ServerError { status })
        .into();
    for scope in [LimitScope::Requests, LimitScope::Tokens] {
        errors.push(limit(scope, Some(1500), None));
        errors.push(limit(scope, None, Some(figures(300))));
        errors.push(limit(scope, None, Some(figures(601))));
    }
    errors.extend([
        ModelError::QuotaExhausted,
        ModelError::ContextLength,
        ModelError::ContentFilter,
        ModelError::Auth,
        ModelError::ModelNotFound,
        ModelError::Timeout,
        ModelError::Overloaded,
    ]);
    errors
}

fn contexts() -> [ErrorContext<'static>; 2] {
    [
        ErrorContext::default(),
        ErrorContext {
            draw: 7,
            account: 9,
            credential: Some(Credential::Bearer("sk-0123456789abcdef")),
            target: Target::new("/?api-version=1"),
            model: Some("vendor/model"),
            stream: true,
            previous_response: Some("resp_1"),
            on_websocket: true,
            input_tokens: Some(12),
            now: Some(Duration::from_hours(498_700)),
        },
    ]
}

fn layers(templates: &'static Templates) -> impl Iterator<Item = &'static Json> {
    let errors: &'static Json = &templates.0["errors"];
    errors.as_array().into_iter().flatten()
}

#[test]
fn every_template_is_used_and_renders() {
    let event = Document::parse(br#"{"id":"x","model":"m"}"#).expect("JSON");
    let last = Some(Event::unnamed(&event));
    for (file, templates) in ALL {
        let mut used = BTreeSet::new();
        let mut errors = errors();
        if *file == "openai.json" {
            errors.push(ModelError::PreviousResponse);
        }
        if ["openai.json", "gemini.json"].contains(file) {
            errors.push(ModelError::ConnectionLimit);
        }
        for (error, context) in errors
            .iter()
            .flat_map(|error| contexts().map(|context| (error, context)))
        {
            for condition in OWN {
                let terms = ErrorTerms {
                    conditions: vec![condition],
                    values: vec![
                        ("next_number", 7.into()),
                        ("next_event", "event_7".into()),
                        ("response", "resp_7".into()),
                        ("version", "v1".into()),
                        ("method", "generateContent".into()),
                    ],
                };
                for form in [Form::Reply, Form::Event(last)] {
                    let rendering = Rendering::new(&templates.0, error, &context, &terms, form);
                    used.extend(rendering.layers.iter().map(|layer| ptr::from_ref(*layer)));
                }
                let reply = templates.reply(error, &context, &terms);
                let body = String::from_utf8_lossy(&reply.body).into_owned();
                let media_type = reply.headers["content-type"].to_str().expect("ASCII");
                assert!(!body.is_empty(), "{file}: {error:?}");
                if media_type.starts_with("application/json") {
                    assert!(Document::parse(body.as_bytes()).is_ok(), "{file}: {body}");
                }
                let made = templates.event(error, &context, &terms, last);
                let data = made.map_or_else(|| b"{}".to_vec(), |made| made.data);
                assert!(Document::parse(&data).is_ok(), "{file}: {error:?}");
            }
        }
        for layer in layers(templates) {
            assert!(
                used.contains(&ptr::from_ref(layer)),
                "{file}: {layer} is never used"
            );
        }
    }
}

/// The words of every placeholder in a value.
fn words(value: &Json) -> Vec<String> {
    match value {
        Json::String(text) => {
            let placeholders = text.split('{').skip(1).filter_map(|it| it.split_once('}'));
            let words = placeholders.flat_map(|(words, _)| words.trim_end_matches('?').split(' '));
            words.map(str::to_owned).collect()
        }
        Json::Array(items) => items.iter().flat_map(words).collect(),
        Json::Object(members) => {
            let members = members.iter().filter(|(key, _)| *key != "note");
            members.flat_map(|(_, value)| words(value)).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn every_name_in_a_template_has_a_value() {
    for (file, templates) in ALL {
        let fields = layers(templates).chain(templates.0.get("texts"));
        let fields: Vec<&String> = fields
            .filter_map(Json::as_object)
            .flat_map(|it| it.keys())
            .collect();
        for word in words(&templates.0) {
            let is_known = word.parse::<u64>().is_ok()
                || word.starts_with("last.")
                || NAMES.split_whitespace().any(|name| name == word)
                || fields.contains(&&word);
            assert!(is_known, "{file}: there is no value `{word}`");
        }
    }
}

#[test]
fn every_file_names_its_sources_and_has_the_headers_that_it_names() {
    for (file, templates) in ALL {
        let sources = templates.0["sources"].as_array().expect("sources");
        let own = layers(templates).filter_map(|layer| layer.get("source"));
        assert!(!sources.is_empty(), "{file}");
        for source in sources.iter().chain(own) {
            let url = source.as_str().expect("a text");
            assert!(url.starts_with("https://"), "{file}: {url}");
        }
        let groups = templates.0["headers"].as_object().expect("headers");
        for layer in layers(templates) {
            for name in layer["headers"].as_array().into_iter().flatten() {
                let name = name.as_str().expect("a text");
                assert!(groups.contains_key(name), "{file}: headers `{name}`");
            }
        }
        for name in groups
            .values()
            .filter_map(Json::as_object)
            .flat_map(|it| it.keys())
        {
            assert!(HeaderName::try_from(name).is_ok(), "{file}: `{name}`");
        }
    }
}

#[test]
fn some_errors_are_only_for_requests_that_can_get_them() {
    let no_such = Some("the dialect has no such error");
    let no_id = Some("the request has no `previous_response_id`, or was not read");
    let (previous, limit) = (ModelError::PreviousResponse, ModelError::ConnectionLimit);
    for (dialect, error, previous_response, on_websocket, why) in [
        ("openai-responses", &previous, Some("resp_1"), false, None),
        ("openai-responses", &previous, None, true, no_id),
        ("openai-responses", &limit, None, true, None),
        (
            "openai-responses",
            &limit,
            Some("resp_1"),
            false,
            Some("the call is not on a WebSocket"),
        ),
        ("openai-realtime", &limit, None, true, None),
        ("gemini-live", &limit, None, true, None),
        ("gemini-live", &previous, None, true, no_id),
        ("openai-chat", &previous, Some("resp_1"), true, no_such),
        ("anthropic", &limit, Some("resp_1"), true, no_such),
        ("anthropic", &ModelError::Auth, None, false, None),
    ] {
        let context = ErrorContext {
            previous_response,
            on_websocket,
            ..ErrorContext::default()
        };
        let dialect = crate::by_name(dialect).expect("a dialect");
        assert_eq!(context.rules_out(error, dialect), why, "{error:?}");
    }
}
