//! `bandwidth`: bytes pass slowly.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::fault::Throttle;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Plan, VerdictIndex};
use crate::profile::amounts::count;

/// At this rate, that way.
#[derive(Debug, Clone, PartialEq)]
pub struct Bandwidth(Throttle, Direction);

/// Which way bytes pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Direction {
    /// To the agent. The default.
    #[default]
    Down,
    /// To the upstream.
    Up,
    /// Both ways, each with a rate of its own.
    Both,
}

const DIRECTIONS: &[(&str, Direction)] = &[
    ("down", Direction::Down),
    ("up", Direction::Up),
    ("both", Direction::Both),
];

impl FaultMode for Bandwidth {
    const NAME: &'static str = "bandwidth";
    const NEEDS: &'static [&'static str] = &["rate_kbps"];

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "Kilobits per second, 1000 bits each.";
        let rate = count(fields, "rate_kbps", about, 1);
        let about = "To the agent (default), to the upstream, or both.";
        let direction = fields.word("direction", about, "direction", DIRECTIONS);
        let bytes_per_second = rate.unwrap_or(1).saturating_mul(125);
        let throttle = Throttle { bytes_per_second };
        Some(Self(throttle, direction.unwrap_or_default()))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let down = matches!(self.1, Direction::Down | Direction::Both);
        let up = matches!(self.1, Direction::Up | Direction::Both);
        plan.throttle(verdict, self.0, down, up)
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        let name = DIRECTIONS.iter().find(|(_, value)| *value == self.1);
        into.insert("rate_kbps".into(), json!(self.0.bytes_per_second / 125));
        into.insert("direction".into(), json!(name.map(|(name, _)| name)));
    }
}
