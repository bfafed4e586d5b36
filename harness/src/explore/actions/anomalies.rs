//! What counts as an anomaly.

use serde_json::Value;
use squall_documents::Fields;
use squall_profiles::json_path::{self, Path};

use super::observation::{FoundAnomaly, Observation};

pub(super) const WHAT: &str = "an anomaly: `{jsonpath: $.inventory, rule: \"< 0\"}`, `{latency_ms: 500}` or \
                               `{status: 5xx}`";

/// One condition that makes an observation an anomaly.
#[derive(Debug)]
pub struct Anomaly {
    name: String,
    check: Check,
}

#[derive(Debug)]
enum Check {
    Values {
        path: Path,
        rule: Option<Path>,
        of_response: bool,
    },
    Latency(u64),
    /// Three characters, `x` for any digit.
    Status(String),
}

impl Anomaly {
    /// The anomaly, if the observation is one.
    pub(super) fn find(&self, seen: &Observation) -> Option<FoundAnomaly> {
        let found = match &self.check {
            Check::Values {
                path,
                rule,
                of_response,
            } => {
                let document = if *of_response {
                    &seen.response
                } else {
                    &seen.state
                };
                let values: Value = path
                    .query(document)
                    .iter()
                    .map(|it| (*it).clone())
                    .collect();
                let held = match rule {
                    Some(rule) => rule.query(&values).all(),
                    None => values.as_array().into_iter().flatten().collect(),
                };
                held.first()?.to_string()
            }
            Check::Latency(most) => {
                let is_slow = seen.latency_ms > *most;
                is_slow.then(|| format!("{} ms", seen.latency_ms))?
            }
            Check::Status(pattern) => {
                let status = seen.status?.to_string();
                let mut pairs = pattern.chars().zip(status.chars());
                pairs
                    .all(|(expected, found)| expected == 'x' || expected == found)
                    .then_some(status)?
            }
        };
        Some(FoundAnomaly {
            anomaly: self.name.clone(),
            found,
        })
    }
}

pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Anomaly> {
    let name = fields.name("name", "Its name; default: its condition.");
    let about = "JSONPath of the values to check.";
    let path = fields.parsed("jsonpath", about, |text| Ok(text.to_owned()));
    let about = "A comparison, like `< 0` or `== 'open'`; default: any value is an anomaly.";
    let rule = fields.text("rule", about);
    let about = "What the JSONPath reads: `state` (default) or `response`.";
    let of_response = fields.word(
        "of",
        about,
        "document",
        &[("state", false), ("response", true)],
    );
    let about = "Responses that take longer, in milliseconds, are an anomaly.";
    let latency = fields.whole("latency_ms", about, 0..=300_000, " milliseconds");
    let about = "Responses with this status are an anomaly: `5xx`, `50x` or `503`.";
    let status = fields.parsed("status", about, |text| {
        let text = text.trim().to_ascii_lowercase();
        let fits = text.len() == 3 && text.chars().all(|c| c.is_ascii_digit() || c == 'x');
        fits.then_some(text)
            .ok_or_else(|| "expected a status like `5xx` or `503`".to_owned())
    });
    let conditions = ["jsonpath", "latency_ms", "status"];
    if conditions.iter().filter(|name| fields.has(name)).count() != 1
        && !fields.reader.is_describing()
    {
        let message =
            format!("expected exactly one of `jsonpath`, `latency_ms` and `status` in {WHAT}");
        fields.reader.error(fields.position, message);
        return None;
    }
    for name in ["rule", "of"] {
        if fields.has(name) && !fields.has("jsonpath") {
            fields.error(name, format!("`{name}` belongs to `jsonpath`"));
        }
    }
    let (default, check) = match (path, latency, status) {
        (Some(path), _, _) => {
            let rule = rule.map(|rule| rule.value);
            let name = format!("{path} {}", rule.as_deref().unwrap_or_default());
            let check = values(
                fields,
                &path,
                rule.as_deref(),
                of_response.unwrap_or_default(),
            )?;
            (name.trim_end().to_owned(), check)
        }
        (_, Some(most), _) => (format!("latency_ms > {most}"), Check::Latency(most)),
        (_, _, Some(status)) => (format!("status {status}"), Check::Status(status)),
        (None, None, None) => return None,
    };
    Some(Anomaly {
        name: name.map_or(default, |name| name.value),
        check,
    })
}

fn values(
    fields: &mut Fields<'_, '_>,
    path: &str,
    rule: Option<&str>,
    of_response: bool,
) -> Option<Check> {
    let limits = fields.reader.limits.clone();
    let path = match json_path::parse(path, &limits) {
        Ok(path) => path,
        Err(error) => {
            fields.error("jsonpath", format!("`{path}` {error}; write `$.inventory`"));
            return None;
        }
    };
    // A rule is the end of a filter: RFC 9535 defines how values are compared.
    let rule = match rule.map(|rule| (rule, json_path::parse(&format!("$[?@ {rule}]"), &limits))) {
        Some((rule, Err(error))) => {
            let message = format!(
                "`{rule}` is no comparison, like `< 0` or `== 'open'`: `$[?@ {rule}]` {error}"
            );
            fields.error("rule", message);
            return None;
        }
        Some((_, Ok(rule))) => Some(rule),
        None => None,
    };
    Some(Check::Values {
        path,
        rule,
        of_response,
    })
}
