//! The metrics of chaos in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use prometheus::IntGaugeVec;

use super::Families;
use crate::lock::lock;

/// The chaos of one scope.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveChaos<'a> {
    /// The scope.
    pub(crate) scope: &'a str,
    /// Its profile.
    pub(crate) profile: &'a str,
    /// When it began, in seconds since the epoch.
    pub(crate) started: i64,
    /// When its time to live ends.
    pub(crate) expires: Option<i64>,
}

/// The metrics of chaos in force, by profile.
#[derive(Debug)]
pub(super) struct ActiveMetrics {
    active: IntGaugeVec,
    started: IntGaugeVec,
    expires: IntGaugeVec,
    /// Labels of profiles that were ever in force.
    known: Mutex<BTreeSet<String>>,
}

impl ActiveMetrics {
    pub(super) fn new(families: &Families<'_>) -> Self {
        let gauges = |name, help| families.gauges(name, help, "profile");
        Self {
            active: gauges("squall_chaos_active", "Activations in force, by profile"),
            started: gauges(
                "squall_chaos_started_timestamp_seconds",
                "When the oldest activation in force began, by profile",
            ),
            expires: gauges(
                "squall_chaos_expires_timestamp_seconds",
                "When the last activation in force ends by itself, by profile; absent if one does not",
            ),
            known: Mutex::default(),
        }
    }

    /// Sets the activations in force, by label. Labels that are no longer in force stay at zero, without times.
    pub(super) fn set(&self, mut own: BTreeMap<&str, Vec<ActiveChaos<'_>>>) {
        let mut known = lock(&self.known);
        known.extend(own.keys().map(|label| (*label).to_owned()));
        for label in &*known {
            let own = own.remove(&**label).unwrap_or_default();
            let count = i64::try_from(own.len()).unwrap_or(i64::MAX);
            self.active.with_label_values(&[label]).set(count);
            let expires: Option<Vec<_>> = own.iter().map(|chaos| chaos.expires).collect();
            for (gauge, time) in [
                (&self.started, own.iter().map(|chaos| chaos.started).min()),
                (&self.expires, expires.into_iter().flatten().max()),
            ] {
                if let Some(time) = time {
                    gauge.with_label_values(&[label]).set(time);
                } else {
                    // It fails if there is no such series.
                    let _ = gauge.remove_label_values(&[label]);
                }
            }
        }
    }
}
