//! The Prometheus metrics, documented in `docs/metrics.md`.
//!
//! Handles used per exchange are resolved once. No label takes a free-form value; labels with
//! user-defined names are capped (`Capped`).

mod active;
mod capped;
mod runs;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, core::Collector,
};
use squall_dialects::endpoint_names;
use squall_journal::record::Outcome;
use squall_journal::scopes::Workspaces;
use squall_profiles::facts::Kind;
use squall_profiles::rule::Rule;

pub(crate) use self::active::ActiveChaos;
use self::active::ActiveMetrics;
use self::capped::Capped;
pub use self::runs::RunMetrics;
use crate::upstream::REASONS;

/// Every kind, in the order of its variants.
const KINDS: [Kind; 5] = Kind::ALL;

/// The dialect of exchanges without one.
const NO_DIALECT: &str = "none";

/// Most values of a label with user-defined names; further ones are `other`.
const VALUES: usize = 100;

/// Counters that are kept outside of this module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// Leaf certificates minted so far.
    pub(crate) leaves_minted: u64,
    /// Connections to upstreams that are open.
    pub(crate) upstream_connections: u64,
}

/// Returns those counters at each scrape.
struct FigureSource(Box<dyn Fn() -> Figures + Send + Sync>);

impl std::fmt::Debug for FigureSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FigureSource")
    }
}

/// All metrics.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    exchanges: IntCounterVec,
    durations: [Histogram; KINDS.len()],
    overhead: Histogram,
    injected_delay: Histogram,
    faults: IntCounterVec,
    not_drawn: IntCounter,
    bypassed: IntCounter,
    upstream_errors: IntCounterVec,
    connections: [IntGauge; 2],
    leaves: IntCounter,
    source: OnceLock<FigureSource>,
    tokens: IntCounterVec,
    dropped: [IntCounter; 4],
    stored: IntCounter,
    sampled_out: IntCounter,
    active: ActiveMetrics,
    runs: RunMetrics,
    workspaces: Workspaces,
    profiles: Capped,
    models: Capped,
}

/// The two sides of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Connections that agents opened.
    Agent,
    /// Connections to upstreams, pooled ones included.
    Upstream,
}

/// Places where events can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    /// The queue from the data plane to the journal was full.
    Journal,
    /// An event stream resumed after events that were already dropped.
    Events,
    /// More canaries were planted in a scope than it remembers.
    Canaries,
    /// The queue from the journal to the store was full, or the store rejected a write.
    Store,
}

/// Seconds: an exchange takes between a millisecond and ten minutes.
const DURATIONS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    300.0, 600.0,
];
/// Seconds: normally, Squall's own share is microseconds.
const OVERHEADS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.05,
    0.1, 1.0,
];
/// Seconds: users configure delays.
const DELAYS: &[f64] = &[
    0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0,
];

