//! `squall mutate`: golden prompts and requests are changed, and the agent's answers judged.

use serde_json::Map;
use squall_harness::count::count;
use squall_harness::mutations::corpus;
use squall_harness::run::RunKind;

use crate::args::MutateArgs;
use crate::failure::Failure;
use crate::render::output;
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
        Some(file) => {
            let (text, left_out) = corpus(run);
            if left_out > 0 {
                let left_out = count(left_out as u64, "mutant");
                output::report_findings(&[], &[format!(
                    "{left_out} with changed requests or texts over 64 KiB are not in the file; the same seed writes them again"
                )]);
            }
            output_file::write(file, text)
        }
        None => Ok(()),
    })
    .await
}
