//! Faults × paths: each fault is put in force, one exchange is made on each path, and what the
//! client saw is checked. The same check must fail when no fault is in force, or it proves nothing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use squall_tests::upstream::standard::pattern;
use squall_tests::wire::Response;
use squall_tests::{Path, Stage, Wire};

/// What must be so under a fault, and must not without it.
pub(crate) type Judge = fn(&Seen) -> Result<(), String>;

/// A rule, `mode` included, what is asked for, and what a client must see.
pub(crate) type Row = (Value, Ask, Judge);

/// A request to make.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask {
    /// GET that target.
    Get(&'static str),
    /// POST that JSON to that target.
    Post(&'static str, &'static str),
    /// POST so many bytes of the pattern to what echoes them.
    Upload(usize),
}

/// What one exchange looked like from outside.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The way it went.
    pub(crate) path: Path,
    /// The URL as a program that goes this way writes it.
    pub(crate) url: String,
    /// What the client got; of a failed CONNECT, the answer to that.
    pub(crate) answer: Response,
    /// Whether CONNECT was answered 200 (true where there is none).
    pub(crate) tunnelled: bool,
    /// Why the client gave up the handshake, if it did.
    pub(crate) handshake: Option<String>,
    /// From the request's first byte to the answer's last, or to the end.
    pub(crate) took: Duration,
    /// Requests that reached the upstream.
    pub(crate) forwarded: usize,
}

impl Seen {
    /// Fails unless `holds`, telling all that was seen.
    pub(crate) fn expect(&self, what: &str, holds: bool) -> Result<(), String> {
        if holds {
            Ok(())
        } else {
            Err(format!("not so: {what}; seen: {self:#?}"))
        }
    }
}

impl Ask {
    pub(crate) fn of(self, wire: &mut Wire) -> Response {
        match self {
            Self::Get(target) => wire.get(target),
            Self::Post(target, body) => wire.post(target, body),
            Self::Upload(size) => {
                wire.request("POST", self.target(), &[], &pattern(size));
                wire.response()
            }
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::Get(target) | Self::Post(target, _) => target,
            Self::Upload(_) => "/echo",
        }
    }
}

/// Makes one exchange on a connection of its own.
pub(crate) fn see(stage: &Stage, path: Path, ask: Ask) -> Seen {
    let before = stage.upstream(path).requests().len();
    let begun = Instant::now();
    let mut seen = Seen {
        path,
        url: stage.url(path, ask.target()),
        answer: Response::default(),
        tunnelled: true,
        handshake: None,
        took: Duration::ZERO,
        forwarded: 0,
    };
    match path {
        Path::Intercepted => {
            let mut wire = stage.daemon.connect();
            let answer = wire.open_tunnel(&stage.secure_authority(), "");
            seen.tunnelled = answer.status == 200;
            if seen.tunnelled {
                match wire.encrypt(&stage.daemon.ca, "localhost") {
                    Ok(mut wire) => {
                        wire.host = stage.secure_authority();
                        seen.answer = ask.of(&mut wire);
                    }
                    Err(error) => seen.handshake = Some(error.to_string()),
                }
            } else {
                seen.answer = answer;
            }
        }
        _ => seen.answer = ask.of(&mut stage.open(path)),
    }
    seen.took = begun.elapsed();
    seen.forwarded = stage.upstream(path).requests().len() - before;
    seen
}

/// Checks each row on every path, with its control.
pub(crate) fn on_every_path<const ROWS: usize>(family: &str, rows: [Row; ROWS]) {
    check(family, rows, &Path::THROUGH);
}

/// Checks each row on some paths, with its control.
pub(crate) fn check<const ROWS: usize>(family: &str, rows: [Row; ROWS], paths: &[Path]) {
    let stage = Stage::new();
    let api = stage.daemon.api;
    for (rule, ask, judge) in rows {
        let mode = rule["mode"].as_str().unwrap_or_default();
        for &path in paths {
            api.end_chaos();
            let clean = see(&stage, path, ask);
            assert!(
                judge(&clean).is_err(),
                "{rule} on {path:?}: the check holds without the fault, so it proves nothing: {clean:#?}"
            );
            api.chaos(&json!({ family: [rule] }));
            let label = format!("mode=\"{mode}\"");
            let counted = api.metric("squall_faults_injected_total", &[&label]);
            let faulted = see(&stage, path, ask);
            if let Err(wrong) = judge(&faulted) {
                panic!("{rule} on {path:?}: {wrong}");
            }
            let applied = applied(&stage, mode);
            assert_eq!(applied["family"], family, "{rule} on {path:?}: {applied}");
            let counted = api.metric("squall_faults_injected_total", &[&label]) - counted;
            assert!(
                counted >= 1.0,
                "{rule} on {path:?}: the metric moved by {counted}"
            );
        }
    }
}

/// The journal's entry of the latest application of a rule of `mode`.
fn applied(stage: &Stage, mode: &str) -> Value {
    stage
        .daemon
        .api
        .wait(&format!("{mode} applied in the journal"), || {
            let page = stage.daemon.api.get("/v1/exchanges?limit=5");
            page["items"].as_array()?.iter().find_map(|exchange| {
                let rules = exchange["rules"].as_array()?;
                let is_it = |rule: &&Value| rule["mode"] == mode && rule["outcome"] == "applied";
                rules.iter().find(is_it).cloned()
            })
        })
}

/// The journal's entry of a fresh daemon's `number`th exchange, from 1.
pub(crate) fn exchange(stage: &Stage, number: usize) -> Value {
    stage
        .daemon
        .api
        .wait_for_exchanges(number)
        .swap_remove(number - 1)
}