impl Metrics {
    /// All metrics at zero; `version` is the daemon's.
    pub fn new(version: &str) -> Self {
        let registry = Registry::new();
        let families = Families {
            registry: &registry,
        };
        let durations = families.histograms(
            "squall_exchange_duration_seconds",
            "From a request's head to the end of its answer",
            "kind",
            DURATIONS,
        );
        let upstream_errors = families.counters(
            "squall_upstream_errors_total",
            "Upstreams that failed by themselves",
            &["reason"],
        );
        // As in `exchanges`.
        for reason in REASONS {
            upstream_errors.with_label_values(&[reason]);
        }
        let skipped = families.counters(
            "squall_rules_skipped_total",
            "Eligible rules that were not applied: their trigger did not fire, or they could not be",
            &["reason"],
        );
        let connections = families.gauges(
            "squall_open_connections",
            "TCP connections open now",
            "side",
        );
        let dropped = families.counters(
            "squall_events_dropped_total",
            "Events that a full buffer lost",
            &["sink"],
        );
        families
            .gauges(
                "squall_build_info",
                "Always 1; the version is the label",
                "version",
            )
            .with_label_values(&[version])
            .set(1);
        Self {
            exchanges: families.exchanges(),
            durations: KINDS.map(|kind| durations.with_label_values(&[kind.as_str()])),
            overhead: families.histogram(
                "squall_overhead_seconds",
                "Time Squall itself added to an exchange, injected delay excluded",
                OVERHEADS,
            ),
            injected_delay: families.histogram(
                "squall_injected_delay_seconds",
                "Time that faults held exchanges back",
                DELAYS,
            ),
            faults: families.counters(
                "squall_faults_injected_total",
                "Faults applied, counted when they are applied",
                &["profile", "family", "mode"],
            ),
            not_drawn: skipped.with_label_values(&["not_drawn"]),
            bypassed: skipped.with_label_values(&["bypassed"]),
            upstream_errors,
            connections: ["agent", "upstream"].map(|side| connections.with_label_values(&[side])),
            leaves: families.counter(
                "squall_leaf_certificates_minted_total",
                "Certificates made for intercepted hosts",
            ),
            source: OnceLock::new(),
            tokens: families.counters(
                "squall_llm_tokens_total",
                "Tokens of model calls, as providers count them, or Squall where they do not",
                &["dialect", "model", "direction"],
            ),
            dropped: ["journal", "events", "canaries", "store"]
                .map(|sink| dropped.with_label_values(&[sink])),
            stored: families.counter(
                "squall_exchanges_stored_total",
                "Exchanges that were written to the store",
            ),
            sampled_out: families.counter(
                "squall_exchanges_sampled_out_total",
                "Exchanges without a fault that were more than the store is to keep a second",
            ),
            active: ActiveMetrics::new(&families),
            runs: RunMetrics::new(&families),
            workspaces: Workspaces::default(),
            profiles: Capped::new(VALUES),
            models: Capped::new(VALUES),
            registry,
        }
    }

    /// The workspaces whose profile names must not appear in metrics.
    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// The label for a scope's profile.
    fn profile<'a>(&self, scope: &str, profile: &'a str) -> &'a str {
        if self.workspaces.hold(scope) {
            "other"
        } else {
            self.profiles.name(profile)
        }
    }

    /// Counts an applied rule in a scope.
    pub(crate) fn fault_applied(&self, rule: &Rule, scope: &str) {
        self.faults_of(rule, scope).inc();
    }

    /// Counts zero faults of rules that are activated in a scope.
    pub(crate) fn faults_possible(&self, rules: &[Arc<Rule>], scope: &str) {
        for rule in rules {
            self.faults_of(rule, scope);
        }
    }

    fn faults_of(&self, rule: &Rule, scope: &str) -> IntCounter {
        let profile = self.profile(scope, &rule.profile);
        self.faults
            .with_label_values(&[profile, rule.family().as_str(), rule.mode()])
    }

    /// Observes a delay injected by a fault.
    pub(crate) fn delayed(&self, by: Duration) {
        self.injected_delay.observe(by.as_secs_f64());
    }

    /// Counts an upstream failure that no fault caused; `reason` is one of [`REASONS`].
    pub fn upstream_error(&self, reason: &'static str) {
        self.upstream_errors.with_label_values(&[reason]).inc();
    }

    /// The gauge of open connections.
    pub fn connections(&self, side: Side) -> &IntGauge {
        &self.connections[side as usize]
    }

    /// Counts lost events.
    pub fn dropped(&self, sink: Sink, events: u64) {
        self.dropped[sink as usize].inc_by(events);
    }

    /// Counts exchanges written to the store.
    pub fn stored(&self, exchanges: u64) {
        self.stored.inc_by(exchanges);
    }

    /// Counts an exchange that sampling left out of the store.
    pub fn sampled_out(&self) {
        self.sampled_out.inc();
    }

    /// Sets the activations in force.
    pub(crate) fn chaos_active<'a>(&self, own: impl IntoIterator<Item = ActiveChaos<'a>>) {
        let mut by_label: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for chaos in own {
            let label = self.profile(chaos.scope, chaos.profile);
            by_label.entry(label).or_default().push(chaos);
        }
        self.active.set(by_label);
    }

    /// The metrics of runs.
    pub fn runs(&self) -> &RunMetrics {
        &self.runs
    }

    /// The counter of exchanges with these labels, for callers that keep it.
    pub fn exchanges(&self, kind: Kind, dialect: Option<&str>, outcome: Outcome) -> IntCounter {
        let dialect = dialect.unwrap_or(NO_DIALECT);
        self.exchanges
            .with_label_values(&[kind.as_str(), dialect, outcome.as_str()])
    }

    /// Observes the duration of an exchange, and Squall's `overhead` in it.
    pub fn took(&self, kind: Kind, duration: Duration, overhead: Duration) {
        self.durations[kind as usize].observe(duration.as_secs_f64());
        self.overhead.observe(overhead.as_secs_f64());
    }

    /// Counts eligible rules that were not applied to an exchange.
    pub fn skipped(&self, not_drawn: u64, bypassed: u64) {
        self.not_drawn.inc_by(not_drawn);
        self.bypassed.inc_by(bypassed);
    }

    /// Counts the tokens of a model call.
    pub(crate) fn tokens(&self, dialect: &str, model: &str, direction: &str, tokens: u64) {
        let model = self.models.name(model);
        self.tokens
            .with_label_values(&[dialect, model, direction])
            .inc_by(tokens);
    }

    /// Sets the source of counters kept elsewhere, which is called at each scrape.
    pub(crate) fn ask(&self, source: impl Fn() -> Figures + Send + Sync + 'static) {
        // Only the first data plane feeds a registry; the counters of others are not exported.
        let _ = self.source.set(FigureSource(Box::new(source)));
    }

    /// The numbers of exchanges that have ended, and of applied faults.
    pub fn traffic(&self) -> (f64, f64) {
        let total = |counters: &IntCounterVec| {
            let families = counters.collect();
            let series = families.iter().flat_map(|family| family.get_metric());
            series.map(|one| one.get_counter().get_value()).sum()
        };
        (total(&self.exchanges), total(&self.faults))
    }

    /// All metrics in Prometheus' text format 0.0.4.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        if let Some(FigureSource(source)) = self.source.get() {
            let figures = source();
            let minted = figures.leaves_minted;
            self.leaves.inc_by(minted.saturating_sub(self.leaves.get()));
            let open = i64::try_from(figures.upstream_connections).unwrap_or(i64::MAX);
            self.connections(Side::Upstream).set(open);
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// Creates and registers metric families. Names, labels and buckets are constants, so the first
/// test that creates a [`Metrics`] validates them.
struct Families<'a> {
    registry: &'a Registry,
}

