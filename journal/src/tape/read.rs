//! Reads replay sessions strictly: everything that is wrong is said at once, with its place.

use std::fmt;

use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;

use super::content::{Content, Data, Piece};
use super::session::{Answer, Exchange, Matching, Otherwise, Session, ToolResponse};
pub use super::tree::Position;
use super::tree::{self, At, Tree};

/// Longest wait that can be written, milliseconds: a day. More is a slip of units.
const LONGEST_MS: u64 = 86_400_000;

/// Most errors that are told of one document.
const MOST_ERRORS: usize = 50;

/// One thing wrong with a session. `Display` gives `file:line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionError {
    /// The file as it was named.
    pub file: String,
    /// Where in the file.
    pub position: Position,
    /// JSON pointer (RFC 6901) to the value.
    pub pointer: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        if line == 0 {
            write!(f, "{}: {}", self.file, self.message)
        } else {
            write!(f, "{}:{line}:{column}: {}", self.file, self.message)
        }
    }
}

impl std::error::Error for SessionError {}

/// Reads a session from YAML or JSON.
pub(super) fn session(file: &str, text: &str) -> Result<Session, Vec<SessionError>> {
    let tree = tree::read(text).map_err(|(position, message)| {
        vec![SessionError {
            file: file.to_owned(),
            position,
            pointer: String::new(),
            message,
        }]
    })?;
    let mut reader = Reader {
        pointer: String::new(),
        errors: Vec::new(),
    };
    let session = reader.session(&tree);
    if reader.errors.is_empty() {
        return Ok(session);
    }
    let mut errors: Vec<SessionError> = reader
        .errors
        .into_iter()
        .map(|(position, pointer, message)| SessionError {
            file: file.to_owned(),
            position,
            pointer,
            message,
        })
        .collect();
    errors.sort_by_key(|error| error.position);
    errors.truncate(MOST_ERRORS);
    Err(errors)
}

/// Reads values; `None` for what is absent or wrong, and what is wrong is noted.
struct Reader {
    pointer: String,
    errors: Vec<(Position, String, String)>,
}

type Members<'a> = &'a [(At<String>, At<Tree>)];

/// The fields that an answer has, beside those that say which request it belongs to.
const ANSWER: [&str; 10] = [
    "status",
    "headers",
    "body",
    "body_base64",
    "stream",
    "latency_ms",
    "over_limit",
    "broken_off",
    "dialect",
    "http",
];

impl Reader {
    fn session(&mut self, node: &At<Tree>) -> Session {
        let fields = [
            "id",
            "name",
            "source",
            "captured_at",
            "input",
            "context",
            "tool_responses",
            "llm_responses",
            "exchanges",
            "expected_failure",
            "contract",
            "on_miss",
            "on_exhausted",
        ];
        let members = self.map(node, &fields);
        let session = Session {
            id: self.text(members, "id").unwrap_or_default(),
            input: self.text(members, "input"),
            name: self.text(members, "name"),
            source: self.text(members, "source"),
            captured_at: self.text(members, "captured_at"),
            context: self.items(members, "context", Self::object),
            tool_responses: self.items(members, "tool_responses", Self::tool_response),
            llm_responses: self.items(members, "llm_responses", Self::llm_response),
            exchanges: self.items(members, "exchanges", Self::exchange),
            expected_failure: self.text(members, "expected_failure"),
            contract: self.text(members, "contract"),
            on_miss: self.otherwise(members, "on_miss"),
            on_exhausted: self.otherwise(members, "on_exhausted"),
        };
        if session.id.trim().is_empty() && matches!(node.value, Tree::Map(_)) {
            self.error(
                "id",
                node.position,
                "`id` is missing; write a name for the session",
            );
        }
        session
    }

    fn object(&mut self, node: &At<Tree>) -> Option<Value> {
        if matches!(node.value, Tree::Map(_)) {
            return Some(node.value.to_value());
        }
        self.expected("", node, "a map");
        None
    }

    fn tool_response(&mut self, node: &At<Tree>) -> Option<ToolResponse> {
        let members = self.map(node, &["tool", "response", "status", "latency_ms"]);
        let tool = self.text(members, "tool");
        let is_null = |at: &At<Tree>| matches!(at.value, Tree::Scalar(Value::Null));
        if tool.is_none() && member(members, "tool").is_none_or(is_null) {
            self.error("tool", node.position, "`tool` is missing; write its name");
        }
        let response = member(members, "response").map_or(Value::Null, |at| at.value.to_value());
        Some(ToolResponse {
            tool: tool?,
            response,
            status: self.status(members).unwrap_or(200),
            latency_ms: self.millis(members, "latency_ms"),
        })
    }

