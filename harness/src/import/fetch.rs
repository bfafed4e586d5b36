//! Fetches traces from LangSmith and Langfuse.

use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use squall_journal::redact::Redactor;
use squall_journal::timestamp;

use super::{ImportFormat, ImportOptions, Imported, LONGEST, langfuse, langsmith, words};
use crate::date_range::DateRange;
use crate::dial::{Dialler, innermost};

/// Runs in a page of LangSmith.
const PAGE: usize = 100;

/// The names in one of LangSmith's two APIs for queries of runs.
struct RunQueries {
    path: &'static str,
    /// Pointers into a page.
    items: &'static str,
    next: &'static str,
    /// Members of a query.
    size: &'static str,
    ids: &'static str,
    projects: &'static str,
    trace: &'static str,
    error: &'static str,
    since: &'static str,
}

const FIRST: RunQueries = RunQueries {
    path: "/runs/query",
    items: "/runs",
    next: "/cursors/next",
    size: "limit",
    ids: "id",
    projects: "session",
    trace: "trace",
    error: "error",
    since: "start_time",
};

const SECOND: RunQueries = RunQueries {
    path: "/api/v2/runs/query",
    items: "/items",
    next: "/next_cursor",
    size: "page_size",
    ids: "ids",
    projects: "project_ids",
    trace: "trace_id",
    error: "has_error",
    since: "min_start_time",
};

/// Fields of runs that LangSmith's second API returns.
#[rustfmt::skip]
const SELECTS: [&str; 12] = [
    "ID", "NAME", "RUN_TYPE", "STATUS", "START_TIME", "END_TIME", "INPUTS", "OUTPUTS", "ERROR", "EXTRA", "TRACE_ID",
    "DOTTED_ORDER",
];

/// A service that traces are fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// LangSmith.
    Langsmith,
    /// Langfuse.
    Langfuse,
}

/// Why traces were not fetched. It has no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(String);

/// What to fetch.
#[derive(Debug, Clone)]
pub struct Fetching {
    /// From where.
    pub service: Service,
    /// The project of LangSmith, a run's or a trace's id, or `latest`.
    pub source: String,
    /// `error`, `warning` or `all`.
    pub status: String,
    /// When the traces began.
    pub range: Option<DateRange>,
    /// Least duration, milliseconds.
    pub min_latency_ms: u64,
    /// Most traces.
    pub limit: usize,
    /// URL of the API, instead of the variable's or the default.
    pub endpoint: Option<String>,
    /// The time, milliseconds since 1970.
    pub now_ms: u64,
}

impl Service {
    /// The service of a format; `None`: it has files only.
    pub fn of(format: ImportFormat) -> Option<Self> {
        match format {
            ImportFormat::Langsmith => Some(Self::Langsmith),
            ImportFormat::Langfuse => Some(Self::Langfuse),
            ImportFormat::Har
            | ImportFormat::Otlp
            | ImportFormat::Flakestorm
            | ImportFormat::Vcr => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Langsmith => "LangSmith",
            Self::Langfuse => "Langfuse",
        }
    }
}

