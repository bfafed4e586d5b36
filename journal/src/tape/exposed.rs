//! Secrets and personal data in an exchange, found before it is redacted. Invariants judge where they are sent.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use squall_dialects::stream::Framing;

use super::content::Content;
use super::recorded::{BY_NAME, Detected, Exposed, Recorded, Request};
use super::redact;
use super::session::header;
use crate::personal;
use crate::record::Place;
use crate::redact::{Redactor, Secret, decoded, is_form, is_secret_header};

/// Headers about the exchange itself, whose numbers are not personal.
#[rustfmt::skip]
const OF_THE_EXCHANGE: [&str; 12] = [
    "baggage", "content-length", "date", "etag", "forwarded", "host", "server", "traceparent", "tracestate",
    "user-agent", "via", "x-request-id",
];

/// This header is for the proxy, and is not forwarded.
const PROXY_AUTHORIZATION: &str = "proxy-authorization";

/// Searches an exchange before redaction. `framing`: the event format of the response, if it is a stream.
pub fn of(redactor: &Redactor, framing: Option<Framing>, recorded: &Recorded) -> Exposed {
    let mut request = ExposureSearch::new(redactor);
    let sent = &recorded.request;
    request.secrets(Place::Url, redactor.find_in_url(&sent.url));
    request.personal(Place::Url, &sent.url);
    request.message(&sent.headers, &sent.body.0);
    let mut answer = ExposureSearch::new(redactor);
    if let Some(got) = &recorded.answer {
        answer.message(&got.headers, &got.content.whole());
        if let (Content::Stream(pieces), Some(framing)) = (&got.content, framing) {
            for strand in redact::strands(&redact::frames(framing, pieces)) {
                answer.text(Place::Body, &strand.text, false);
            }
        }
    }
    Exposed {
        request: request.finish(),
        answer: answer.finish(),
        credentials: credentials(sent),
    }
}

/// A hash of secret headers and the URL.
fn credentials(request: &Request) -> u64 {
    let mut hasher = DefaultHasher::new();
    let secret = |(name, _): &&(String, String)| is_secret_header(name);
    for (name, value) in request.headers.iter().filter(secret) {
        // An AWS signature changes each second under the same key.
        let key = value.split("Signature=").next().unwrap_or_default();
        (name.to_ascii_lowercase(), key).hash(&mut hasher);
    }
    request.url.hash(&mut hasher);
    hasher.finish()
}

/// Findings in a message, without duplicates: place, whether it is personal, and detector.
struct ExposureSearch<'r> {
    redactor: &'r Redactor,
    found: BTreeSet<(Place, bool, Cow<'static, str>)>,
}