    fn exchange(&mut self, node: &At<Tree>) -> Option<Exchange> {
        let exchange = self.matched(node)?;
        if exchange.matching.url.is_none() {
            let message = "`match` has no `url`; say which requests this answers";
            self.error("match", node.position, message);
        }
        Some(exchange)
    }

    fn llm_response(&mut self, node: &At<Tree>) -> Option<Exchange> {
        self.matched(node)
    }

    fn matched(&mut self, node: &At<Tree>) -> Option<Exchange> {
        let mut fields = vec!["match"];
        fields.extend(ANSWER);
        let members = self.map(node, &fields);
        if members.is_empty() {
            return None;
        }
        let matching = member(members, "match").map(|at| self.below("match", |it| it.matching(at)));
        Some(Exchange {
            matching: matching.unwrap_or_default(),
            dialect: self.dialect(members),
            http2: self.is_http2(members),
            answer: self.answer(members),
        })
    }

    fn matching(&mut self, node: &At<Tree>) -> Matching {
        let fields = [
            "method",
            "url",
            "model",
            "fingerprint",
            "body",
            "body_base64",
        ];
        let members = self.map(node, &fields);
        let body = self.body(members, "body");
        let mut method = self.text(members, "method").and_then(|written| {
            let method = Method::from_bytes(written.as_bytes()).ok();
            if method.is_none() {
                let at = member(members, "method").map_or(node.position, |at| at.position);
                let message =
                    format!("`method: {written}` is no method of HTTP; write GET, POST …");
                self.error("method", at, message);
            }
            method
        });
        if body.is_some() && method.is_none() {
            method = Some(Method::POST);
        }
        Matching {
            method,
            url: self.text(members, "url"),
            body: body.map(|(data, _)| data),
            fingerprint: self.fingerprint(members),
            model: self.text(members, "model"),
        }
    }

    fn fingerprint(&mut self, members: Members<'_>) -> Option<u64> {
        let at = member(members, "fingerprint")?;
        let written = self.text(members, "fingerprint")?;
        let read = (written.len() == 16)
            .then(|| u64::from_str_radix(&written, 16).ok())
            .flatten();
        if read.is_none() {
            let message = format!("`fingerprint: {written}`: allowed are 16 hexadecimal digits");
            self.error("fingerprint", at.position, message);
        }
        read
    }

    fn dialect(&mut self, members: Members<'_>) -> Option<String> {
        let at = member(members, "dialect")?;
        let written = self.text(members, "dialect")?;
        if squall_dialects::of_endpoint(&written).is_none() {
            let known = squall_dialects::ALL.iter().map(|dialect| dialect.name());
            let message = format!("unknown dialect `{written}`{}", nearest(&written, known));
            self.error("dialect", at.position, message);
        }
        Some(written)
    }

    fn is_http2(&mut self, members: Members<'_>) -> bool {
        let version = self.number(members, "http");
        if let (Some(number @ (0 | 3..)), Some(at)) = (version, member(members, "http")) {
            let message = format!("`http: {number}`: allowed are 1 and 2");
            self.error("http", at.position, message);
        }
        version == Some(2)
    }

    fn answer(&mut self, members: Members<'_>) -> Answer {
        let body = self.body(members, "body");
        let stream = member(members, "stream");
        if let (Some(_), Some(stream)) = (&body, stream) {
            let message = "an answer has `body` or `stream`, not both; keep one of them";
            self.error("stream", stream.position, message);
        }
        let mut headers = self.headers(members);
        let content = match (body, stream) {
            (Some((data, json)), _) => {
                let typed = headers.iter().any(|(name, _)| name == "content-type");
                if json && !typed {
                    headers.push(("content-type".to_owned(), "application/json".to_owned()));
                }
                Content::Body(data)
            }
            (None, Some(_)) => Content::Stream(self.items(members, "stream", Self::piece)),
            (None, None) => Content::default(),
        };
        Answer {
            status: self.status(members).unwrap_or(200),
            headers,
            latency_ms: self.millis(members, "latency_ms"),
            content,
            over_limit: self.flag(members, "over_limit"),
            broken_off: self.flag(members, "broken_off"),
        }
    }