/// An API with its keys.
struct Api {
    client: Client,
    service: Service,
    endpoint: String,
    headers: Vec<(&'static str, String)>,
    /// Bytes that may still be read.
    left: usize,
}

impl Fetching {
    /// Fetches and imports. `variable` looks up keys: `LANGSMITH_API_KEY`, `LANGFUSE_PUBLIC_KEY`, `LANGFUSE_SECRET_KEY`.
    pub async fn run(
        &self,
        dialler: &Dialler,
        variable: &(dyn Fn(&str) -> Option<String> + Sync),
        options: ImportOptions<'_>,
    ) -> Result<Imported, FetchError> {
        let key = |name: &str| {
            let missing = || {
                FetchError(format!(
                    "{name} is not set; set it to the key of {}",
                    self.service.name()
                ))
            };
            variable(name)
                .filter(|key| !key.trim().is_empty())
                .ok_or_else(missing)
        };
        let (variables, default) = match self.service {
            Service::Langsmith => (
                ["LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"],
                "https://api.smith.langchain.com",
            ),
            Service::Langfuse => (
                ["LANGFUSE_HOST", "LANGFUSE_BASE_URL"],
                "https://cloud.langfuse.com",
            ),
        };
        let named = || variables.iter().find_map(|name| variable(name));
        let endpoint = self
            .endpoint
            .clone()
            .or_else(named)
            .unwrap_or_else(|| default.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        dialler.check(&endpoint).map_err(FetchError)?;
        let (headers, secrets) = match self.service {
            Service::Langsmith => {
                let key = key("LANGSMITH_API_KEY")?;
                let tenant = variable("LANGSMITH_WORKSPACE_ID").map(|id| ("x-tenant-id", id));
                let headers = std::iter::once(("x-api-key", key.clone())).chain(tenant);
                (headers.collect(), vec![key])
            }
            Service::Langfuse => {
                use base64::Engine as _;
                let (public, secret) = (key("LANGFUSE_PUBLIC_KEY")?, key("LANGFUSE_SECRET_KEY")?);
                let pair =
                    base64::engine::general_purpose::STANDARD.encode(format!("{public}:{secret}"));
                (
                    vec![("authorization", format!("Basic {pair}"))],
                    vec![public, secret, pair],
                )
            }
        };
        let mut api = Api {
            client: dialler.client(&endpoint),
            service: self.service,
            endpoint,
            headers,
            left: LONGEST,
        };
        let redactor = options.redactor.and(&Redactor::with_values(secrets));
        let documents = match self.service {
            Service::Langsmith => self.langsmith(&mut api).await?,
            Service::Langfuse => self.langfuse(&mut api).await?,
        };
        let mut imported = Imported::default();
        for document in documents {
            let read = match self.service {
                Service::Langsmith => langsmith::read(&document),
                Service::Langfuse => langfuse::read(&document),
            };
            imported.extend(read.map_err(FetchError)?);
        }
        let options = ImportOptions {
            redactor: &redactor,
            ..options
        };
        Ok(imported.finish(options))
    }

    /// The runs of each trace: a query for roots has no children, so each tree is queried too.
    async fn langsmith(&self, api: &mut Api) -> Result<Vec<Value>, FetchError> {
        let info = api.get("/info").await?;
        let flag =
            |name: &str, default: bool| info["instance_flags"][name].as_bool().unwrap_or(default);
        let is_second = !flag("ch_query_enabled", true) && flag("sdb_query_enabled", false);
        let names = if is_second { &SECOND } else { &FIRST };
        let start = timestamp::rfc3339(0);
        let roots = if is_id(&self.source) {
            let query = json!({ names.ids: [self.source], names.since: start });
            api.runs(names, query, 1).await?
        } else {
            let name = utf8_percent_encode(&self.source, NON_ALPHANUMERIC);
            let projects = api.get(&format!("/sessions?name={name}")).await?;
            let project = projects
                .as_array()
                .and_then(|all| words(all.first()?, "id"));
            let missing = || FetchError(format!("LangSmith has no project `{}`", self.source));
            let project = project.ok_or_else(missing)?.to_owned();
            let query = self.roots(names, &project);
            api.runs(names, query, self.limit).await?
        };
        if roots.is_empty() && is_id(&self.source) {
            return Err(FetchError(format!(
                "LangSmith has no run `{}`",
                self.source
            )));
        }
        let mut trees = Vec::new();
        for root in roots {
            let trace = words(&root, "trace_id")
                .or_else(|| words(&root, "id"))
                .unwrap_or_default();
            let start = words(&root, "start_time").unwrap_or(&start);
            let query = json!({ names.trace: trace, "is_root": false, names.since: start });
            let order = words(&root, "dotted_order").unwrap_or_default().to_owned();
            let mut tree = api.runs(names, query, usize::MAX).await?;
            // Below a run that is not the root, only its own children.
            tree.retain(|run| {
                words(run, "dotted_order")
                    .unwrap_or_default()
                    .starts_with(&order)
                    && run["id"] != root["id"]
            });
            tree.insert(0, root);
            trees.push(tree.into());
        }
        Ok(trees)
    }

    /// The query for root runs of a project.
    fn roots(&self, names: &RunQueries, project: &str) -> Value {
        let (from, to) = match self.range {
            Some(range) => range.bounds(self.now_ms),
            None => (0, self.now_ms),
        };
        let from = timestamp::rfc3339(from);
        let mut query = json!({ names.projects: [project], "is_root": true, names.since: from });
        match self.status.as_str() {
            "error" => query[names.error] = true.into(),
            "warning" => {
                query[names.error] = false.into();
                query["tree_filter"] = "neq(error, null)".into();
            }
            _ => {}
        }
        let mut filters = Vec::new();
        if self.min_latency_ms > 0 {
            let millis = self.min_latency_ms;
            filters.push(format!(
                "gte(latency, {}.{:03})",
                millis / 1000,
                millis % 1000
            ));
        }
        filters.push(format!("lte(start_time, \"{}\")", timestamp::rfc3339(to)));
        query["filter"] = match &filters[..] {
            [one] => one.as_str().into(),
            all => format!("and({})", all.join(", ")).into(),
        };
        query
    }

    async fn langfuse(&self, api: &mut Api) -> Result<Vec<Value>, FetchError> {
        let mut ids = Vec::new();
        if self.source == "latest" {
            let mut filter = String::new();
            if let Some(range) = self.range {
                let (from, to) = range.bounds(self.now_ms);
                let (from, to) = (timestamp::rfc3339(from), timestamp::rfc3339(to));
                // Writing to a string cannot fail.
                let _ = write!(filter, "&fromTimestamp={from}&toTimestamp={to}");
            }
            for page in 1.. {
                let listed = api
                    .get(&format!("/api/public/traces?page={page}&limit=50{filter}"))
                    .await?;
                let items = listed["data"].as_array().map_or(&[][..], Vec::as_slice);
                ids.extend(
                    items
                        .iter()
                        .filter_map(|one| words(one, "id").map(str::to_owned)),
                );
                if items.is_empty() || ids.len() >= self.limit {
                    break;
                }
            }
            ids.truncate(self.limit);
        } else {
            ids.push(self.source.clone());
        }
        let mut traces = Vec::new();
        for id in ids {
            let id = utf8_percent_encode(&id, NON_ALPHANUMERIC);
            traces.push(api.get(&format!("/api/public/traces/{id}")).await?);
        }
        if self.source == "latest" {
            traces.retain(|trace| self.admits(trace));
        }
        Ok(traces)
    }

    /// Whether a trace of Langfuse has the status and the duration: its API does not filter by them.
    fn admits(&self, trace: &Value) -> bool {
        let observations = trace["observations"].as_array().into_iter().flatten();
        let mut levels = observations.filter_map(|one| words(one, "level"));
        let level = match self.status.as_str() {
            "error" => Some("ERROR"),
            "warning" => Some("WARNING"),
            _ => None,
        };
        #[expect(
            clippy::cast_precision_loss,
            reason = "milliseconds of a day are exact"
        )]
        let least = self.min_latency_ms as f64 / 1000.0;
        level.is_none_or(|level| levels.any(|found| found == level))
            && trace["latency"]
                .as_f64()
                .is_none_or(|seconds| seconds >= least)
    }
}