impl<'r> ExposureSearch<'r> {
    fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            found: BTreeSet::new(),
        }
    }

    fn secrets(&mut self, place: Place, found: Vec<Secret>) {
        let found = found.into_iter();
        self.found
            .extend(found.map(|secret| (place, false, secret.name.into())));
    }

    fn personal(&mut self, place: Place, text: &str) {
        decoded::search(text, &mut |text| {
            let found = personal::find(text).into_iter();
            self.found
                .extend(found.map(|one| (place, true, one.detector.into())));
            Vec::new()
        });
    }

    fn text(&mut self, place: Place, text: &str, is_form: bool) {
        self.secrets(place, self.redactor.find_in(text, is_form));
        self.personal(place, text);
    }

    fn message(&mut self, headers: &[(String, String)], body: &[u8]) {
        for (name, value) in headers
            .iter()
            .filter(|(name, _)| name != PROXY_AUTHORIZATION)
        {
            if is_secret_header(name) {
                let detector = format!("{BY_NAME}{name}").into();
                self.found.insert((Place::Header, false, detector));
            } else {
                self.secrets(Place::Header, self.redactor.find(value));
            }
            if !OF_THE_EXCHANGE.contains(&name.as_str()) {
                self.personal(Place::Header, value);
            }
        }
        let is_form = is_form(header(headers, "content-type"));
        self.text(Place::Body, &String::from_utf8_lossy(body), is_form);
    }

    fn finish(self) -> Vec<Detected> {
        let found = self.found.into_iter();
        let detected = found.map(|(place, personal, detector)| Detected {
            detector: detector.into_owned(),
            personal,
            place,
        });
        detected.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::{Data, Piece};
    use super::super::recorded::Request;
    use super::super::session::Answer;
    use super::*;
    use crate::record::{Kind, Outcome};

    fn exchange(url: &str, headers: &[(&str, &str)], body: &str) -> Recorded {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Recorded {
            id: "1".into(),
            scope: "s".into(),
            started_ms: 0,
            kind: Kind::Tool,
            dialect: None,
            outcome: Outcome::Ok,
            request: Request {
                method: "POST".into(),
                url: url.into(),
                headers: headers.iter().map(owned).collect(),
                body: Data::from(body),
                bytes: body.len() as u64,
                over_limit: false,
            },
            fingerprint: 0,
            input: None,
            answer: None,
            version: "HTTP/1.1".into(),
            response_bytes: 0,
            duration_ms: 0,
            faults: Vec::new(),
            exposed: None,
        }
    }

    fn told(found: &[Detected]) -> Vec<String> {
        let told = |one: &Detected| {
            let what = if one.personal { "person" } else { "secret" };
            format!("{what} {} {}", one.place.as_str(), one.detector)
        };
        found.iter().map(told).collect()
    }

    #[test]
    #[rustfmt::skip]
    fn both_are_found_in_every_part_of_a_request() {
        let (form, none) = ("content-type: application/x-www-form-urlencoded", "");
        for (query, header, body, expected) in [
            ("q=cats", none, "", None),
            ("api_key=x", none, "", Some("secret url parameter")),
            ("mail=ada%40mail.example.org", none, "", Some("person url email")),
            ("", "authorization: Bearer abc", "", Some("secret header header authorization")),
            ("", "authorization: Bearer sk-abcdefgh12", "", Some("secret header header authorization")),
            ("", "x-debug: key=sk-abcdefgh12", "", Some("secret header OpenAI, DeepSeek and others")),
            ("", "proxy-authorization: Basic c2NvcGU6eA==", "", None),
            ("", "x-user: ada@mail.example.org", "", Some("person header email")),
            ("", "user-agent: ada@mail.example.org", "", None),
            ("", none, r#"{"k":"see\nsk-abcdefgh12"}"#, Some("secret body OpenAI, DeepSeek and others")),
            ("", none, r#"{"password":"hunter2"}"#, Some("secret body JSON")),
            ("", none, r#"{"t":"her\n536-90-4399"}"#, Some("person body us_ssn")),
            ("", form, "mail=ada%40mail.example.org&n=1", Some("person body email")),
            ("", form, "client_secret=x", Some("secret body parameter")),
            ("", none, "acct_1234", Some("secret body a pattern of `redact`")),
        ] {
            let redactor = Redactor::with_patterns(["acct_[0-9]{4}"]).expect("a pattern");
            let headers: Vec<_> = header.split_once(": ").into_iter().collect();
            let exchange = exchange(&format!("http://t.test/?{query}"), &headers, body);
            let found = of(&redactor, None, &exchange);
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(told(&found.request), expected, "{query} {header} {body}");
            assert_eq!(found.answer, []);
        }
    }

    #[test]
    fn what_is_said_in_pieces_is_found_in_an_answer() {
        let said = |text: &str| Piece {
            at_ms: 0,
            data: Data::from(format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
            )),
        };
        let mut exchange = exchange("http://t.test/", &[], "");
        exchange.answer = Some(Answer {
            content: Content::Stream(
                ["sk-ab", "cdefgh12, ada", "@mail.exam", "ple.org"]
                    .map(said)
                    .into(),
            ),
            ..Answer::default()
        });
        let found = of(&Redactor::default(), Some(Framing::Sse), &exchange);
        assert_eq!(
            told(&found.answer),
            [
                "secret body OpenAI, DeepSeek and others",
                "person body email"
            ]
        );
    }

    #[test]
    fn credentials_are_told_apart_and_not_shown() {
        let shown = |url: &str, value: &str| {
            let headers = [("Authorization", value)];
            credentials(&exchange(url, &headers, "{}").request)
        };
        let signed = |signature: &str| {
            let value = format!("AWS4-HMAC-SHA256 Credential=AKIA/eu, Signature={signature}");
            shown("https://a.test/", &value)
        };
        let first = shown("https://a.test/", "Bearer a");
        assert_eq!(first, shown("https://a.test/", "Bearer a"));
        assert_ne!(first, shown("https://a.test/", "Bearer b"));
        assert_ne!(first, shown("https://a.test/?key=b", "Bearer a"));
        assert_eq!(signed("0a"), signed("0b"));
    }
}
