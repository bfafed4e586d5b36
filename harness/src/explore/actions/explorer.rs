//! Chooses actions: epsilon-greedy over the values of Q-learning (Watkins, 1989) with a learning rate of 1.
//!
//! Every draw is a keyed hash of seed, episode and step. So one seed gives one sequence of actions, as long as the
//! application responds in the same way.

use std::collections::{BTreeMap, BTreeSet};

use squall_profiles::dice::{Dice, MILLION, RuleKey};
use squall_profiles::fingerprint::Fingerprint;

use super::application::{Application, ExploreError};
use super::file::{Episode, EpisodeStep};
use super::observation::Observation;
use super::settings::ActionChoice;

/// How much the best action of the next state counts.
const DISCOUNT: f64 = 0.5;

/// How an application is explored.
#[derive(Debug, Clone)]
pub struct ExplorerOptions {
    /// The suite's file, as it is written into episodes.
    pub suite: String,
    /// Seed of every draw.
    pub seed: u64,
    /// The share of steps with an action that is drawn, 0 to 1.
    pub epsilon: f64,
    /// Actions of an episode.
    pub steps: u64,
}

/// What an exploration has learned so far.
#[derive(Debug)]
pub struct Explorer {
    options: ExplorerOptions,
    choices: Vec<ActionChoice>,
    /// How often each choice was tried.
    tries: Vec<u32>,
    /// By state and number of the choice.
    values: BTreeMap<(String, usize), f64>,
    /// Signatures of states.
    states: BTreeSet<String>,
    /// Anomalies by the signature of the state in which they were found.
    anomalies: BTreeSet<(String, String)>,
}

impl Explorer {
    /// Begins with `choices`, at least one.
    pub fn new(options: ExplorerOptions, choices: Vec<ActionChoice>) -> Self {
        Self {
            options,
            tries: vec![0; choices.len()],
            choices,
            values: BTreeMap::new(),
            states: BTreeSet::new(),
            anomalies: BTreeSet::new(),
        }
    }

    /// Resets the application, and explores it for one episode. It ends early if the state cannot be read.
    pub async fn episode(
        &mut self,
        application: &mut Application<'_>,
        number: u64,
    ) -> Result<Episode, ExploreError> {
        let initial = application.reset().await?;
        let mut state = initial.signature.clone();
        let mut episode = Episode {
            suite: self.options.suite.clone(),
            seed: self.options.seed,
            episode: number,
            new_states: u64::from(self.states.insert(state.clone())),
            initial,
            steps: Vec::new(),
        };
        for step in 0..self.options.steps {
            let chosen = self.choose(&state, number, step);
            let choice = self.choices[chosen].clone();
            let seen = application.act(&choice).await?;
            let is_new = self.learn((&state, chosen), &seen);
            episode.new_states += u64::from(is_new);
            state.clone_from(&seen.signature);
            let has_ended = seen.has_no_state();
            episode.steps.push(EpisodeStep { choice, seen });
            if has_ended {
                break;
            }
        }
        Ok(episode)
    }

    /// The number of the next choice: with probability epsilon any, else one of the best.
    fn choose(&self, state: &str, episode: u64, step: u64) -> usize {
        let key = RuleKey::new(self.options.seed, "explore", "action");
        let mut dice = Dice::new(key, Fingerprint(episode), step);
        let best = self.best(state);
        let all = 0..self.choices.len();
        let candidates: Vec<_> =
            if f64::from(dice.trigger()) < self.options.epsilon * f64::from(MILLION) {
                all.collect()
            } else {
                all.filter(|choice| self.value(state, *choice) >= best)
                    .collect()
            };
        let drawn = dice.below(candidates.len() as u64);
        candidates[usize::try_from(drawn).unwrap_or_default()]
    }

    /// What was learned of a choice in a state. Untried ones are worth more than those that led to nothing new, most of
    /// all the ones that were tried least in other states.
    fn value(&self, state: &str, choice: usize) -> f64 {
        let value = self.values.get(&(state.to_owned(), choice));
        let untried = 1.0 + 1.0 / f64::from(1 + self.tries[choice]);
        value.copied().unwrap_or(untried)
    }

    fn best(&self, state: &str) -> f64 {
        let values = (0..self.choices.len()).map(|choice| self.value(state, choice));
        values.fold(f64::MIN, f64::max)
    }

    /// Learns from what an action led to. Returns whether the state is new. A state and an anomaly are rewarded once,
    /// so that known ones are not sought again.
    fn learn(&mut self, (state, choice): (&str, usize), seen: &Observation) -> bool {
        self.tries[choice] += 1;
        let is_new = self.states.insert(seen.signature.clone());
        let mut reward = f64::from(u8::from(is_new));
        for found in &seen.anomalies {
            let here = (found.anomaly.clone(), seen.signature.clone());
            reward += f64::from(u8::from(self.anomalies.insert(here)));
        }
        let next = if seen.has_no_state() {
            0.0
        } else {
            self.best(&seen.signature)
        };
        let learned = reward + DISCOUNT * next;
        self.values.insert((state.to_owned(), choice), learned);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explorer(seed: u64, epsilon: f64) -> Explorer {
        let choice = |number: u32| ActionChoice {
            action: format!("a{number}"),
            parameters: BTreeMap::new(),
        };
        let options = ExplorerOptions {
            suite: "s.yaml".into(),
            seed,
            epsilon,
            steps: 10,
        };
        Explorer::new(options, (0..5).map(choice).collect())
    }

    fn observation(signature: &str) -> Observation {
        Observation {
            signature: signature.to_owned(),
            ..Observation::default()
        }
    }

    #[test]
    fn a_seed_gives_one_sequence_and_another_gives_another() {
        let sequence = |seed| {
            let explorer = explorer(seed, 0.2);
            let steps = (0..20).map(|step| explorer.choose("s", 1, step));
            steps.collect::<Vec<_>>()
        };
        assert_eq!(sequence(42), sequence(42));
        assert_ne!(sequence(42), sequence(43));
    }

    #[test]
    fn what_was_not_tried_comes_before_what_led_to_nothing_new() {
        let mut explorer = explorer(1, 0.0);
        explorer.states.insert("s".into());
        let mut tried = BTreeSet::new();
        for step in 0..5 {
            let chosen = explorer.choose("s", 1, step);
            explorer.learn(("s", chosen), &observation("s"));
            tried.insert(chosen);
        }
        assert_eq!(tried.len(), 5);
    }

    #[test]
    fn a_way_to_new_states_is_preferred() {
        let mut explorer = explorer(1, 0.0);
        explorer.states.insert("s".into());
        for choice in 0..5 {
            let next = if choice == 3 { "new" } else { "s" };
            explorer.learn(("s", choice), &observation(next));
        }
        assert!((0..20).all(|step| explorer.choose("s", 1, step) == 3));
    }
}
