//! Episodes as files: they are replayed, compared and shrunk.

use serde::{Deserialize, Serialize};
use squall_journal::redact::Redactor;

use super::application::{Application, ExploreError};
use super::observation::Observation;
use super::settings::ActionChoice;
use crate::ddmin::Ddmin;

/// One episode: a reset, and the actions after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The file of its suite.
    pub suite: String,
    /// Seed of the exploration, and of chaos.
    pub seed: u64,
    /// Its number in the exploration, from 1.
    pub episode: u64,
    /// States that no earlier episode reached.
    pub new_states: u64,
    /// What was observed after the reset.
    pub initial: Observation,
    /// The actions, in order.
    pub steps: Vec<EpisodeStep>,
}

/// One action, and what was observed after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpisodeStep {
    /// The action.
    #[serde(flatten)]
    pub choice: ActionChoice,
    /// What was observed.
    #[serde(flatten)]
    pub seen: Observation,
}

impl Episode {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.unwrap_or_default() + "\n"
    }

    /// The same episode, secrets removed from what was observed.
    #[must_use]
    pub fn without_secrets(mut self, redactor: &Redactor) -> Self {
        let steps = self.steps.iter_mut().map(|step| &mut step.seen);
        for seen in std::iter::once(&mut self.initial).chain(steps) {
            seen.remove_secrets(redactor);
        }
        self
    }

    /// Whether some action got a response below status 400.
    pub fn has_success(&self) -> bool {
        let mut statuses = self.steps.iter().filter_map(|step| step.seen.status);
        statuses.any(|status| status < 400)
    }

    /// The actions.
    pub fn choices(&self) -> Vec<ActionChoice> {
        self.steps.iter().map(|step| step.choice.clone()).collect()
    }

    /// The names of its anomalies, each once, and where each was observed first: 0 is after the reset.
    pub fn anomalies(&self) -> Vec<(usize, &str)> {
        let mut all: Vec<(usize, &str)> = Vec::new();
        let seen = std::iter::once(&self.initial).chain(self.steps.iter().map(|step| &step.seen));
        for (index, seen) in seen.enumerate() {
            for found in &seen.anomalies {
                if !all.iter().any(|(_, known)| *known == found.anomaly) {
                    all.push((index, &found.anomaly));
                }
            }
        }
        all
    }

    /// Resets the application, and sends it these actions; the rest is as in this episode. It ends early if the state
    /// cannot be read.
    pub async fn replay(
        &self,
        application: &mut Application<'_>,
        choices: &[ActionChoice],
    ) -> Result<Self, ExploreError> {
        let mut replayed = Self {
            initial: application.reset().await?,
            steps: Vec::new(),
            ..self.clone()
        };
        for choice in choices {
            let (choice, seen) = (choice.clone(), application.act(choice).await?);
            let has_ended = seen.has_no_state();
            replayed.steps.push(EpisodeStep { choice, seen });
            if has_ended {
                break;
            }
        }
        Ok(replayed)
    }

    /// The first step after which the states of two episodes have different signatures; 0 is after the reset.
    pub fn parting(&self, other: &Self) -> Option<usize> {
        let signatures = |episode: &Self| {
            let steps = episode.steps.iter().map(|step| step.seen.signature.clone());
            let all = std::iter::once(episode.initial.signature.clone()).chain(steps);
            all.collect::<Vec<_>>()
        };
        let (mine, others) = (signatures(self), signatures(other));
        let same = mine
            .iter()
            .zip(&others)
            .take_while(|(one, other)| one == other);
        let same = same.count();
        (same < mine.len().max(others.len())).then_some(same)
    }
}

/// The smallest part of a failing sequence that still fails: without any one of its actions it does not.
pub async fn shrink<E>(
    choices: Vec<ActionChoice>,
    mut fails: impl AsyncFnMut(&[ActionChoice]) -> Result<bool, E>,
) -> Result<Vec<ActionChoice>, E> {
    let part = |kept: &[usize]| -> Vec<_> { kept.iter().map(|at| choices[*at].clone()).collect() };
    let mut ddmin = Ddmin::new(choices.len());
    while let Some(set) = ddmin.next() {
        let failed = fails(&part(&set)).await?;
        ddmin.report(failed);
    }
    Ok(part(ddmin.kept()))
}
