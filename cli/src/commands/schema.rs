//! `squall schema`: JSON Schemas for editors, and for who reads reports.

use crate::args::SchemaOf;
use crate::failure::Failure;
use crate::render::output;

pub(super) fn run(of: SchemaOf) -> Result<(), Failure> {
    match of {
        SchemaOf::Config => output::json(&crate::config::schema()),
        SchemaOf::Suite => output::json(&squall_harness::suite::suite_schema()),
        SchemaOf::Replay => output::json(&squall_harness::suite::replay_schema()),
        SchemaOf::Report => output::json(&squall_harness::report::Report::schema()),
        SchemaOf::Profile => output::json(&squall_profiles::schema::profile_schema()),
    }
}
