//! `squall load`: golden prompts under rising concurrency.

use serde_json::Map;
use squall_harness::run::RunKind;

use crate::args::LoadArgs;
use crate::failure::Failure;
use crate::judging;
use crate::suite::LocalSuite;

pub(super) async fn run(args: LoadArgs) -> Result<(), Failure> {
    let trial = args.trial();
    let suite = LocalSuite::read(&trial.suite.file)?;
    let mut options = Map::new();
    options.insert("concurrency".to_owned(), args.concurrency.into());
    if let Some(invocations) = args.per_level {
        options.insert("per_level".to_owned(), invocations.into());
    }
    let (kind, profile) = (RunKind::Load, args.profile.as_deref());
    judging::run_suite(kind, &trial, profile, suite, options, |_| Ok(())).await
}
