//! `squall ci`: everything a suite configures.

use squall_journal::run::RunKind;

use crate::args::Ci;
use crate::failure::Failure;
use crate::judging::{self, Wish};

pub(super) async fn run(ci: Ci) -> Result<(), Failure> {
    let wish = Wish::of(RunKind::Ci, &ci.trial);
    Box::pin(judging::run(&wish)).await
}
