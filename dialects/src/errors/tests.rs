use std::collections::BTreeSet;
use std::time::Duration;

use http::HeaderName;

use super::*;
use crate::dialect::{Credential, Target};
use crate::json::Value;
use crate::model::{LimitFigures, LimitScope};

/// Conditions and values that are a provider's own.
const OWN: &[&[&str]] = &[
    &[],
    &["responses"],
    &["listed"],
    &["server_sent_events"],
    &["invoke_stream"],
];

fn own_values() -> [(&'static str, Term<'static>); 3] {
    [
        ("next_number", Term::Number(7)),
        ("version", Term::Text("v1".to_owned())),
        ("method", Term::Text("generateContent".to_owned())),
    ]
}

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
            input_tokens: Some(12),
            now: Some(Duration::from_hours(498_700)),
        },
    ]
}

/// Every template of every provider is used, and renders: names that are misspelt in a file fail here.
#[test]
fn every_template_renders() {
    let values = own_values();
    let event = Document::parse(br#"{"id":"x","model":"m"}"#).expect("JSON");
    let last = Event::named(None, &event);
    for (file, templates) in ALL {
        let mut used = BTreeSet::new();
        for (error, context) in errors()
            .iter()
            .flat_map(|error| contexts().map(|context| (error, context)))
        {
            for conditions in OWN {
                let given = Given {
                    conditions,
                    values: &values,
                    last: Some(last),
                    ..Given::new(error, &context)
                };
                for form in [Form::Reply, Form::Event] {
                    let rendering = Rendering::new(&templates.0, given, form);
                    used.extend(rendering.layers.iter().map(|layer| layer.span().start));
                }
                let reply = templates.reply(given);
                let body = String::from_utf8_lossy(&reply.body).into_owned();
                let text = ["text/html", "text/event-stream"];
                let media_type = reply.headers["content-type"].to_str().expect("ASCII");
                if !text.iter().any(|text| media_type.starts_with(text)) {
                    assert!(Document::parse(body.as_bytes()).is_ok(), "{file}: {body}");
                }
                let made = templates.event(given);
                let data = made.map_or_else(|| b"{}".to_vec(), |made| made.data);
                assert!(Document::parse(&data).is_ok(), "{file}: {error:?}");
                for text in [body, String::from_utf8_lossy(&data).into_owned()] {
                    assert!(!text.is_empty(), "{file}: {error:?}");
                }
            }
        }
        for layer in layers(templates) {
            let raw = layer.raw();
            assert!(
                used.contains(&layer.span().start),
                "{file}: never used: {raw}"
            );
        }
    }
}

fn layers(templates: &'static Templates) -> impl Iterator<Item = Value<'static>> {
    let errors = templates.0.root().get("errors").into_iter();
    errors.flat_map(Value::items)
}

#[test]
fn every_file_names_its_sources_and_has_the_headers_that_it_names() {
    for (file, templates) in ALL {
        let root = templates.0.root();
        let sources: Vec<_> = root
            .get("sources")
            .into_iter()
            .flat_map(Value::items)
            .collect();
        let own = layers(templates).filter_map(|layer| layer.get("source"));
        assert!(!sources.is_empty(), "{file}");
        for source in sources.into_iter().chain(own) {
            let url = source.as_str().expect("a text");
            assert!(url.starts_with("https://"), "{file}: {url}");
        }
        let groups = root.get("headers").expect("headers");
        for layer in layers(templates) {
            for name in layer.get("headers").into_iter().flat_map(Value::items) {
                let name = name.as_str().expect("a text");
                assert!(groups.get(&name).is_some(), "{file}: headers `{name}`");
            }
        }
        for header in groups.members().flat_map(Value::members) {
            let name = header.key().expect("a member");
            assert!(HeaderName::try_from(&*name).is_ok(), "{file}: `{name}`");
        }
    }
}

#[test]
#[should_panic(expected = "there is no value `messag`")]
fn a_name_that_is_nobodys_is_noticed() {
    static MISSPELT: Templates = Templates(LazyLock::new(|| {
        Document::parse(br#"{"errors":[{"body":{"error":"{messag}"},"message":"m"}]}"#)
            .expect("JSON")
    }));
    let context = ErrorContext::default();
    MISSPELT.reply(Given::new(&ModelError::Auth, &context));
}
