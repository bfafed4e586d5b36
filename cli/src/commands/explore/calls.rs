//! Exploration over calls: a run of kind `explore`, whose failures are written as replay sessions.

use serde_json::Map;
use squall_harness::run::RunKind;

use crate::args::ExploreArgs;
use crate::failure::Failure;
use crate::judging;
use crate::suite::LocalSuite;

pub(super) async fn run(args: &ExploreArgs, suite: LocalSuite) -> Result<(), Failure> {
    let mut options = Map::new();
    if let Some(budget) = args.budget {
        options.insert("budget".to_owned(), budget.into());
    }
    if args.resume {
        options.insert("resume".to_owned(), true.into());
    }
    judging::run_suite(RunKind::Explore, &args.trial, None, suite, options, |_| {
        Ok(())
    })
    .await
}