impl Families<'_> {
    fn register<C: Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let family = made.expect("names, labels and buckets are valid constants");
        self.registry
            .register(Box::new(family.clone()))
            .expect("every name is used once");
        family
    }

    /// Every series at zero: rates and alerts need one before its first increment.
    fn exchanges(&self) -> IntCounterVec {
        let exchanges = self.counters(
            "squall_exchanges_total",
            "Exchanges that have ended",
            &["kind", "dialect", "outcome"],
        );
        for kind in KINDS {
            let dialects = match kind {
                Kind::Llm => endpoint_names(),
                Kind::Tool | Kind::Mcp | Kind::Agent | Kind::Other => vec![NO_DIALECT],
            };
            for dialect in dialects {
                for outcome in Outcome::ALL.into_iter().filter(|one| *one != Outcome::Open) {
                    exchanges.with_label_values(&[kind.as_str(), dialect, outcome.as_str()]);
                }
            }
        }
        exchanges
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauges(&self, name: &str, help: &str, label: &str) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, help), &[label]))
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.register(Histogram::with_opts(options))
    }

    fn histograms(&self, name: &str, help: &str, label: &str, buckets: &[f64]) -> HistogramVec {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.register(HistogramVec::new(options, &[label]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_there_before_anything_happens() {
        let metrics = Metrics::new("1.2.3");
        let text = metrics.render().expect("renders");
        // Families with user-defined labels appear with their first value.
        for line in [
            "squall_exchanges_total{dialect=\"none\",kind=\"other\",outcome=\"client_rejected_ca\"} 0",
            "squall_exchanges_total{dialect=\"gemini\",kind=\"llm\",outcome=\"upstream_error\"} 0",
            "squall_exchange_duration_seconds_count{kind=\"llm\"} 0",
            "squall_overhead_seconds_count 0",
            "squall_injected_delay_seconds_count 0",
            "squall_rules_skipped_total{reason=\"bypassed\"} 0",
            "squall_rules_skipped_total{reason=\"not_drawn\"} 0",
            "squall_upstream_errors_total{reason=\"connect_timeout\"} 0",
            "squall_open_connections{side=\"agent\"} 0",
            "squall_open_connections{side=\"upstream\"} 0",
            "squall_leaf_certificates_minted_total 0",
            "squall_events_dropped_total{sink=\"canaries\"} 0",
            "squall_events_dropped_total{sink=\"events\"} 0",
            "squall_events_dropped_total{sink=\"journal\"} 0",
            "squall_events_dropped_total{sink=\"store\"} 0",
            "squall_exchanges_stored_total 0",
            "squall_exchanges_sampled_out_total 0",
            "squall_build_info{version=\"1.2.3\"} 1",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "{line} is missing in\n{text}"
            );
        }
    }

    #[test]
    fn the_hundred_and_first_model_is_other() {
        let metrics = Metrics::new("0");
        for model in 0..150 {
            metrics.tokens("openai-chat", &format!("m{model}"), "output", 1);
        }
        metrics.tokens("openai-chat", "m0", "output", 1);
        let text = metrics.render().expect("renders");
        let line = |model: &str, n: u64| {
            let labels = format!("dialect=\"openai-chat\",direction=\"output\",model=\"{model}\"");
            format!("squall_llm_tokens_total{{{labels}}} {n}")
        };
        for line in [line("m0", 2), line("m99", 1), line("other", 50)] {
            assert!(text.lines().any(|l| l == line), "{line} is missing");
        }
        assert_eq!(text.matches("squall_llm_tokens_total{").count(), 101);
    }

    #[test]
    fn a_profile_of_a_workspace_has_no_name_here() {
        let metrics = Metrics::new("0");
        let workspaces = ["w".to_owned()].into();
        metrics.workspaces().set(Arc::new(workspaces));
        let own = [("w", "secret_plan"), ("w.job", "another"), ("w2", "public")];
        metrics.chaos_active(own.map(|(scope, profile)| active(scope, profile, 1, None)));
        let text = metrics.render().expect("renders");
        for (label, count) in [("other", 2), ("public", 1)] {
            let line = format!("squall_chaos_active{{profile=\"{label}\"}} {count}");
            assert!(text.lines().any(|l| l == line), "{line} is missing");
        }
        assert!(!text.contains("secret_plan") && !text.contains("another"));
    }

    fn active<'a>(
        scope: &'a str,
        profile: &'a str,
        started: i64,
        expires: Option<i64>,
    ) -> ActiveChaos<'a> {
        ActiveChaos {
            scope,
            profile,
            started,
            expires,
        }
    }

    #[test]
    fn a_profile_no_longer_in_force_is_at_zero_and_has_no_times() {
        let metrics = Metrics::new("0");
        let series = || -> Vec<_> {
            let text = metrics.render().expect("renders");
            let lines = text
                .lines()
                .filter(|line| line.starts_with("squall_chaos_"));
            lines
                .map(|line| line.replace("timestamp_seconds", ""))
                .collect()
        };
        metrics.chaos_active([
            active("default", "outage", 200, Some(900)),
            active("a", "outage", 100, Some(700)),
            active("b", "brownout", 300, Some(400)),
        ]);
        #[rustfmt::skip]
        assert_eq!(series(), [
            "squall_chaos_active{profile=\"brownout\"} 1",
            "squall_chaos_active{profile=\"outage\"} 2",
            "squall_chaos_expires_{profile=\"brownout\"} 400",
            "squall_chaos_expires_{profile=\"outage\"} 900",
            "squall_chaos_started_{profile=\"brownout\"} 300",
            "squall_chaos_started_{profile=\"outage\"} 100",
        ]);
        metrics.chaos_active([
            active("default", "outage", 200, Some(900)),
            active("a", "outage", 250, None),
        ]);
        #[rustfmt::skip]
        assert_eq!(series(), [
            "squall_chaos_active{profile=\"brownout\"} 0",
            "squall_chaos_active{profile=\"outage\"} 2",
            "squall_chaos_started_{profile=\"outage\"} 200",
        ]);
    }
}
