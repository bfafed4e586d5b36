//! The earlier run that a run is compared with: one of the store, or one that was kept as a report.

use std::path::Path;

use serde_json::Value;
use squall_harness::report::Report;

use crate::failure::Failure;
use crate::text;

/// What the daemon is told of `--baseline`: an id as it is; of a report in JSON its run. What is not
/// compared stays here: evidence would make a request too large to be taken.
pub(crate) fn option(given: &str) -> Result<Value, Failure> {
    let file = Path::new(given);
    if !is_file(file) {
        return Ok(given.into());
    }
    let text = text::read(file).map_err(|error| Failure::Usage(error.in_file(file)))?;
    let report = Report::read(&text)
        .map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    let mut run = report.run;
    for cell in &mut run.cells {
        cell.evidence.clear();
        cell.reason = None;
    }
    run.warnings.clear();
    serde_json::to_value(run).map_err(|error| Failure::could_not(file.display(), error))
}

/// Ids have neither folders nor endings, so what has them names a file, also one that is missing.
fn is_file(given: &Path) -> bool {
    given.is_file() || given.extension().is_some() || given.components().count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_told_from_a_file_that_is_missing() {
        let id = "0193a1b2c3d4000000010042";
        assert_eq!(option(id).expect("an id"), id);
        for missing in ["nowhere.json", "reports/nowhere"] {
            let Err(Failure::Usage(told)) = option(missing) else {
                panic!("{missing}");
            };
            assert!(told.starts_with(missing), "{told}");
        }
    }
}
