//! `squall ci`: everything a suite configures.

use squall_journal::run::RunKind;

use crate::args::Ci;
use crate::failure::Failure;
use crate::judging::{self, Wish};

pub(super) async fn run(ci: Ci) -> Result<(), Failure> {
    let mut wish = Wish::of(RunKind::Ci, &ci.trial);
    wish.profile = ci.profile.as_deref();
    Box::pin(judging::run(&wish)).await
}
