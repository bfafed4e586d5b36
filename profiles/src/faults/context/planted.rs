//! Attacks that add a payload to a model's input.

use serde_json::{Map, Value};

use super::plant;
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::payloads::Payloads;
use crate::plan::{Bypass, Plan, RequestEdit, VerdictIndex};

/// Draws a payload, and writes the edit that adds it.
struct PayloadAttack<W> {
    payloads: Payloads,
    parameters: Map<String, Value>,
    write: W,
}

/// An attack with these parameters beside its payloads.
pub(super) fn planted(
    payloads: Payloads,
    more: Map<String, Value>,
    write: impl Fn(String) -> RequestEdit + Send + Sync + 'static,
) -> Box<dyn Fault> {
    let mut parameters = payloads.parameters();
    parameters.extend(more);
    Box::new(PayloadAttack {
        payloads,
        parameters,
        write,
    })
}

impl<W> Fault for PayloadAttack<W>
where
    W: Fn(String) -> RequestEdit + Send + Sync,
{
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        let text = plant(&self.payloads, plan, verdict, dice);
        plan.edit_request(verdict, (self.write)(text));
        Ok(())
    }

    fn parameters(&self) -> Map<String, Value> {
        self.parameters.clone()
    }

    fn is_random(&self) -> bool {
        true
    }
}