    fn piece(&mut self, node: &At<Tree>) -> Option<Piece> {
        let members = self.map(node, &["at_ms", "data", "data_base64"]);
        let data = self.body(members, "data");
        if data.is_none() && matches!(node.value, Tree::Map(_)) {
            self.error("data", node.position, "`data` is missing");
        }
        Some(Piece {
            at_ms: self.millis(members, "at_ms"),
            data: data?.0,
        })
    }

    /// Bytes under `name` or `name_base64`, and whether they were written as a document.
    fn body(&mut self, members: Members<'_>, name: &str) -> Option<(Data, bool)> {
        let coded = format!("{name}_base64");
        match (member(members, name), member(members, &coded)) {
            (Some(_), Some(at)) => {
                let message = format!("`{name}` and `{coded}` are both there; keep one of them");
                self.error(&coded, at.position, message);
                None
            }
            (None, Some(at)) => {
                let text = self.text(members, &coded)?;
                let data = Data::of_base64(&text);
                if data.is_none() {
                    let message = format!("`{coded}` is no base64");
                    self.error(&coded, at.position, message);
                }
                data.map(|data| (data, false))
            }
            (Some(at), None) => Some(match &at.value {
                Tree::Scalar(Value::String(text)) => (text.as_str().into(), false),
                Tree::Scalar(Value::Null) => (Data::default(), false),
                document => (document.to_value().to_string().into(), true),
            }),
            (None, None) => None,
        }
    }

    fn headers(&mut self, members: Members<'_>) -> Vec<(String, String)> {
        let Some(at) = member(members, "headers") else {
            return Vec::new();
        };
        let Tree::Map(fields) = &at.value else {
            self.expected("headers", at, "a map of names and values");
            return Vec::new();
        };
        let mut headers = Vec::new();
        self.below("headers", |reader| {
            for (name, value) in fields {
                let values = match &value.value {
                    Tree::List(values) => values.iter().collect(),
                    _ => vec![value],
                };
                for value in values {
                    headers.extend(reader.header(name, value));
                }
            }
        });
        headers
    }

    fn header(&mut self, name: &At<String>, value: &At<Tree>) -> Option<(String, String)> {
        let text = match &value.value {
            Tree::Scalar(Value::String(text)) => text.clone(),
            Tree::Scalar(number @ Value::Number(_)) => number.to_string(),
            _ => {
                self.expected(&name.value, value, "a text or a list of texts");
                return None;
            }
        };
        if HeaderName::from_bytes(name.value.as_bytes()).is_err() {
            let message = format!("`{}` is no header's name", name.value.escape_debug());
            self.error(&name.value, name.position, message);
            return None;
        }
        if HeaderValue::from_bytes(text.as_bytes()).is_err() {
            let message = format!("`{}` cannot be a header's value", text.escape_debug());
            self.error(&name.value, value.position, message);
            return None;
        }
        Some((name.value.to_ascii_lowercase(), text))
    }

    fn status(&mut self, members: Members<'_>) -> Option<u16> {
        let number = self.whole(members, "status")?;
        let status = u16::try_from(number)
            .ok()
            .filter(|status| *status == 0 || (200..=999).contains(status));
        if status.is_none() {
            let at = member(members, "status")?.position;
            let message =
                format!("`status: {number}`: allowed are 200 to 999, and 0 for no answer at all");
            self.error("status", at, message);
        }
        status
    }

    fn millis(&mut self, members: Members<'_>, name: &str) -> u64 {
        let Some(number) = self.number(members, name) else {
            return 0;
        };
        if number > LONGEST_MS {
            let at = member(members, name).map(|at| at.position);
            let message =
                format!("`{name}: {number}`: allowed are milliseconds, 0 to {LONGEST_MS} (a day)");
            self.error(name, at.unwrap_or_default(), message);
        }
        number
    }

    /// A whole number from 0.
    fn whole(&mut self, members: Members<'_>, name: &str) -> Option<u64> {
        let at = member(members, name)?;
        let read = match &at.value {
            Tree::Scalar(Value::Number(number)) => number.as_u64(),
            _ => None,
        };
        if read.is_none() {
            self.expected(name, at, "a whole number from 0");
        }
        read
    }

