//! Faults of a common form.

use std::sync::Arc;

use serde_json::Value;
use squall_dialects::model::ModelError;

use crate::changes::StreamFault;
use crate::fault::Fault;
use crate::plan::{Bypass, Plan, PlannedAnswer, VerdictIndex};

/// Writes the same into every plan.
pub(super) fn fixed(
    parameters: Value,
    write: impl Fn(&mut Plan, VerdictIndex) -> Result<(), Bypass> + Send + Sync + 'static,
) -> Fault {
    Fault::new(parameters, move |plan, by, _, _| write(plan, by))
}

/// Sends this response instead of forwarding the request.
pub(super) fn answer(parameters: Value, answer: PlannedAnswer) -> Fault {
    fixed(parameters, move |plan, by| plan.answer(by, answer.clone()))
}

/// This error, in the provider's format. The error for an overlong request contains its length.
pub(super) fn provider_error(parameters: Value, error: ModelError) -> Fault {
    let counts = error == ModelError::ContextLength;
    answer(parameters, PlannedAnswer::ModelError(error)).counting_tokens(counts)
}

/// A change to a model's answer.
pub(super) fn change_of_answer(parameters: Value, change: StreamFault) -> Fault {
    let (needs_a_stream, counts) = (change.needs_a_stream(), change.counts_tokens());
    let fault = fixed(parameters, move |plan, by| {
        plan.edit_answer(by, change.clone())
    });
    Fault {
        needs_a_stream,
        ..fault.counting_tokens(counts)
    }
}

/// A change to a model's answer that depends on a draw.
pub(super) fn drawn_change(
    parameters: Value,
    change: impl Fn(u64) -> StreamFault + Send + Sync + 'static,
) -> Fault {
    let example = change_of_answer(parameters, change(0));
    Fault {
        apply: Arc::new(move |plan, by, _, dice| plan.edit_answer(by, change(dice.next_choice()))),
        ..example.drawing(true)
    }
}
