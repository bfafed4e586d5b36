//! What went through this process's own proxy, recorded.

use squall_control_api::store::{DEFAULT_WORKSPACE, StoredRecording};
use squall_control_api::{NewRecording, NotBegun, Recordings};
use squall_journal::tape::har;

use super::Daemon;
use crate::commands::Form;
use crate::failure::Failure;

impl Daemon {
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
                NotBegun::TooMany => Failure::could_not("the recording", error),
            })
    }

    /// Ends a recording; gives it in the form that is wanted, and as it is now.
    pub(crate) async fn recorded(
        &self,
        recording: &StoredRecording,
        form: Form,
    ) -> Result<(String, StoredRecording), Failure> {
        let ended = self.recordings.stop(DEFAULT_WORKSPACE, &recording.id).await;
        let ended = ended.map_err(|error| Failure::could_not("the recording", error))?;
        let recorded = self.recordings.recorded(&ended).await?;
        let text = match form {
            Form::Replay => Recordings::session(&ended, &recorded).to_yaml(),
            Form::Har => har::document(env!("CARGO_PKG_VERSION"), None, &recorded).to_string(),
        };
        Ok((text, ended))
    }
}
