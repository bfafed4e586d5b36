//! `squall schema`: JSON Schemas for editors and readers of reports.

use crate::args::SchemaKind;
use crate::failure::Failure;
use crate::render::output;

pub(super) fn run(of: SchemaKind) -> Result<(), Failure> {
    match of {
        SchemaKind::Config => output::json(&crate::config::schema()),
        SchemaKind::Suite => output::json(&squall_harness::suite::suite_schema()),
        SchemaKind::Replay => output::json(&squall_harness::suite::replay_schema()),
        SchemaKind::Report => output::json(&squall_harness::report::Report::schema()),
        SchemaKind::Profile => output::json(&squall_profiles::schema::profile_schema()),
    }
}
