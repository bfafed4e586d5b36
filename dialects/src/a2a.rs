//! A2A, the protocol of agents that call agents: JSON-RPC messages over HTTP. The exchange is read and answered like one of
//! [MCP](crate::mcp); this module has the methods and the shapes of the results.
//!
//! | version | methods | recognised by |
//! |---|---|---|
//! | 0.3 | `message/send`, `tasks/get` … | the body |
//! | 1.0 | `SendMessage`, `GetTask` … | `A2A-Version` or `A2A-Extensions`; messages also by the body |
//!
//! Source: github.com/a2aproject/A2A, *specification.md* of v0.3.0 and v1.0.1, and the official Python SDK.

use http::{HeaderMap, Method};
use serde_json::{Value as Json, json};

use crate::json::{JsonKind, NodeId, Value};

/// Headers of A2A 1.0.
const HEADERS: [&str; 2] = ["a2a-version", "a2a-extensions"];
/// Where an agent's card is; the second path was used before 0.3.
const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
/// States of a task whose event stream goes on.
const GOING_ON: [&str; 4] = [
    "submitted",
    "working",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
];

/// The version of a call, by its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// 0.3: results name their kind.
    V03,
    /// 1.0: results are Protocol Buffers in JSON.
    V1,
}

/// The result of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultKind {
    /// A message or a task.
    Reply,
    /// Events with messages, tasks and their updates.
    Events,
    /// A task.
    Task,
    /// Neither a message nor a task.
    Other,
}

#[rustfmt::skip]
const METHODS: [(&str, Version, ResultKind); 21] = [
    ("message/send", Version::V03, ResultKind::Reply),
    ("message/stream", Version::V03, ResultKind::Events),
    ("tasks/get", Version::V03, ResultKind::Task),
    ("tasks/cancel", Version::V03, ResultKind::Task),
    ("tasks/resubscribe", Version::V03, ResultKind::Events),
    ("tasks/pushNotificationConfig/set", Version::V03, ResultKind::Other),
    ("tasks/pushNotificationConfig/get", Version::V03, ResultKind::Other),
    ("tasks/pushNotificationConfig/list", Version::V03, ResultKind::Other),
    ("tasks/pushNotificationConfig/delete", Version::V03, ResultKind::Other),
    ("agent/getAuthenticatedExtendedCard", Version::V03, ResultKind::Other),
    ("SendMessage", Version::V1, ResultKind::Reply),
    ("SendStreamingMessage", Version::V1, ResultKind::Events),
    ("GetTask", Version::V1, ResultKind::Task),
    ("CancelTask", Version::V1, ResultKind::Task),
    ("SubscribeToTask", Version::V1, ResultKind::Events),
    ("ListTasks", Version::V1, ResultKind::Other),
    ("CreateTaskPushNotificationConfig", Version::V1, ResultKind::Other),
    ("GetTaskPushNotificationConfig", Version::V1, ResultKind::Other),
    ("ListTaskPushNotificationConfigs", Version::V1, ResultKind::Other),
    ("DeleteTaskPushNotificationConfig", Version::V1, ResultKind::Other),
    ("GetExtendedAgentCard", Version::V1, ResultKind::Other),
];

/// Whether headers belong to A2A.
pub fn has_own_header(headers: &HeaderMap) -> bool {
    HEADERS.iter().any(|name| headers.contains_key(*name))
}

/// Whether a request reads an agent's card.
pub fn reads_card(method: &Method, path: &str) -> bool {
    *method == Method::GET && CARDS.iter().any(|card| path.ends_with(card))
}

/// Whether a method sends a message.
pub fn is_message(method: &str) -> bool {
    matches!(
        method,
        "message/send" | "message/stream" | "SendMessage" | "SendStreamingMessage"
    )
}

/// A call of an agent: what its results depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCall {
    version: Version,
    outcome: ResultKind,
    sends_message: bool,
    /// Whether no other protocol on JSON-RPC has such a call.
    pub(crate) is_certain: bool,
    /// Ids for synthetic results: those of the request, or else the id of its message.
    task: String,
    context: String,
}

impl AgentCall {
    /// The call of `method`; `None`: it is not a method of A2A.
    pub(crate) fn of(method: &str, params: Option<Value<'_>>) -> Option<Self> {
        let (_, version, outcome) = METHODS.iter().find(|(name, ..)| *name == method)?;
        let message = params.and_then(|params| params.get("message"));
        let text = |value: Option<Value<'_>>, name| Some(value?.text(name)?.into_owned());
        let id = text(params, "id");
        // MCP has `tasks/get` and `tasks/cancel` too, with another parameter.
        let is_mine = !matches!(method, "tasks/get" | "tasks/cancel") || id.is_some();
        let has_parts = message.and_then(|message| message.get("parts"));
        let task = text(message, "taskId")
            .or(id)
            .or(text(message, "messageId"));
        let task = task.unwrap_or_else(|| "task".to_owned());
        let context = text(message, "contextId").unwrap_or_else(|| task.clone());
        is_mine.then(|| Self {
            version: *version,
            outcome: *outcome,
            sends_message: is_message(method),
            is_certain: *version == Version::V03
                || has_parts.is_some_and(|parts| parts.kind() == JsonKind::Array),
            task,
            context,
        })
    }

    /// Whether it sends a message to the agent.
    pub fn sends_message(&self) -> bool {
        self.sends_message
    }

    /// Whether the response is an event stream.
    pub fn streams(&self) -> bool {
        self.outcome == ResultKind::Events
    }

    /// Whether the result is a message or a task.
    pub fn has_result(&self) -> bool {
        self.outcome != ResultKind::Other
    }

