//! Prints what many rules cost: reading and compiling them, looking one exchange up among them, and
//! the memory they keep, for three sets: many hosts, many paths of one host, many globs that begin
//! with a star.
//!
//!     cargo run --release -p squall-profiles --example rules_at_scale

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method};
use squall_profiles::activation::{Activation, ActivationSpec, Observe};
use squall_profiles::facts::{CanonicalUrl, Facts, Kind, Stage};
use squall_profiles::library::Library;
use squall_profiles::profile;
use squall_profiles::ruleset::RuleSet;
use squall_profiles::tools::ToolNames;

/// A set's name and how its n-th glob looks.
type Set = (&'static str, fn(usize) -> String);

const SETS: [Set; 3] = [
    ("N hosts", |n| format!("https://host-{n}.example/*")),
    ("one host, N paths", |n| {
        format!("https://api.example/v1/resources/{n}/*")
    }),
    ("N globs beginning with *", |n| {
        format!("*/v1/resources/{n}/*")
    }),
];

fn main() {
    println!(
        "{:26} {:>6} {:>10} {:>10} {:>12} {:>12} {:>10}",
        "set", "rules", "read ms", "compile ms", "miss ns", "hit ns", "KiB kept"
    );
    for (name, glob) in SETS {
        for count in [1, 100, 1_000, 10_000] {
            let before = resident();
            let (rules, read, compile) = rules(count, glob);
            let activation = activate(rules);
            let kept = resident().saturating_sub(before);
            let miss = lookup(
                &activation,
                "https://api.openai.example/v1/chat/completions?x=1",
                false,
            );
            let hit = glob(count / 2)
                .replace('*', "x")
                .replace("x/v1", "https://some.example/v1");
            let hit = lookup(&activation, &hit, true);
            println!(
                "{name:26} {count:>6} {:>10.1} {:>10.1} {miss:>12.0} {hit:>12.0} {kept:>10}",
                millis(read),
                millis(compile)
            );
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "an example may measure")]
fn rules(count: usize, glob: fn(usize) -> String) -> (Arc<RuleSet>, Duration, Duration) {
    let rules: Vec<_> = (0..count)
        .map(|n| {
            format!(
                "  - {{ mode: error, match_url: '{}', error_code: 503 }}\n",
                glob(n)
            )
        })
        .collect();
    let text = format!("tool_faults:\n{}", rules.concat());
    let begun = Instant::now();
    let profile = profile::parse_chaos("rules.yaml", "scale", &text).expect("rules are sound");
    let read = begun.elapsed();
    let begun = Instant::now();
    let set = Library::default()
        .rule_set_of(&profile, &ToolNames::default())
        .map(Arc::new)
        .expect("compiles");
    (set, read, begun.elapsed())
}

fn activate(rules: Arc<RuleSet>) -> Activation {
    let spec = ActivationSpec {
        profile: "scale".to_owned(),
        seed: 1,
        key: None,
        observe: Observe::Model,
    };
    Activation::new("a".to_owned(), "default".to_owned(), spec, rules)
}

/// Nanoseconds one shortlist takes, the best of several rounds.
#[expect(clippy::disallowed_methods, reason = "an example may measure")]
fn lookup(activation: &Activation, url: &str, expected: bool) -> f64 {
    const CALLS: u32 = 20_000;
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let url = CanonicalUrl::new(scheme, authority, path);
    let headers = HeaderMap::new();
    let facts = Facts {
        kind: Kind::Tool,
        dialect: None,
        tools: &[],
        mcp_tool_call: false,
        mcp_tool_list: false,
        may_be_mcp: false,
        method: &Method::GET,
        url: &url,
        headers: &headers,
        model: None,
        stream: None,
        results: None,
        body: None,
    };
    let stage = Stage::Request {
        behind_connect: false,
    };
    let rounds = (0..5).map(|_| {
        let begun = Instant::now();
        for _ in 0..CALLS {
            let snapshot = activation.snapshot();
            let found = !black_box(snapshot.shortlist(black_box(&facts), stage)).is_empty();
            assert_eq!(found, expected, "{}", url.as_str());
        }
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// Resident memory of this process in KiB, as Linux tells it; 0 elsewhere. What an earlier set left
/// to the allocator counts as free, so the first figure of a size is the one to trust.
#[expect(
    clippy::disallowed_methods,
    reason = "an example may look at its own process"
)]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
