//! `redirect_loop`: a 302 to the request's own URL.

use http::StatusCode;

use crate::dice::Dice;
use crate::faults::mode::FaultMode;
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// It leads back to itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RedirectLoop;

impl FaultMode for RedirectLoop {
    const NAME: &'static str = "redirect_loop";

    fn read(_: &RawRule, _: &mut Reader) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::RedirectToSelf(StatusCode::FOUND))
    }
}
