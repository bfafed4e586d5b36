//! A scope with rules in force, and requests to send through it.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use squall_profiles::activation::{Activation, ActivationSpec, Observe, Snapshot};
use squall_profiles::decide::Decision;
use squall_profiles::facts::{Body, CanonicalUrl, Facts, Kind, Stage};
use squall_profiles::faults::model_input::unseen_tools;
use squall_profiles::library::Library;
use squall_profiles::plan::Plan;
use squall_profiles::profile;
use squall_profiles::ruleset::RuleSet;
use squall_profiles::tools::ToolNames;
use squall_profiles::verdict::VerdictOutcome;

/// A request, plain unless told otherwise: `GET https://api.example/` of kind `tool`.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) dialect: Option<&'static str>,
    pub(crate) tools: Vec<String>,
    pub(crate) rpc_tool_call: bool,
    pub(crate) mcp_tool_list: bool,
    pub(crate) from: Option<&'static str>,
    pub(crate) may_be_rpc: bool,
    pub(crate) method: Method,
    pub(crate) url: CanonicalUrl,
    pub(crate) headers: HeaderMap,
    pub(crate) model: Option<&'static str>,
    pub(crate) stream: Option<bool>,
    pub(crate) results: Option<Vec<String>>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) stage: Stage,
}

pub(crate) fn get(url: &str) -> Request {
    Request {
        kind: Kind::Tool,
        dialect: None,
        tools: Vec::new(),
        rpc_tool_call: false,
        mcp_tool_list: false,
        from: None,
        may_be_rpc: false,
        method: Method::GET,
        url: canonical(url),
        headers: HeaderMap::new(),
        model: None,
        stream: None,
        results: None,
        body: Some(Vec::new()),
        stage: Stage::Request {
            behind_connect: false,
        },
    }
}

pub(crate) fn post(url: &str, body: &str) -> Request {
    Request {
        method: Method::POST,
        body: Some(body.into()),
        ..get(url)
    }
}

pub(crate) fn model_call(body: &str) -> Request {
    let dialect = squall_dialects::by_name("openai-chat");
    Request {
        kind: Kind::Llm,
        dialect: Some("openai-chat"),
        model: Some("gpt-4o"),
        stream: Some(false),
        results: dialect.map(|dialect| unseen_tools(dialect, body.as_bytes())),
        ..post("https://api.openai.com/v1/chat/completions", body)
    }
}

pub(crate) fn connect(origin: &str) -> Request {
    Request {
        kind: Kind::Other,
        method: Method::CONNECT,
        body: None,
        stage: Stage::Connect,
        ..get(origin)
    }
}

impl Request {
    pub(crate) fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn tool(self, name: &str) -> Self {
        Self {
            tools: vec![name.to_owned()],
            ..self
        }
    }

    pub(crate) fn mcp(self, tool: &str) -> Self {
        Self {
            kind: Kind::Mcp,
            rpc_tool_call: true,
            method: Method::POST,
            ..self.tool(tool)
        }
    }

    /// A POST of JSON of which the body was not read.
    pub(crate) fn unread(self) -> Self {
        Self {
            may_be_rpc: true,
            method: Method::POST,
            body: None,
            ..self
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        self
    }

    pub(crate) fn behind_connect(self) -> Self {
        Self {
            stage: Stage::Request {
                behind_connect: true,
            },
            ..self
        }
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            kind: self.kind,
            dialect: self.dialect,
            tools: &self.tools,
            rpc_tool_call: self.rpc_tool_call,
            mcp_tool_list: self.mcp_tool_list,
            from: self.from,
            may_be_rpc: self.may_be_rpc,
            method: &self.method,
            url: &self.url,
            headers: &self.headers,
            model: self.model,
            stream: self.stream,
            results: self.results.as_deref(),
            body: self.body.as_deref().map(Body::from),
        }
    }
}

fn canonical(url: &str) -> CanonicalUrl {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    CanonicalUrl::new(scheme, authority, path)
}

