//! Gemini Live's messages: the members that route them, and the Close frames that are its errors.

use bytes::Bytes;
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
    error: Option<LiveError>,
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
    output_transcription: Option<IgnoredAny>,
    input_transcription: Option<IgnoredAny>,
    interim_input_transcription: Option<IgnoredAny>,
}

/// An error as on HTTP.
#[derive(Deserialize)]
struct LiveError {
    code: u16,
    #[serde(default)]
    message: String,
}

impl TurnContent {
    fn ends_turn(&self) -> bool {
        self.turn_complete == Some(true)
    }
}

impl LiveMessage {
    /// Reads a message; it has no members if it is not a JSON object.
    pub(super) fn of(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }

    /// Whether it begins the session.
    pub(super) fn is_setup(&self) -> bool {
        self.setup.is_some()
    }

    /// What the calls of the session begin with, if it begins the session: their model.
    pub(super) fn prefix(&self) -> Option<Bytes> {
        let setup = json!({ "model": self.setup.as_ref()?.model });
        Some(format!(r#"{{"setup":{setup},"#).into())
    }

    /// Whether the agent demands a turn of the model with it.
    pub(super) fn demands_turn(&self) -> bool {
        self.tool_response.is_some()
            || self
                .client_content
                .as_ref()
                .is_some_and(TurnContent::ends_turn)
    }

    /// Whether the model says or calls something with it.
    pub(super) fn begins_turn(&self) -> bool {
        let says = |it: &TurnContent| it.model_turn.is_some() || it.output_transcription.is_some();
        self.tool_call.is_some() || self.server_content.as_ref().is_some_and(says)
    }

    /// Whether it ends the model's turn.
    pub(super) fn ends_turn(&self) -> bool {
        self.tool_call.is_some()
            || self
                .server_content
                .as_ref()
                .is_some_and(TurnContent::ends_turn)
    }

    /// Whether it is a part of the model's turn.
    pub(super) fn is_of_turn(&self) -> bool {
        let is_input = |it: &TurnContent| {
            it.input_transcription.is_some() || it.interim_input_transcription.is_some()
        };
        self.tool_call.is_some()
            || self.usage_metadata.is_some()
            || self.server_content.as_ref().is_some_and(|it| !is_input(it))
    }

    /// The code and the reason of the Close frame that reports this error.
    ///
    /// Source: python-genai issues 760 and 985 (1011), google/adk-python issues 2591 (1008, with its cut reason)
    /// and 4140 (1011), rudyll/stackchan-ai-server issue 7 (1007).
    pub(super) fn closing(&self) -> Option<(u16, &str)> {
        let LiveError { code, message } = self.error.as_ref()?;
        let code = match code {
            400 => 1007,
            401..=404 => 1008,
            _ => 1011,
        };
        Some((code, &message[..message.floor_char_boundary(REASON)]))
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
            (r#"{"serverContent":{"modelTurn":{},"turnComplete":true}}"#, [false, true, true, true]),
            (r#"{"serverContent":{"turnComplete":true},"usageMetadata":{}}"#, [false, false, true, true]),
            (r#"{"serverContent":{"generationComplete":true}}"#, [false, false, false, true]),
            (r#"{"serverContent":{"interrupted":true}}"#, [false, false, false, true]),
            (r#"{"serverContent":{"inputTranscription":{"text":"a"}}}"#, [false; 4]),
            (r#"{"toolCall":{"functionCalls":[]}}"#, [false, true, true, true]),
            (r#"{"toolCallCancellation":{"ids":[]}}"#, [false; 4]),
            (r#"{"usageMetadata":{}}"#, [false, false, false, true]),
            (r#"{"goAway":{"timeLeft":"50s"}}"#, [false; 4]),
            ("[1]", [false; 4]),
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
    fn an_error_is_a_close_frame_that_the_reason_fits_in() {
        let long = "é".repeat(100);
        for (status, message, code, reason) in [
            (400, "no", 1007, "no"),
            (404, "no", 1008, "no"),
            (429, "no", 1011, "no"),
            (503, &long, 1011, &long[..122]),
        ] {
            let error = json!({ "error": { "code": status, "message": message } }).to_string();
            let closing = LiveMessage::of(error.as_bytes());
            assert_eq!(closing.closing(), Some((code, reason)), "{status}");
        }
    }
}
