//! The control API, as a test speaks to it.

use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};

use crate::wire::{Response, Wire};
use crate::{PATIENCE, pause};

/// A daemon's control API.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    /// Where it listens.
    pub address: SocketAddr,
}

impl Api {
    /// One call, whatever it is answered.
    pub fn call(self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let mut wire = Wire::connect(self.address);
        let body = body.map(Value::to_string).unwrap_or_default();
        wire.request(
            method,
            path,
            &[("Content-Type", "application/json")],
            body.as_bytes(),
        );
        match method {
            "HEAD" => wire.response_to_head(),
            _ => wire.response(),
        }
    }

    /// The JSON of a GET that succeeds.
    pub fn get(self, path: &str) -> Value {
        let response = self.call("GET", path, None);
        assert_eq!(response.status, 200, "GET {path}: {}", response.text());
        response.json()
    }

    /// Puts inline chaos in force for the default scope, with seed 1.
    pub fn chaos(self, chaos: &Value) {
        self.activate("/v1/chaos", &json!({ "chaos": chaos, "seed": 1 }));
    }

    /// Puts inline chaos in force for a named scope, with seed 1.
    pub fn chaos_in(self, scope: &str, chaos: &Value) {
        let path = format!("/v1/scopes/{scope}/chaos");
        self.activate(&path, &json!({ "chaos": chaos, "seed": 1 }));
    }

    /// PUTs an activation.
    pub fn activate(self, path: &str, activation: &Value) {
        let response = self.call("PUT", path, Some(activation));
        assert!(
            (200..300).contains(&response.status),
            "PUT {path}: {}",
            response.text()
        );
    }

    /// Asks for a run; its path.
    pub fn ask_for_run(self, wish: &Value) -> String {
        let answer = self.call("POST", "/v1/runs", Some(wish));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.header("location").expect("its path").to_owned()
    }

    /// The run at `path`, once it is over.
    pub fn ended_run(self, path: &str) -> Value {
        self.wait("the run's end", || {
            let run = self.get(path);
            run["finished_at"].is_string().then_some(run)
        })
    }

    /// Ends all chaos.
    pub fn end_chaos(self) {
        let response = self.call("DELETE", "/v1/chaos?all=true", None);
        assert!((200..300).contains(&response.status), "{}", response.text());
    }

    /// Finished exchanges, oldest first.
    pub fn exchanges(self) -> Vec<Value> {
        let page = self.get("/v1/exchanges?limit=1000");
        let mut all = page["items"].as_array().expect("a list").clone();
        all.retain(|one| one["outcome"] != "open");
        all.reverse();
        all
    }

    /// Waits until `count` exchanges are finished; oldest first.
    pub fn wait_for_exchanges(self, count: usize) -> Vec<Value> {
        self.wait(&format!("{count} exchanges"), || {
            let all = self.exchanges();
            (all.len() >= count).then_some(all)
        })
    }

    /// Asks again and again until `found` finds what it looks for.
    pub fn wait<T>(self, what: &str, found: impl Fn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(Instant::now() < deadline, "never saw {what}");
            pause();
        }
    }

    /// The sum of a metric's series whose labels contain all of `labels` (as `name="value"`).
    pub fn metric(self, name: &str, labels: &[&str]) -> f64 {
        let text = self.call("GET", "/metrics", None).text();
        text.lines()
            .filter(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
            .filter(|line| labels.iter().all(|label| line.contains(label)))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}
