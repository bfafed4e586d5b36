//! `redirect_loop`: a 302 to the request's own URL.

use http::StatusCode;

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// It leads back to itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RedirectLoop;

impl FaultMode for RedirectLoop {
    const NAME: &'static str = "redirect_loop";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::RedirectToSelf(StatusCode::FOUND))
    }
}
