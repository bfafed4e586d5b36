//! Gemini Live's messages: the members that route them, and the Close frames that are its errors.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Longest reason of a Close frame, bytes (RFC 6455 §5.5).
const REASON: usize = 123;

/// The members of a message that route it. Google's clients write them in both spellings.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LiveMessage {
    setup: Option<LiveSetup>,
    #[serde(alias = "client_content")]
    client_content: Option<TurnContent>,
    #[serde(alias = "tool_response")]
    tool_response: Option<IgnoredAny>,
    server_content: Option<TurnContent>,
    tool_call: Option<IgnoredAny>,
    usage_metadata: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct LiveSetup {
    #[serde(default)]
    model: Value,
}

/// New content of either side.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TurnContent {
    #[serde(alias = "turn_complete")]
    turn_complete: Option<bool>,
    model_turn: Option<IgnoredAny>,
    output_transcription: Option<Transcription>,
    input_transcription: Option<IgnoredAny>,
    interim_input_transcription: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Transcription {
    /// Absent in the one that only says that it is finished.
    #[serde(default)]
    text: Value,
}

/// The body of an error response: Google's, or a problem of Squall's own.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorBody {
    error: ErrorMembers,
    detail: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorMembers {
    code: Option<u16>,
    message: Option<String>,
}

/// The code and the reason of the Close frame that reports an error, from its body. `status`: that of its response.
///
/// Source: python-genai issues 760 and 985 (1011), google/adk-python issues 2591 (1008, with its cut reason)
/// and 4140 (1011), rudyll/stackchan-ai-server issue 7 (1007).
pub(super) fn closing(status: StatusCode, body: &[u8]) -> (u16, String) {
    let body: ErrorBody = serde_json::from_slice(body).unwrap_or_default();
    let code = match body.error.code.unwrap_or(status.as_u16()) {
        400 => 1007,
        401..=404 => 1008,
        _ => 1011,
    };
    let mut reason = body.error.message.or(body.detail).unwrap_or_else(|| {
        let reason = status.canonical_reason();
        reason.unwrap_or_default().to_owned()
    });
    reason.truncate(reason.floor_char_boundary(REASON));
    (code, reason)
}

impl TurnContent {
    fn ends_turn(&self) -> bool {
        self.turn_complete == Some(true)
    }

    /// Whether the model says something with it.
    fn speaks(&self) -> bool {
        let has_text = |it: &Transcription| it.text.as_str().is_some_and(|text| !text.is_empty());
        self.model_turn.is_some() || self.output_transcription.as_ref().is_some_and(has_text)
    }

    /// Whether it is the transcript of what the model hears.
    fn is_input(&self) -> bool {
        self.input_transcription.is_some() || self.interim_input_transcription.is_some()
    }
}

impl LiveMessage {
    /// Reads a message; it has no members if it is not a JSON object.
    pub(super) fn of(text: &[u8]) -> Self {
        let is_object = text.trim_ascii_start().starts_with(b"{");
        let read = is_object.then(|| serde_json::from_slice(text).ok());
        read.flatten().unwrap_or_default()
    }

