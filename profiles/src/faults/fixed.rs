//! Faults with the same effect on every exchange.

use serde_json::{Map, Value};
use squall_dialects::model::ModelError;

use crate::changes::{ResultChange, StreamFault};
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::plan::{Bypass, Plan, PlannedAnswer, VerdictIndex};

/// Names and values of parameters.
pub(super) fn map(parameters: Value) -> Map<String, Value> {
    match parameters {
        Value::Object(parameters) => parameters,
        _ => Map::new(),
    }
}

/// The name of a value.
pub(super) fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Option<&'static str> {
    let named = words.iter().find(|(_, known)| known == value);
    named.map(|(word, _)| *word)
}

/// Writes the same into every plan.
pub(super) struct Fixed<W> {
    write: W,
    parameters: Map<String, Value>,
    result: Option<ResultChange>,
    needs_fingerprint: bool,
}

impl<W> Fixed<W>
where
    W: Fn(&mut Plan, VerdictIndex) -> Result<(), Bypass> + Send + Sync + 'static,
{
    pub(super) fn new(parameters: Value, write: W) -> Self {
        Self {
            write,
            parameters: map(parameters),
            result: None,
            needs_fingerprint: false,
        }
    }

    /// With `at: model_input`, it makes this change to results.
    pub(super) fn in_results(self, change: ResultChange) -> Self {
        Self {
            result: Some(change),
            ..self
        }
    }

    /// It distinguishes calls on the wire by their fingerprints.
    pub(super) fn by_fingerprint(self) -> Self {
        Self {
            needs_fingerprint: true,
            ..self
        }
    }

    pub(super) fn boxed(self) -> Box<dyn Fault> {
        Box::new(self)
    }
}

impl<W> Fault for Fixed<W>
where
    W: Fn(&mut Plan, VerdictIndex) -> Result<(), Bypass> + Send + Sync,
{
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        _: &mut Dice,
    ) -> Result<(), Bypass> {
        (self.write)(plan, verdict)
    }

    fn result_change(&self, _: &mut Plan, _: VerdictIndex, _: &mut Dice) -> Option<ResultChange> {
        self.result.clone()
    }

    fn parameters(&self) -> Map<String, Value> {
        self.parameters.clone()
    }

    fn needs_fingerprint(&self) -> bool {
        self.needs_fingerprint
    }
}

/// Writes the same into every plan.
pub(super) fn fixed(
    parameters: Value,
    write: impl Fn(&mut Plan, VerdictIndex) -> Result<(), Bypass> + Send + Sync + 'static,
) -> Box<dyn Fault> {
    Fixed::new(parameters, write).boxed()
}

/// Sends this response instead of forwarding the request.
pub(super) fn answer(parameters: Value, answer: PlannedAnswer) -> Box<dyn Fault> {
    fixed(parameters, move |plan, verdict| {
        plan.answer(verdict, answer.clone())
    })
}

/// A provider's error.
struct ProviderError {
    error: ModelError,
    parameters: Map<String, Value>,
}

impl Fault for ProviderError {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        _: &mut Dice,
    ) -> Result<(), Bypass> {
        plan.answer(verdict, PlannedAnswer::ModelError(self.error.clone()))
    }

    fn parameters(&self) -> Map<String, Value> {
        self.parameters.clone()
    }

    /// The error for an overlong request contains its length.
    fn counts_tokens(&self) -> bool {
        matches!(self.error, ModelError::ContextLength)
    }
}

/// This error, in the provider's format.
pub(super) fn provider_error(parameters: Value, error: ModelError) -> Box<dyn Fault> {
    Box::new(ProviderError {
        error,
        parameters: map(parameters),
    })
}

/// A change to a model's answer.
struct AnswerChange {
    change: StreamFault,
    parameters: Map<String, Value>,
    /// Why it has no effect, if so.
    idle: Option<&'static str>,
}

impl Fault for AnswerChange {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        if let Some(why) = self.idle {
            return Err(why.into());
        }
        let mut change = self.change.clone();
        if let Some(choice) = change.choice_mut() {
            *choice = dice.next_choice();
        }
        plan.edit_answer(verdict, change)
    }

    fn parameters(&self) -> Map<String, Value> {
        self.parameters.clone()
    }

    fn is_random(&self) -> bool {
        self.change.clone().choice_mut().is_some()
    }

    fn counts_tokens(&self) -> bool {
        self.change.counts_tokens()
    }

    fn decides_the_answer(&self) -> bool {
        self.change.decides_the_answer()
    }
}

/// A change to a model's response. `idle`: why it has no effect.
pub(super) fn change_of_answer(
    parameters: Value,
    change: StreamFault,
    idle: Option<&'static str>,
) -> Box<dyn Fault> {
    Box::new(AnswerChange {
        change,
        parameters: map(parameters),
        idle,
    })
}
