//! The journal of this process's proxy, after a program has ended.

use std::time::{Duration, Instant};

use squall_journal::record::ExchangeRecord;
use squall_journal::ring::Filter;
use squall_proxy::chaos::DEFAULT_SCOPE;
use squall_proxy::metrics::Side;

use super::Daemon;
use crate::render::summary::RuleName;

/// How long the last exchanges may take after the program has ended.
const SETTLING: Duration = Duration::from_secs(1);

/// Interval between checks of open connections.
const LOOK: Duration = Duration::from_millis(5);

/// Exchanges read from the journal at a time.
const PAGE: usize = 500;

impl Daemon {
    /// Waits until the connections of ended programs are closed and their exchanges are recorded. The wait is
    /// bounded, because programs may leave others running.
    pub(crate) async fn settle(&self) {
        let began = Instant::now();
        while self.state.metrics.connections(Side::Agent).get() > 0 && began.elapsed() < SETTLING {
            tokio::time::sleep(LOOK).await;
        }
        self.state.recorder.flush();
    }

    /// Passes every exchange in the journal to `each`, newest first.
    pub(crate) fn exchanges(&self, mut each: impl FnMut(&ExchangeRecord)) {
        let filter = Filter::default();
        let mut after = None;
        loop {
            let page = self.state.recorder.exchanges(&filter, after, PAGE);
            page.items.iter().for_each(|note| each(&note.to_record()));
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }

    /// The profile in force for the default scope, for display.
    pub(crate) fn in_force(&self) -> String {
        let record = self.state.chaos.look(DEFAULT_SCOPE);
        match record.profile.as_str() {
            "none" => "no chaos".to_owned(),
            profile => format!("profile {profile}, seed {}", record.seed),
        }
    }

    /// The rules in force for the default scope.
    pub(crate) fn rules_in_force(&self) -> Vec<RuleName> {
        let rules = self.state.chaos.scope(None).activation().rules();
        let name = |rule: &std::sync::Arc<squall_profiles::rule::Rule>| RuleName {
            rule: rule.id.clone(),
            profile: rule.profile.clone(),
            mode: rule.mode().to_owned(),
        };
        rules.rules().iter().map(name).collect()
    }
}