    /// What the calls of the session begin with, if it begins the session: their model.
    pub(super) fn prefix(&self) -> Option<Bytes> {
        let setup = json!({ "model": self.setup.as_ref()?.model });
        Some(format!(r#"{{"setup":{setup},"#).into())
    }

    /// Whether the agent demands a turn of the model with it.
    pub(super) fn demands_turn(&self) -> bool {
        let content = self.client_content.as_ref();
        self.tool_response.is_some() || content.is_some_and(TurnContent::ends_turn)
    }

    /// Whether the model calls tools with it.
    pub(super) fn calls_tools(&self) -> bool {
        self.tool_call.is_some()
    }

    /// Whether the model says or calls something with it.
    pub(super) fn begins_turn(&self) -> bool {
        let content = self.server_content.as_ref();
        self.calls_tools() || content.is_some_and(TurnContent::speaks)
    }

    /// Whether it ends the model's turn.
    pub(super) fn ends_turn(&self) -> bool {
        let content = self.server_content.as_ref();
        self.calls_tools() || content.is_some_and(TurnContent::ends_turn)
    }

    /// Whether it is a part of the model's turn.
    pub(super) fn is_of_turn(&self) -> bool {
        let content = self.server_content.as_ref();
        self.begins_turn()
            || self.ends_turn()
            || self.usage_metadata.is_some()
            || content.is_some_and(|content| !content.is_input())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn a_message_is_routed_by_its_members() {
        // What is demanded, begun, ended, and of the turn.
        for (message, facts) in [
            (r#"{"clientContent":{"turns":[],"turnComplete":true}}"#, [true, false, false, false]),
            (r#"{"client_content":{"turns":[],"turn_complete":true}}"#, [true, false, false, false]),
            (r#"{"clientContent":{"turns":[],"turnComplete":false}}"#, [false; 4]),
            (r#"{"clientContent":{"turns":[],"turnComplete":null}}"#, [false; 4]),
            (r#"{"toolResponse":{}}"#, [true, false, false, false]),
            (r#"{"tool_response":{}}"#, [true, false, false, false]),
            (r#"{"realtimeInput":{"text":"hi"}}"#, [false; 4]),
            (r#"{"setup":{"model":"m"}}"#, [false; 4]),
            (r#"{"serverContent":{"modelTurn":{"parts":[]}}}"#, [false, true, false, true]),
            (r#"{"serverContent":{"outputTranscription":{"text":"a"}}}"#, [false, true, false, true]),
            (r#"{"serverContent":{"outputTranscription":{"finished":true}}}"#, [false, false, false, true]),
            (r#"{"serverContent":{"inputTranscription":{"text":"a"},"modelTurn":{}}}"#, [false, true, false, true]),
            (r#"{"serverContent":{"inputTranscription":{"text":"a"},"turnComplete":true}}"#, [false, false, true, true]),
            (r#"{"serverContent":{"modelTurn":{},"turnComplete":true}}"#, [false, true, true, true]),
            (r#"{"serverContent":{"turnComplete":true},"usageMetadata":{}}"#, [false, false, true, true]),
            (r#"{"serverContent":{"generationComplete":true}}"#, [false, false, false, true]),
            (r#"{"serverContent":{"interrupted":true}}"#, [false, false, false, true]),
            (r#"{"serverContent":{"inputTranscription":{"text":"a"}}}"#, [false; 4]),
            (r#"{"toolCall":{"functionCalls":[]}}"#, [false, true, true, true]),
            (r#"{"toolCallCancellation":{"ids":[]}}"#, [false; 4]),
            (r#"{"usageMetadata":{}}"#, [false, false, false, true]),
            (r#"{"goAway":{"timeLeft":"50s"}}"#, [false; 4]),
            (" [null,null,{}]", [false; 4]),
            ("sound", [false; 4]),
        ] {
            let read = LiveMessage::of(message.as_bytes());
            let found = [read.demands_turn(), read.begins_turn(), read.ends_turn(), read.is_of_turn()];
            assert_eq!(found, facts, "{message}");
        }
    }

    #[test]
    fn calls_have_the_model_of_the_session() {
        for (message, prefix) in [
            (
                r#"{"setup":{"model":"models/m","tools":[]}}"#,
                Some(r#"{"setup":{"model":"models/m"},"#),
            ),
            (r#"{"setup":{}}"#, Some(r#"{"setup":{"model":null},"#)),
            (r#"{"toolResponse":{}}"#, None),
        ] {
            let found = LiveMessage::of(message.as_bytes()).prefix();
            assert_eq!(found.as_deref(), prefix.map(str::as_bytes), "{message}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn an_error_is_a_close_frame_that_the_reason_fits_in() {
        let long = "é".repeat(100);
        let error = |code: u16, message: &str| json!({ "error": { "code": code, "message": message } });
        for (status, body, code, reason) in [
            (200, error(400, "no"), 1007, "no"),
            (404, error(404, "no"), 1008, "no"),
            (200, error(429, "no"), 1011, "no"),
            (503, error(503, &long), 1011, &long[..122]),
            (404, json!({ "detail": "not on the tape" }), 1008, "not on the tape"),
            (502, json!("<html>"), 1011, "Bad Gateway"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let found = closing(status, body.to_string().as_bytes());
            assert_eq!(found, (code, reason.to_owned()), "{body}");
        }
    }
}
