//! Records and plays traffic of this process's proxy.

use std::sync::Arc;

use squall_control_api::store::{DEFAULT_WORKSPACE, StoredRecording};
use squall_control_api::{NewRecording, NotBegun, Recordings};
use squall_journal::tape::{Session, har};
use squall_proxy::chaos::DEFAULT_SCOPE;
use squall_proxy::tape::{Playing, PlayingOptions};

use super::Daemon;
use crate::args::RecordingFormat;
use crate::failure::Failure;

impl Daemon {
    /// Answers the default scope's requests from a replay session from now on, with the session's rules for
    /// misses.
    pub(crate) fn play(&self, session: &Session) -> Result<Arc<Playing>, Failure> {
        let options = PlayingOptions {
            on_miss: session.on_miss.unwrap_or_default(),
            on_exhausted: session.on_exhausted.unwrap_or_default(),
            ..PlayingOptions::default()
        };
        let playing = Playing::new(format!("session {}", session.id), session, options);
        self.chaos
            .play(DEFAULT_SCOPE, Arc::clone(&playing))
            .map_err(|over| Failure::could_not("the tape", over))?;
        Ok(playing)
    }

    /// Records everything from now on.
    pub(crate) async fn record(&self) -> Result<StoredRecording, Failure> {
        let asked = NewRecording {
            workspace: DEFAULT_WORKSPACE.to_owned(),
            ..NewRecording::default()
        };
        self.recordings
            .begin(asked)
            .await
            .map_err(|error| match error {
                NotBegun::Store(error) => error.into(),
                NotBegun::TooMany(_) => Failure::could_not("the recording", error),
            })
    }

    /// Ends a recording; returns it in this format, and its final state.
    pub(crate) async fn recorded(
        &self,
        recording: &StoredRecording,
        form: RecordingFormat,
    ) -> Result<(String, StoredRecording), Failure> {
        let ended = self.recordings.stop(DEFAULT_WORKSPACE, &recording.id).await;
        let ended = ended.map_err(|error| Failure::could_not("the recording", error))?;
        let recorded = self.recordings.recorded(&ended).await?;
        let text = match form {
            RecordingFormat::Replay => Recordings::session(&ended, &recorded).to_yaml(),
            RecordingFormat::Har => {
                har::document(env!("CARGO_PKG_VERSION"), None, &recorded).to_string()
            }
        };
        Ok((text, ended))
    }
}