    /// A number from 0, to the nearest whole one.
    fn number(&mut self, members: Members<'_>, name: &str) -> Option<u64> {
        let at = member(members, name)?;
        let read = match &at.value {
            Tree::Scalar(Value::Number(number)) => {
                number.as_u64().or_else(|| rounded(number.as_f64()?))
            }
            _ => None,
        };
        if read.is_none() {
            self.expected(name, at, "a number from 0");
        }
        read
    }

    fn flag(&mut self, members: Members<'_>, name: &str) -> bool {
        match member(members, name) {
            None => false,
            Some(At {
                value: Tree::Scalar(Value::Bool(flag)),
                ..
            }) => *flag,
            Some(other) => {
                self.expected(name, other, "`true` or `false`");
                false
            }
        }
    }

    fn otherwise(&mut self, members: Members<'_>, name: &str) -> Option<Otherwise> {
        let at = member(members, name)?;
        let written = self.text(members, name)?;
        let read = Otherwise::parse(&written);
        if read.is_none() {
            let words = [Otherwise::Error, Otherwise::Passthrough].map(Otherwise::as_str);
            let near = nearest(&written, words);
            let message = format!("`{name}: {written}`{near}; allowed are error and passthrough");
            self.error(name, at.position, message);
        }
        read
    }

    /// A text. `null` is nothing.
    fn text(&mut self, members: Members<'_>, name: &str) -> Option<String> {
        let at = member(members, name)?;
        match &at.value {
            Tree::Scalar(Value::String(text)) => Some(text.clone()),
            Tree::Scalar(Value::Null) => None,
            Tree::Scalar(_) => {
                self.expected(name, at, "a text: put it into quotes");
                None
            }
            _ => {
                self.expected(name, at, "a text");
                None
            }
        }
    }

    fn items<T>(
        &mut self,
        members: Members<'_>,
        name: &str,
        mut read: impl FnMut(&mut Self, &At<Tree>) -> Option<T>,
    ) -> Vec<T> {
        let Some(at) = member(members, name) else {
            return Vec::new();
        };
        match &at.value {
            Tree::Scalar(Value::Null) => Vec::new(),
            Tree::List(items) => self.below(name, |reader| {
                let read = |(index, item): (usize, &At<Tree>)| {
                    reader.below(&index.to_string(), |reader| read(reader, item))
                };
                items.iter().enumerate().filter_map(read).collect()
            }),
            _ => {
                self.expected(name, at, "a list");
                Vec::new()
            }
        }
    }

    /// The members of a map that may have these fields and no others.
    fn map<'a>(&mut self, node: &'a At<Tree>, fields: &[&str]) -> Members<'a> {
        let Tree::Map(members) = &node.value else {
            self.expected("", node, "a map");
            return &[];
        };
        for (name, _) in members {
            if !fields.contains(&name.value.as_str()) {
                let shown: String = name.value.chars().take(40).collect();
                let near = nearest(&name.value, fields.iter().copied());
                let message = format!("unknown field `{shown}`{near}");
                self.error(&name.value, name.position, message);
            }
        }
        members
    }

    fn expected(&mut self, field: &str, at: &At<Tree>, expected: &str) {
        let found = at.value.found();
        self.error(
            field,
            at.position,
            format!("found {found}, allowed is {expected}"),
        );
    }

    fn error(&mut self, field: &str, position: Position, message: impl Into<String>) {
        let escaped = field.replace('~', "~0").replace('/', "~1");
        let pointer = match field {
            "" => self.pointer.clone(),
            _ => format!("{}/{escaped}", self.pointer),
        };
        self.errors.push((position, pointer, message.into()));
    }

    fn below<T>(&mut self, field: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(field);
        let value = read(self);
        self.pointer.truncate(length);
        value
    }
}

fn member<'a>(members: Members<'a>, name: &str) -> Option<&'a At<Tree>> {
    members
        .iter()
        .find(|(key, _)| key.value == name)
        .map(|(_, member)| member)
}

/// A number of at least 0, rounded.
fn rounded(number: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    (0.0..=9e15)
        .contains(&number)
        .then(|| number.round() as u64)
}

