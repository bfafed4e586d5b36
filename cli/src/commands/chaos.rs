//! `squall chaos`: golden prompts under chaos.

use squall_journal::run::RunKind;

use crate::args::Chaos;
use crate::failure::Failure;
use crate::judging::{self, Wish};

pub(super) async fn run(chaos: Chaos) -> Result<(), Failure> {
    let wish = Wish {
        kind: RunKind::Chaos,
        profile: chaos.profile.as_deref(),
        trial: &chaos.trial,
    };
    judging::run(&wish).await
}
