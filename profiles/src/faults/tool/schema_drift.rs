//! `schema_drift`: one field of the JSON answer changes.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::fault::{self, DriftKind, ResultChange};
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Edit, Plan, VerdictIndex};

/// This one, in this way.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaDrift {
    /// What happens to it; default `rename`.
    kind: DriftKind,
    /// Which field; `None`: any, by the draw.
    field: Option<String>,
}

const DRIFTS: &[(&str, DriftKind)] = &[
    ("rename", DriftKind::Rename),
    ("drop", DriftKind::Drop),
    ("null", DriftKind::Null),
    ("retype", DriftKind::Retype),
];

impl SchemaDrift {
    fn drawn(&self, dice: &mut Dice) -> fault::SchemaDrift {
        fault::SchemaDrift {
            kind: self.kind,
            field: self.field.clone(),
            choice: dice.next_choice(),
        }
    }
}

impl FaultMode for SchemaDrift {
    const NAME: &'static str = "schema_drift";
    const TOLD: Option<Told<Self>> =
        Some(|drift, _, _, dice| ResultChange::Drift(drift.drawn(dice)));

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "What happens to the field; default `rename`.";
        let kind = fields.word("drift", about, "drift", DRIFTS);
        // YAML takes the word for nothing at all.
        let null = fields.is_null("drift").then_some(DriftKind::Null);
        let field = fields.text("field", "The field; default: any, by the draw.");
        Some(Self {
            kind: kind.or(null).unwrap_or(DriftKind::Rename),
            field: field.map(|field| field.value),
        })
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        plan.edit(verdict, Edit::Drift(self.drawn(dice)));
        Ok(())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        let name = DRIFTS.iter().find(|(_, value)| *value == self.kind);
        into.insert("drift".into(), json!(name.map(|(name, _)| name)));
        if let Some(field) = &self.field {
            into.insert("field".into(), json!(field));
        }
    }

    fn is_random(&self) -> bool {
        self.field.is_none()
    }
}
