//! `schema_drift`: changes one field of a JSON response.

use serde_json::json;
use squall_documents::Fields;

use crate::changes::{DriftKind, ResultChange, SchemaDrift, Tools};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::plan::Edit;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "What happens to the field; default `rename`.";
    let kind = fields.word("drift", about, "drift", DriftKind::NAMES);
    // YAML parses the word `null` as no value.
    let null = fields.is_null("drift").then_some(DriftKind::Null);
    let field = fields.text("field", "The field; default: any, by the draw.");
    let field = field.map(|field| field.value);
    let kind = kind.or(null).unwrap_or(DriftKind::Rename);
    let mut parameters = json!({ "drift": kind.as_str() });
    if let Some(field) = &field {
        parameters["field"] = json!(field);
    }
    let is_drawn = field.is_none();
    let drift = move |dice: &mut Dice| SchemaDrift {
        kind,
        field: field.clone(),
        choice: dice.next_choice(),
    };
    let again = drift.clone();
    Fault::new(parameters, move |plan, by, _, dice| {
        plan.edit(by, Edit::Drift(drift(dice)));
        Ok(())
    })
    .in_results(move |_, _, dice| ResultChange::Drift(again(dice)))
    .drawing(is_drawn)
}
