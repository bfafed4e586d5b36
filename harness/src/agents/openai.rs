//! An agent with an endpoint like `OpenAI`'s chat completions. Every turn repeats the conversation so far.

use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::caller::HttpCaller;
use super::reset::Resetter;
use super::settings::{Agent, OpenAiAgent};
use super::{AskError, Driver, Invocation, InvocationPlace, PromptTurn, ResetError, Surroundings};
use crate::answer::AgentAnswer;
use crate::reach::Pending;

/// Path of the answer.
const ANSWER: &str = "choices.0.message.content";

/// Pointer to the model's refusal, which has no content beside it.
const REFUSAL: &str = "/choices/0/message/refusal";

/// Invokes a chat endpoint.
pub(super) struct OpenAiDriver {
    model: String,
    reset: Resetter,
    caller: HttpCaller,
}

impl OpenAiDriver {
    pub(super) fn new(agent: &Agent, chat: &OpenAiAgent, surroundings: &Surroundings) -> Self {
        Self {
            model: chat.model.clone(),
            reset: Resetter::new(agent, surroundings),
            caller: HttpCaller {
                client: (surroundings.dialler).client_of_agent(&chat.endpoint, agent.timeout),
                dialler: surroundings.dialler.clone(),
                endpoint: endpoint(&chat.endpoint),
                headers: chat.headers.clone(),
                path: Some(ANSWER.to_owned()),
                instead: Some(REFUSAL),
                timeout: agent.timeout,
                retries: surroundings.retries,
            },
        }
    }

    fn request(&self, turn: PromptTurn<'_>) -> RequestBuilder {
        let mut messages = Vec::new();
        for before in turn.before {
            messages.push(json!({ "role": "user", "content": before.text }));
            messages.push(json!({ "role": "assistant", "content": before.answer }));
        }
        messages.push(json!({ "role": "user", "content": turn.text }));
        let body = json!({ "model": self.model, "messages": messages });
        let request = self.caller.client.post(&self.caller.endpoint);
        request
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string())
    }
}

impl Driver for OpenAiDriver {
    fn turn<'a>(
        &'a self,
        invocation: &'a Invocation,
        turn: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>> {
        let request = move || Ok(self.request(turn));
        Box::pin(self.caller.turn(invocation, turn, request))
    }

    fn reset<'a>(&'a self, place: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(self.reset.reset(place))
    }
}

/// The full URL of the endpoint, if only the base URL of the API is given.
fn endpoint(written: &str) -> String {
    let plain = written.trim_end_matches('/');
    if plain.ends_with("/chat/completions") || plain.contains('?') {
        written.to_owned()
    } else {
        format!("{plain}/chat/completions")
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Reply, Server, driver_of, json as answers};
    use super::*;
    use crate::prompt::Prompt;

    async fn ask(url: &str, turns: &[&str]) -> Result<AgentAnswer, AskError> {
        let driver = driver_of(&format!(
            "type: openai, endpoint: '{url}/v1', model: my-agent"
        ));
        let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
        let invocation = Invocation {
            prompt: Prompt::conversation(turns).expect("turns"),
            change: None,
            place: InvocationPlace::shared("cell-1"),
            traceparent: "00-00-00-01".into(),
            conversation: "c1".into(),
        };
        driver.ask(&invocation).await
    }

    fn said(content: &str) -> Reply {
        answers(&json!({ "choices": [{ "message": { "content": content } }] }).to_string())
    }

    #[tokio::test]
    async fn every_turn_has_what_was_said_before() {
        let server = Server::start(vec![said("one"), said("two")]).await;
        let answer = ask(&server.url, &["Hi", "And?"]).await.expect("asked");
        assert_eq!((answer.text.as_str(), answer.error), ("two", None));
        let requests = server.requests();
        assert_eq!(requests[0].line, "POST /v1/chat/completions HTTP/1.1");
        let sent: serde_json::Value = serde_json::from_str(&requests[1].body).expect("JSON");
        let expected = json!({ "model": "my-agent", "messages": [
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": "one" },
            { "role": "user", "content": "And?" },
        ]});
        assert_eq!(sent, expected);
    }

    #[tokio::test]
    async fn contents_in_parts_and_refusals_are_answers() {
        for (message, expected) in [
            (
                json!({ "content": [{ "type": "text", "text": "It " }, { "type": "text", "text": "rains" }] }),
                "It rains",
            ),
            (
                json!({ "content": null, "refusal": "I will not." }),
                "I will not.",
            ),
            (json!({ "content": null, "tool_calls": [] }), ""),
        ] {
            let body = json!({ "choices": [{ "message": message }] });
            let server = Server::start(vec![answers(&body.to_string())]).await;
            let answer = ask(&server.url, &["Hi"]).await.expect("an answer");
            assert_eq!((answer.text.as_str(), answer.error), (expected, None));
        }
        let server = Server::start(vec![answers(r#"{"choices": []}"#)]).await;
        ask(&server.url, &["Hi"]).await.expect_err("nothing there");
    }

    #[tokio::test]
    async fn an_error_of_the_endpoint_is_the_agents_own() {
        let reply = Reply::With(429, "application/json", r#"{"error": {}}"#.into());
        let server = Server::start(vec![reply]).await;
        let answer = ask(&server.url, &["Hi"]).await.expect("an answer");
        assert_eq!(
            answer.error.as_deref(),
            Some("the agent answered with status 429")
        );
    }

    #[test]
    fn an_api_gets_its_endpoint() {
        for (written, expected) in [
            ("http://a.test/v1", "http://a.test/v1/chat/completions"),
            ("http://a.test/v1/", "http://a.test/v1/chat/completions"),
            (
                "http://a.test/chat/completions",
                "http://a.test/chat/completions",
            ),
            (
                "http://a.test/x?api-version=1",
                "http://a.test/x?api-version=1",
            ),
        ] {
            assert_eq!(endpoint(written), expected);
        }
    }
}