/// The rules under `chaos:`, compiled.
pub(crate) fn rules(chaos: &str) -> Arc<RuleSet> {
    rules_with(chaos, &ToolNames::default())
}

pub(crate) fn rules_with(chaos: &str, tools: &ToolNames) -> Arc<RuleSet> {
    let profile = profile::parse_chaos("chaos.yaml", "inline", chaos)
        .unwrap_or_else(|errors| panic!("{chaos}: {errors:?}"));
    Library::default()
        .rule_set_of(&profile, tools)
        .map(Arc::new)
        .expect("rules compile")
}

/// An activation of these rules, with seed and key.
pub(crate) fn activation(rules: Arc<RuleSet>, seed: u64, key: &str) -> Activation {
    let spec = ActivationSpec {
        profile: "inline".to_owned(),
        seed,
        key: None,
        observe: Observe::Model,
    };
    Activation::new("a1".to_owned(), key.to_owned(), spec, rules)
}

/// A scope under these rules.
pub(crate) fn scope(chaos: &str) -> Activation {
    activation(rules(chaos), 42, "default")
}

/// Sends a request at the beginning of the activation.
pub(crate) fn send(scope: &Activation, request: &Request) -> Decision {
    send_at(&scope.snapshot(), request, Duration::ZERO)
}

/// The way the proxy goes: shortlist by the head alone, then decide with the body.
pub(crate) fn send_at(snapshot: &Snapshot, request: &Request, elapsed: Duration) -> Decision {
    let head = Facts {
        model: None,
        stream: None,
        results: None,
        body: None,
        ..request.facts()
    };
    let shortlist = snapshot.shortlist(&head, request.stage);
    if shortlist.is_empty() {
        return Decision::default();
    }
    snapshot.decide(&shortlist, &request.facts(), request.stage, elapsed)
}

/// Ids of the rules that fired, whether or not they had their way.
pub(crate) fn fired(decision: &Decision) -> Vec<&str> {
    let verdicts = decision.verdicts.iter();
    verdicts
        .filter(|verdict| !matches!(verdict.outcome, VerdictOutcome::NotDrawn(_)))
        .map(|verdict| verdict.rule.id.as_str())
        .collect()
}

/// What became of each eligible rule, one a line.
pub(crate) fn outcomes(decision: &Decision) -> Vec<String> {
    let verdicts = decision.verdicts.iter();
    verdicts
        .map(|verdict| match &verdict.outcome {
            VerdictOutcome::Chosen => format!("{}: chosen", verdict.rule.id),
            VerdictOutcome::Applied => format!("{}: applied", verdict.rule.id),
            VerdictOutcome::NotDrawn(why) => {
                let why = verdict.not_drawn(*why);
                format!("{}: not drawn, {why}", verdict.rule.id)
            }
            VerdictOutcome::Bypassed(why) => format!("{}: bypassed, {why}", verdict.rule.id),
        })
        .collect()
}

/// The parts of a plan, one a line.
pub(crate) fn parts(plan: &Plan) -> String {
    let Plan {
        wait_before,
        wait_after,
        instead,
        afterwards,
        request_edits,
        edits,
        shape,
        websocket,
        canaries,
    } = plan;
    let parts = [
        (!wait_before.is_empty()).then(|| format!("wait before {wait_before:?}")),
        (!wait_after.is_empty()).then(|| format!("wait after {wait_after:?}")),
        instead.as_ref().map(|it| format!("instead {it:?}")),
        afterwards.as_ref().map(|it| format!("afterwards {it:?}")),
        (!request_edits.is_empty()).then(|| format!("request edits {request_edits:?}")),
        (!edits.is_empty()).then(|| format!("edits {edits:?}")),
        (!shape.is_empty()).then(|| format!("{shape:?}")),
        (!websocket.is_empty()).then(|| format!("websocket {websocket:?}")),
        (!canaries.is_empty()).then(|| format!("canaries {canaries:?}")),
    ];
    let parts = parts.into_iter().flatten().map(|it| format!("  {it}"));
    parts.collect::<Vec<_>>().join("\n")
}
