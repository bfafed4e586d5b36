//! `schema_drift`: changes one field of a JSON response.

use serde_json::{Map, Value, json};
use squall_documents::Fields;

use crate::changes::{DriftKind, ResultChange, SchemaDrift, Tools};
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::faults::fixed::{map, word};
use crate::plan::{Bypass, Edit, Plan, VerdictIndex};

const DRIFTS: [(&str, DriftKind); 4] = [
    ("rename", DriftKind::Rename),
    ("drop", DriftKind::Drop),
    ("null", DriftKind::Null),
    ("retype", DriftKind::Retype),
];

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Box<dyn Fault> {
    let about = "What happens to the field; default `rename`.";
    let kind = fields.word("drift", about, "drift", &DRIFTS);
    // YAML parses the word `null` as no value.
    let null = fields.is_null("drift").then_some(DriftKind::Null);
    let field = fields.text("field", "The field; default: any, by the draw.");
    Box::new(DriftingField(SchemaDrift {
        kind: kind.or(null).unwrap_or(DriftKind::Rename),
        field: field.map(|field| field.value),
        choice: 0,
    }))
}

struct DriftingField(SchemaDrift);

impl DriftingField {
    fn drawn(&self, dice: &mut Dice) -> SchemaDrift {
        SchemaDrift {
            choice: dice.next_choice(),
            ..self.0.clone()
        }
    }
}

impl Fault for DriftingField {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        plan.edit(verdict, Edit::Drift(self.drawn(dice)));
        Ok(())
    }

    fn result_change(
        &self,
        _: &mut Plan,
        _: VerdictIndex,
        dice: &mut Dice,
    ) -> Option<ResultChange> {
        Some(ResultChange::Drift(self.drawn(dice)))
    }

    fn parameters(&self) -> Map<String, Value> {
        let mut parameters = map(json!({ "drift": word(&DRIFTS, &self.0.kind) }));
        if let Some(field) = &self.0.field {
            parameters.insert("field".into(), json!(field));
        }
        parameters
    }

    fn is_random(&self) -> bool {
        self.0.field.is_none()
    }
}
