//! What was observed of an application.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use squall_journal::redact::Redactor;

/// The anomaly of an application whose state cannot be read after an action. It is always one.
pub(super) const NO_STATE: &str = "no state";

/// What was observed after a reset or an action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Status of the response to the action; `None`: after a reset, or there was no response.
    pub status: Option<u16>,
    /// Why there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Latency of the action.
    pub latency_ms: u64,
    /// The response: JSON, or a text.
    pub response: Value,
    /// The state after it.
    pub state: Value,
    /// The signature of the state.
    pub signature: String,
    /// The last lines of the log, secrets removed.
    pub log: Vec<String>,
    /// The anomalies.
    pub anomalies: Vec<FoundAnomaly>,
}

impl Observation {
    pub(super) fn remove_secrets(&mut self, redactor: &Redactor) {
        let texts = |seen: &Self| [seen.response.to_string(), seen.state.to_string()];
        let before = texts(self);
        redactor.document(&mut self.response);
        redactor.document(&mut self.state);
        let after = texts(self);
        let has = |texts: &[String; 2], found: &str| texts.iter().any(|text| text.contains(found));
        for anomaly in &mut self.anomalies {
            // A value that was removed from its document.
            if has(&before, &anomaly.found) && !has(&after, &anomaly.found) {
                anomaly.found = "REDACTED".into();
            }
            redactor.text(&mut anomaly.found, usize::MAX);
        }
        for text in self.log.iter_mut().chain(&mut self.error) {
            redactor.text(text, usize::MAX);
        }
    }

    /// Whether the application's state could not be read.
    pub(super) fn has_no_state(&self) -> bool {
        self.anomalies.iter().any(|found| found.anomaly == NO_STATE)
    }
}

/// An anomaly that was observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundAnomaly {
    /// The anomaly's name.
    pub anomaly: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for FoundAnomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.anomaly, self.found)
    }
}
