//! An agent with an HTTP endpoint.
//!
//! Squall calls the agent directly and never through the proxy, because chaos is for the agent's own calls.
//! [`template`](super::template) builds the request, [`extract`](super::extract) reads the answer.

use std::collections::BTreeSet;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Url};
use serde_json::{Value, json};

use super::caller::HttpCaller;
use super::reset::Resetter;
use super::settings::{Agent, HttpAgent};
use super::template::{self, RequestPayload, Values};
use super::{
    AskError, Driver, Invocation, InvocationPlace, PromptTurn, ResetError, Surroundings, extract,
};
use crate::answer::AgentAnswer;
use crate::reach::Pending;

/// The media type of forms (WHATWG URL §5).
const FORM: &str = "application/x-www-form-urlencoded";

/// Invokes an agent over HTTP.
pub(super) struct HttpDriver {
    agent: HttpAgent,
    reset: Resetter,
    caller: HttpCaller,
}

impl HttpDriver {
    pub(super) fn new(agent: &Agent, http: &HttpAgent, surroundings: &Surroundings) -> Self {
        Self {
            agent: http.clone(),
            reset: Resetter::new(agent, surroundings),
            caller: HttpCaller {
                client: (surroundings.dialler).client_of_agent(&http.endpoint, agent.timeout),
                dialler: surroundings.dialler.clone(),
                endpoint: http.endpoint.clone(),
                headers: http.headers.clone(),
                path: http.response_path.clone(),
                instead: None,
                timeout: agent.timeout,
                retries: surroundings.retries,
            },
        }
    }

    fn request(
        &self,
        turn: PromptTurn<'_>,
        invocation: &Invocation,
    ) -> Result<RequestBuilder, AskError> {
        let bad = |why: &dyn std::fmt::Display| AskError::Request(why.to_string());
        let values = Values::of(
            turn.text,
            &invocation.conversation,
            self.agent.parse_structured_input,
        );
        let mut url: Url = self.agent.endpoint.parse().map_err(|error| bad(&error))?;
        let method = self.agent.method.clone();
        let builder = |url| self.caller.client.request(method, url);
        let mut parameters = self.agent.query_params.0.clone();
        let in_url = [Method::GET, Method::DELETE].contains(&self.agent.method);
        let payload = self.payload(turn, invocation, &values, in_url)?;
        if in_url {
            let asked = in_query(payload);
            let names: BTreeSet<_> = asked.iter().map(|(name, _)| name).collect();
            parameters.retain(|(known, _)| !names.contains(known));
            parameters.extend(asked);
            append(&mut url, &parameters);
            return Ok(builder(url));
        }
        append(&mut url, &parameters);
        let builder = builder(url);
        let (media_type, body) = match payload {
            In::Body(RequestPayload::Json(document)) => ("application/json", document.to_string()),
            In::Body(RequestPayload::Text(text)) => ("text/plain; charset=utf-8", text),
            In::Query(_) => ("text/plain; charset=utf-8", String::new()),
        };
        Ok(builder.header(CONTENT_TYPE, media_type).body(body))
    }

    fn payload(
        &self,
        turn: PromptTurn<'_>,
        invocation: &Invocation,
        values: &Values,
        in_url: bool,
    ) -> Result<In, AskError> {
        let Some(template) = &self.agent.request_template else {
            let mut document = json!({ "input": turn.text });
            if turn.is_one_of_several {
                document["conversation_id"] = json!(invocation.conversation);
            }
            return Ok(In::Body(RequestPayload::Json(document)));
        };
        if in_url && let Some(pairs) = template::fill_query(template, values)? {
            return Ok(In::Query(pairs));
        }
        if self.sends_a_form() {
            return template::fill_form(template, values).map(In::Body);
        }
        template::fill(template, values).map(In::Body)
    }

    /// Whether the suite sets the form content type, so that the body is encoded as a form.
    fn sends_a_form(&self) -> bool {
        let mut headers = self.agent.headers.0.iter();
        let named = headers.find(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
        let media_type = named.and_then(|(_, value)| value.split(';').next());
        media_type.is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case(FORM))
    }
}

impl Driver for HttpDriver {
    fn turn<'a>(
        &'a self,
        invocation: &'a Invocation,
        turn: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>> {
        let request = move || self.request(turn, invocation);
        Box::pin(self.caller.turn(invocation, turn, request))
    }

    fn reset<'a>(&'a self, place: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(self.reset.reset(place))
    }
}

/// Where a payload is sent.
enum In {
    Body(RequestPayload),
    Query(Vec<(String, String)>),
}

/// The members of a JSON object are parameters; any other payload is the parameter `q`.
fn in_query(payload: In) -> Vec<(String, String)> {
    match payload {
        In::Query(pairs) => pairs,
        In::Body(RequestPayload::Json(Value::Object(members))) => members
            .into_iter()
            .map(|(name, value)| (name, extract::text_of(&value)))
            .collect(),
        In::Body(RequestPayload::Json(other)) => vec![("q".to_owned(), extract::text_of(&other))],
        In::Body(RequestPayload::Text(text)) => vec![("q".to_owned(), text)],
    }
}

/// Appends parameters to those in the URL.
fn append(url: &mut Url, parameters: &[(String, String)]) {
    if !parameters.is_empty() {
        url.query_pairs_mut().extend_pairs(parameters);
    }
}

#[cfg(test)]
mod tests;
