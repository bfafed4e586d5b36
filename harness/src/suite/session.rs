//! Parses replay sessions, from their own files and from suites.
//!
//! [`squall_journal::tape`] defines sessions and how they are replayed.

mod read;

use squall_documents::DocumentError;
use squall_documents::{self as documents, DocumentReader, SourceText};
use squall_journal::tape::Session;

pub(super) use self::read::read;
pub use self::read::read_whole;
use super::contract::ContractPart;

/// A session that can be run: with its contract.
#[derive(Debug)]
pub struct ReplaySession {
    /// The session.
    pub session: Session,
    /// The contract that judges it; `None`: the suite judges it.
    pub contract: Option<ContractPart>,
}

/// One error in a session: `file:line:column: message`.
pub type SessionError = DocumentError;

/// Reads a session from YAML or JSON. Reports all errors at once.
pub fn parse(file: &str, text: &str) -> Result<Session, Vec<SessionError>> {
    let tree = documents::parse(file, text).map_err(|error| vec![error])?;
    let mut reader = DocumentReader::new(SourceText::new(file, text));
    let session = reader.read(&tree, read_whole);
    reader.finish(session).map(|(session, _)| session)
}

#[cfg(test)]
mod tests {
    use squall_journal::tape::{Content, Otherwise};

    use super::*;

    #[test]
    fn a_session_of_flakestorm_is_read() {
        let session = parse(
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
        assert_eq!(session.input, ["What does it cost?"]);
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
        let session = parse(
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
        let errors = parse("s.yaml", text).expect_err("errors");
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(told.join("\n"));
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert!(
            pointers.contains(&"/tool_responses/1/status"),
            "{pointers:?}"
        );
    }

    #[test]
    fn an_answer_of_nothing_is_said_and_not_left_out() {
        for field in ["llm_responses", "exchanges"] {
            let errors = parse("s", &format!("id: a\n{field}: [{{}}]\n")).expect_err(field);
            assert_eq!(errors[0].pointer, format!("/{field}/0"));
            assert_eq!(
                errors[0].message,
                "this is empty; write an answer, or remove it"
            );
        }
    }
}