    /// The result of an agent that replies with this text.
    pub(crate) fn replied(&self, text: &str) -> Json {
        match self.outcome {
            ResultKind::Task => self.task("completed", Some(text)),
            ResultKind::Reply | ResultKind::Events | ResultKind::Other => {
                self.wrapped("message", self.message(text))
            }
        }
    }

    /// The result of an agent that failed.
    pub(crate) fn failed(&self, text: &str) -> Json {
        self.task("failed", Some(text))
    }

    /// The result of an agent that did its task and returns nothing.
    pub(crate) fn nothing(&self) -> Json {
        self.task("completed", None)
    }

    /// The update of a task that goes on.
    pub(crate) fn progress(&self) -> Json {
        let (task, context) = (&self.task, &self.context);
        let status = json!({ "state": self.state("working") });
        match self.version {
            Version::V03 => json!({
                "kind": "status-update", "taskId": task, "contextId": context, "status": status, "final": false,
            }),
            Version::V1 => {
                json!({ "statusUpdate": { "taskId": task, "contextId": context, "status": status } })
            }
        }
    }

    fn state(&self, state: &str) -> String {
        match self.version {
            Version::V03 => state.to_owned(),
            Version::V1 => format!("TASK_STATE_{}", state.to_ascii_uppercase()),
        }
    }

    fn message(&self, text: &str) -> Json {
        let (id, context) = (&self.task, &self.context);
        match self.version {
            Version::V03 => json!({
                "kind": "message", "messageId": format!("{id}-reply"), "contextId": context, "role": "agent",
                "parts": [{ "kind": "text", "text": text }],
            }),
            Version::V1 => json!({
                "messageId": format!("{id}-reply"), "contextId": context, "role": "ROLE_AGENT",
                "parts": [{ "text": text }],
            }),
        }
    }

    fn task(&self, state: &str, text: Option<&str>) -> Json {
        let mut status = json!({ "state": self.state(state) });
        if let Some(text) = text {
            status["message"] = self.message(text);
        }
        let mut task = json!({ "id": self.task, "contextId": self.context, "status": status });
        match (self.version, self.outcome) {
            (Version::V03, _) => {
                task["kind"] = "task".into();
                task
            }
            (Version::V1, ResultKind::Task) => task,
            (Version::V1, _) => self.wrapped("task", task),
        }
    }

    /// A result in 1.0 names its type by the member that contains it.
    fn wrapped(&self, name: &str, result: Json) -> Json {
        match self.version {
            Version::V03 => result,
            Version::V1 => json!({ name: result }),
        }
    }
}

/// The texts in a result, and the strings of its structured parts, which `true` marks. The history of a task
/// is left out, because it repeats the caller's messages.
pub(crate) fn texts(result: Value<'_>) -> Vec<(NodeId, bool)> {
    let mut found = Vec::new();
    let mut open = vec![result];
    while let Some(value) = open.pop() {
        for name in [
            "task",
            "message",
            "statusUpdate",
            "artifactUpdate",
            "status",
            "artifact",
        ] {
            open.extend(value.get(name));
        }
        open.extend(value.list("artifacts"));
        for part in value.list("parts") {
            found.extend(part.string("text").map(|text| (text.id(), false)));
            let data = part.get("data").into_iter();
            let below = data.flat_map(Value::descendants);
            let strings = below.filter(|value| value.kind() == JsonKind::String);
            found.extend(strings.map(|value| (value.id(), true)));
        }
    }
    found.sort_unstable();
    found
}

/// Whether a result is an update after which others follow in its stream.
pub(crate) fn is_update(result: Value<'_>) -> bool {
    let is = |name: &str| result.get(name).is_some();
    let update = is("statusUpdate") || is("artifactUpdate") || is("task");
    let kind = result.text("kind");
    if !update
        && !matches!(
            kind.as_deref(),
            Some("status-update" | "artifact-update" | "task")
        )
    {
        return false;
    }
    let of = ["statusUpdate", "task"]
        .iter()
        .find_map(|name| result.get(name));
    let state = of.unwrap_or(result).path(&["status", "state"]);
    let state = state.and_then(Value::as_str);
    !result.flag("final") && state.is_none_or(|state| GOING_ON.contains(&&*state))
}

/// How a task ended in a result, if it failed or was rejected.
pub fn failure(result: &Json) -> Option<&str> {
    let task = ["task", "statusUpdate"]
        .iter()
        .find_map(|name| result.get(name));
    let state = task.unwrap_or(result).pointer("/status/state")?.as_str()?;
    let failed = [
        "failed",
        "rejected",
        "TASK_STATE_FAILED",
        "TASK_STATE_REJECTED",
    ];
    failed.contains(&state).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn the_last_event_of_a_stream_is_told_from_updates() {
        for (result, expected) in [
            (r#"{"kind":"task","status":{"state":"submitted"}}"#, true),
            (r#"{"kind":"task","status":{"state":"completed"}}"#, false),
            (
                r#"{"kind":"artifact-update","artifact":{"parts":[]}}"#,
                true,
            ),
            (
                r#"{"kind":"status-update","status":{"state":"working"},"final":false}"#,
                true,
            ),
            (
                r#"{"kind":"status-update","status":{"state":"completed"},"final":true}"#,
                false,
            ),
            (r#"{"kind":"message","parts":[]}"#, false),
            (
                r#"{"task":{"status":{"state":"TASK_STATE_WORKING"}}}"#,
                true,
            ),
            (r#"{"artifactUpdate":{"artifact":{}}}"#, true),
            (
                r#"{"statusUpdate":{"status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#,
                false,
            ),
            (r#"{"message":{"parts":[]}}"#, false),
            (r#"{"content":[]}"#, false),
        ] {
            let document = Document::parse(result.as_bytes()).expect("a sample");
            assert_eq!(is_update(document.root()), expected, "{result}");
        }
    }
}
