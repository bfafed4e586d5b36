//! `squall chaos`: golden prompts under chaos.

use squall_journal::run::RunKind;

use crate::args::Chaos;
use crate::failure::Failure;
use crate::judging::{self, Wish};

pub(super) async fn run(chaos: Chaos) -> Result<(), Failure> {
    let mut wish = Wish::of(RunKind::Chaos, &chaos.trial);
    wish.profile = chaos.profile.as_deref();
    Box::pin(judging::run(&wish)).await
}
