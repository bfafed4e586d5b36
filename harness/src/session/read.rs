//! Reads replay sessions strictly: everything that is wrong is said at once, with its place.

mod values;

use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;
use squall_journal::tape::{
    Answer, Content, Data, Exchange, Matching, Piece, Session, ToolResponse,
};
use squall_profiles::document::{At, ScalarKind, Tree};
use squall_profiles::error::{Position, did_you_mean};
use squall_profiles::pointer::Pointer;

use self::values::{member, members_of};

/// Longest wait that can be written, milliseconds: a day. More is a slip of units.
const LONGEST_MS: u64 = 86_400_000;

/// Why what is said of an answer is not given.
const NO_ANSWER: &str = "`status: 0` is no answer at all: the connection closes";

/// Most errors that are told of one document.
const MOST_ERRORS: usize = 50;

/// Something wrong: where, the JSON pointer (RFC 6901) to it, and a sentence.
pub(crate) type Wrong = (Position, String, String);

/// A session, what is wrong with it, and what of it changes nothing, each in the order of the text.
pub(crate) struct Read {
    pub(crate) session: Session,
    pub(crate) wrong: Vec<Wrong>,
    pub(crate) notes: Vec<Wrong>,
}

/// Reads a session from a tree.
pub(crate) fn session(tree: &At<Tree>) -> Read {
    let mut reader = Reader {
        pointer: Pointer::default(),
        errors: Vec::new(),
        notes: Vec::new(),
    };
    let session = reader.session(tree);
    let in_order = |mut told: Vec<Wrong>| {
        told.sort_by_key(|(position, ..)| *position);
        told.truncate(MOST_ERRORS);
        told
    };
    Read {
        session,
        wrong: in_order(reader.errors),
        notes: in_order(reader.notes),
    }
}

/// Reads values; `None` for what is absent or wrong, and what is wrong is noted.
struct Reader {
    pointer: Pointer,
    errors: Vec<Wrong>,
    /// What changes nothing.
    notes: Vec<Wrong>,
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
            return Some(node.value.to_json());
        }
        self.expected("", node, "a map");
        None
    }

    fn tool_response(&mut self, node: &At<Tree>) -> Option<ToolResponse> {
        let members = self.map(node, &["tool", "response", "status", "latency_ms"]);
        let tool = self.text(members, "tool");
        let is_null = |at: &At<Tree>| at.value == Tree::Null;
        if tool.is_none() && member(members, "tool").is_none_or(is_null) {
            self.error("tool", node.position, "`tool` is missing; write its name");
        }
        let response = member(members, "response").map_or(Value::Null, |at| at.value.to_json());
        let status = self.status(members).unwrap_or(200);
        if status == 0 {
            self.changes_nothing(members, &["response"], NO_ANSWER);
        }
        Some(ToolResponse {
            tool: tool?,
            response,
            status,
            latency_ms: self.millis(members, "latency_ms"),
        })
    }

    fn exchange(&mut self, node: &At<Tree>) -> Option<Exchange> {
        let exchange = self.matched(node)?;
        let matching = &exchange.matching;
        if matching.url.is_none() {
            let message = "`match` has no `url`; say which requests this answers";
            self.error("match", node.position, message);
        }
        if matching.body.is_some() || matching.fingerprint.is_some() {
            let why = "the request is known by its `body` or `fingerprint` alone";
            self.matches_nothing(node, &["model"], why);
        }
        Some(exchange)
    }

    fn llm_response(&mut self, node: &At<Tree>) -> Option<Exchange> {
        let response = self.matched(node)?;
        let why = "model calls are not told apart by it; write their `fingerprint`";
        self.matches_nothing(node, &["body", "body_base64"], why);
        let why = "it is a host that speaks HTTP/2, which `exchanges` name by their `url`";
        self.changes_nothing(members_of(node), &["http"], why);
        Some(response)
    }

    fn matched(&mut self, node: &At<Tree>) -> Option<Exchange> {
        let mut fields = vec!["match"];
        fields.extend(ANSWER);
        let members = self.map(node, &fields);
        if members.is_empty() {
            if matches!(node.value, Tree::Map(_)) {
                self.error(
                    "",
                    node.position,
                    "this is empty; write an answer, or remove it",
                );
            }
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
        if body.is_some() && member(members, "fingerprint").is_some() {
            let why = "`fingerprint` stands for it";
            self.changes_nothing(members, &["body", "body_base64"], why);
        }
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
            let message = format!(
                "unknown dialect `{written}`{}",
                did_you_mean(&written, known)
            );
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
        let status = self.status(members).unwrap_or(200);
        if status == 0 {
            let of_an_answer = ["headers", "body", "body_base64", "stream"];
            self.changes_nothing(members, &of_an_answer, NO_ANSWER);
        }
        Answer {
            status,
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
                Tree::Null => (Data::default(), false),
                document => match document.to_json() {
                    Value::String(text) => (text.into(), false),
                    other => (other.to_string().into(), true),
                },
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
        let Tree::Scalar {
            text,
            kind: ScalarKind::Text | ScalarKind::Number,
        } = &value.value
        else {
            self.expected(&name.value, value, "a text or a list of texts");
            return None;
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
        Some((name.value.to_ascii_lowercase(), text.clone()))
    }
}