/// Whether a text is the id of a run: a UUID.
fn is_id(text: &str) -> bool {
    let groups = text.split('-').map(str::len);
    groups.eq([8, 4, 4, 4, 12])
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

impl Api {
    async fn get(&mut self, path: &str) -> Result<Value, FetchError> {
        self.send(Method::GET, path, None).await
    }

    /// All pages of a query for runs.
    async fn runs(
        &mut self,
        names: &RunQueries,
        mut query: Value,
        most: usize,
    ) -> Result<Vec<Value>, FetchError> {
        query[names.size] = PAGE.min(most).into();
        if names.path == SECOND.path {
            query["selects"] = json!(SELECTS);
        }
        let mut runs = Vec::new();
        loop {
            let mut page = self.send(Method::POST, names.path, Some(&query)).await?;
            let Some(Value::Array(items)) = page.pointer_mut(names.items).map(Value::take) else {
                return Err(FetchError(
                    "LangSmith's response has no list of runs".to_owned(),
                ));
            };
            let is_last = items.is_empty();
            runs.extend(items);
            let next = page.pointer(names.next).and_then(Value::as_str);
            let Some(next) = next.filter(|_| !is_last && runs.len() < most) else {
                runs.truncate(most);
                return Ok(runs);
            };
            query["cursor"] = next.into();
        }
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, FetchError> {
        let name = self.service.name();
        let mut endpoint = self.endpoint.clone();
        Redactor::default().url(&mut endpoint, usize::MAX);
        let failed = |why: String| FetchError(format!("{name} at {endpoint}: {why}"));
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.endpoint));
        request = request.timeout(std::time::Duration::from_mins(1));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await;
        let mut response = response.map_err(|error| failed(innermost(&error)))?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(failed(format!(
                    "the key was rejected (status {})",
                    response.status().as_u16()
                )));
            }
            StatusCode::NOT_FOUND => {
                return Err(failed("there is no such trace (status 404)".to_owned()));
            }
            status if !status.is_success() => {
                return Err(failed(format!(
                    "the request failed with status {}",
                    status.as_u16()
                )));
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| failed(innermost(&error)))?
        {
            let left = self.left.checked_sub(chunk.len());
            self.left = left.ok_or_else(|| {
                failed(format!("the traces have more than {} MiB", LONGEST >> 20))
            })?;
            bytes.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| failed(format!("the response is not JSON: {error}")))
    }
}