/// `, did you mean …?` when an allowed word is near the one found.
fn nearest<'a>(found: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let tolerance = (found.chars().count() / 3).max(2);
    let near = allowed
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(found, word), word))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance);
    near.map_or_else(String::new, |(_, word)| format!(", did you mean `{word}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_flakestorm_is_read() {
        let session = session(
            "incident.yaml",
            r#"
id: inc-1
name: Prices were down
source: manual
captured_at: "2026-01-02T03:04:05Z"
input: What does it cost?
context: [{role: user, content: hello}]
tool_responses:
  - {tool: web_search, response: {price: 3}, latency_ms: 250}
  - {tool: web_search, response: null, status: 0}
  - {tool: mail, response: sent}
expected_failure: it made the price up
contract: default
"#,
        )
        .expect("a session");
        assert_eq!(session.input.as_deref(), Some("What does it cost?"));
        let tools: Vec<_> = session
            .tool_responses
            .iter()
            .map(|one| (one.tool.as_str(), one.response.to_string(), one.status))
            .collect();
        assert_eq!(
            tools,
            [
                ("web_search", r#"{"price":3}"#.to_owned(), 200),
                ("web_search", "null".to_owned(), 0),
                ("mail", r#""sent""#.to_owned(), 200),
            ]
        );
    }

    #[test]
    fn an_answer_may_be_written_as_a_document_or_a_stream() {
        let session = session(
            "s",
            r#"{"id":"s","on_miss":"passthrough","llm_responses":[{"dialect":"openai-chat",
            "match":{"model":"gpt-*"},"body":{"choices":[]}}],"exchanges":[{"match":{"url":"http://h/*"},
            "status":503,"headers":{"Retry-After":3,"x":["a","b"]},"stream":[{"at_ms":1.6,"data":"a"},
            {"data_base64":"/w=="}]}]}"#,
        )
        .expect("a session");
        assert_eq!(session.on_miss, Some(Otherwise::Passthrough));
        let model = &session.llm_responses[0];
        assert_eq!(
            model.answer.content.whole(),
            r#"{"choices":[]}"#.as_bytes().to_vec()
        );
        assert_eq!(model.answer.headers[0].1, "application/json");
        let answer = &session.exchanges[0].answer;
        assert_eq!(answer.headers.len(), 3);
        assert_eq!(answer.headers[0], ("retry-after".into(), "3".into()));
        let Content::Stream(pieces) = &answer.content else {
            panic!("{answer:?}");
        };
        assert_eq!((pieces[0].at_ms, pieces[1].at_ms), (2, 0));
        assert_eq!(&pieces[1].data.0[..], b"\xff");
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let text = r#"
name: 3
tool_response: []
tool_responses:
  - response: x
  - {tool: a, status: 42}
llm_responses:
  - {dialect: openai-chatt, body: x, stream: []}
exchanges:
  - {status: 200}
  - {match: {url: u, fingerprint: xyz}, headers: {"a b": c, d: "e\n"}}
  - {match: {url: u, method: "G T"}, latency_ms: 99999999999, body_base64: "?"}
  - 7
on_miss: pass
context: [x]
"#;
        let errors = session("s.yaml", text).expect_err("errors");
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(told.join("\n"));
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert!(
            pointers.contains(&"/tool_responses/1/status"),
            "{pointers:?}"
        );
    }

    #[test]
    fn numbers_of_any_length_are_taken_as_they_are() {
        let text = "id: '7'\ntool_responses: [{tool: a, response: {n: 18446744073709551615}}]\n";
        let session = session("s", text).expect("a session");
        let response = session.tool_responses[0].response.to_string();
        assert_eq!(
            (session.id.as_str(), response.as_str()),
            ("7", r#"{"n":18446744073709551615}"#)
        );
    }

    #[test]
    fn an_answer_of_no_tool_is_said_and_not_left_out() {
        for tool in ["{}", "{tool: null}", "{tool: [t]}"] {
            let text = format!("id: a\ntool_responses: [{tool}]\n");
            let errors = session("s", &text).expect_err(tool);
            assert_eq!(errors[0].pointer, "/tool_responses/0/tool", "{tool}");
        }
    }

    #[test]
    fn a_status_is_a_whole_number() {
        for (status, is_one) in [("503", true), ("0", true), ("0.5", false), ("2e-42", false)] {
            let text = format!("id: a\ntool_responses: [{{tool: t, status: {status}}}]\n");
            assert_eq!(session("s", &text).is_ok(), is_one, "{status}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_said_with_its_place() {
        for (text, place) in [("id: [", true), ("id: a\nid: b\n", true), ("[]", true)] {
            let errors = session("s.yaml", text).expect_err(text);
            assert_eq!(errors[0].position.line > 0, place, "{text}: {errors:?}");
        }
    }
}
