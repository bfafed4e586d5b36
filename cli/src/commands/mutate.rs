//! `squall mutate`: golden prompts and requests are changed, and the agent's answers judged.

use serde_json::Map;
use squall_harness::mutations::corpus;
use squall_harness::run::RunKind;

use crate::args::MutateArgs;
use crate::failure::Failure;
use crate::suite::LocalSuite;
use crate::{judging, output_file};

pub(super) async fn run(mutate: MutateArgs) -> Result<(), Failure> {
    let MutateArgs {
        chaos,
        export,
        trial,
    } = mutate;
    if let Some(file) = &export {
        output_file::check(file)?;
    }
    let suite = LocalSuite::read(&trial.suite.file)?;
    let mut options = Map::new();
    if chaos {
        options.insert("chaos".to_owned(), true.into());
    }
    let kind = RunKind::Mutation;
    judging::run_suite(kind, &trial, None, suite, options, |run| match &export {
        Some(file) => output_file::write(file, corpus(run)),
        None => Ok(()),
    })
    .await
}
