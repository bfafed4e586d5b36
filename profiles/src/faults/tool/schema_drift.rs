//! `schema_drift`: one field of the JSON answer changes.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::fault::{self, DriftKind, ResultChange};
use crate::faults::mode::{FaultMode, Told};
use crate::plan::{Edit, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

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
    const PARAMETERS: &'static [&'static str] = &["drift", "field"];
    const TOLD: Option<Told<Self>> =
        Some(|drift, _, _, dice| ResultChange::Drift(drift.drawn(dice)));

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let kind = reader.word("drift", raw.drift.as_ref(), DRIFTS);
        Some(Self {
            kind: kind.unwrap_or(DriftKind::Rename),
            field: raw.field.as_ref().map(|field| field.value.clone()),
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
