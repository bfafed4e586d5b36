use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use squall_documents::Variables;
use squall_journal::activation::ActivationRecord;
use squall_journal::record::{Outcome, SpentRecord};

use super::*;
use crate::agents::testing::{Reply, Server, json};
use crate::agents::{PromptTurn, ResetError};
use crate::dial::Dialler;
use crate::reach::{Late, Pending};
use crate::suite;
use crate::trace::testing::{Sent, exchange};

/// A fake proxy with observed traffic, and a fake agent with an answer.
struct World {
    told: Result<AgentAnswer, AskError>,
    is_reset: bool,
    own: Vec<Sent>,
    shared: Vec<Sent>,
    begun: Mutex<HashMap<String, String>>,
    /// The rules that were put in force.
    rules: Mutex<Vec<Rules>>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            told: Ok(AgentAnswer::of("four words of it")),
            is_reset: true,
            own: Vec::new(),
            shared: Vec::new(),
            begun: Mutex::default(),
            rules: Mutex::default(),
        }
    }
}

impl Reach for World {
    fn begin<'a>(
        &'a self,
        scope: &'a str,
        wanted: RequestedChaos,
    ) -> Pending<'a, Result<ActivationRecord, ReachError>> {
        Box::pin(async move {
            let mut rules = self.rules.lock().expect("not poisoned");
            rules.push(wanted.rules);
            let id = format!("of-{scope}");
            let mut begun = self.begun.lock().expect("not poisoned");
            begun.insert(id.clone(), scope.to_owned());
            Ok(ActivationRecord {
                scope: scope.to_owned(),
                activation: Some(id),
                inherited: false,
                profile: "none".into(),
                seed: 0,
                key: String::new(),
                observe: "bodies".into(),
                rules: 0,
                started_at: None,
                expires_at: None,
                ttl: None,
                ttl_from: None,
                suspended: None,
                spent: SpentRecord::default(),
            })
        })
    }

    fn end<'a>(&'a self, _: &'a str) -> Pending<'a, Result<bool, ReachError>> {
        Box::pin(async { Ok(true) })
    }

    fn end_run<'a>(&'a self, _: &'a str) -> Pending<'a, Result<usize, ReachError>> {
        Box::pin(async { Ok(self.begun.lock().expect("not poisoned").drain().count()) })
    }

    fn close<'a>(&'a self, _: &'a str) -> Pending<'a, Result<(), ReachError>> {
        Box::pin(async { Ok(()) })
    }

    fn late<'a>(&'a self, _: &'a str) -> Pending<'a, Result<Late, ReachError>> {
        Box::pin(async { Ok(Late::default()) })
    }

    fn seen<'a>(
        &'a self,
        activation: &'a str,
        _: Duration,
    ) -> Pending<'a, Result<Seen, ReachError>> {
        let sent = if activation == "of-own" {
            &self.own
        } else {
            &self.shared
        };
        let exchanges = sent
            .iter()
            .enumerate()
            .map(|(number, sent)| exchange(number, sent));
        let exchanges = exchanges.collect();
        Box::pin(async move {
            Ok(Seen {
                exchanges,
                ..Seen::default()
            })
        })
    }
}

impl Driver for World {
    fn turn<'a>(
        &'a self,
        _: &'a Invocation,
        _: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>> {
        Box::pin(async { self.told.clone() })
    }

    fn reset<'a>(&'a self, _: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(async {
            self.is_reset.then_some(()).ok_or(ResetError::Refused {
                endpoint: "http://agent.test/reset".into(),
                status: 500,
            })
        })
    }
}

const SUITE: &str = "\
agent:
  endpoint: http://agent.test/
  reset_endpoint: http://agent.test/reset
  timeout: 20000
  response_path: text
golden_prompts: [one, two]
invariants: [{type: completes}]
tools: {search: {match_url: 'https://tool.test/*'}}
chaos:
  tool_faults: [{tool: search, mode: error}]
  llm_faults: [{mode: timeout}]
";

async fn told(suite: &str, world: &World) -> String {
    let suite = suite::parse("suite.yaml", suite, Variables::Refused).expect("valid");
    let of = Verifying {
        dialler: &Dialler::default(),
        suite: &suite,
        driver: world,
        reach: world,
        run: "r",
        place: &InvocationPlace {
            slot: "slot".to_owned(),
            scope: "own".to_owned(),
        },
        shared: "default",
    };
    let checks = verify(&of).await.expect("verified");
    assert!(
        world.begun.lock().expect("not poisoned").is_empty(),
        "something is in force"
    );
    let mut told = String::new();
    for check in &checks {
        let place = check.place.as_deref().unwrap_or("-");
        let advice = check.advice.as_deref().unwrap_or("-");
        let state = serde_json::json!(check.state);
        writeln!(
            told,
            "{} {state}: {}\n  {place} {advice}",
            check.name, check.found
        )
        .expect("a text");
    }
    let holds = if holds(&checks) {
        "it holds"
    } else {
        "it does not hold"
    };
    format!("{told}{holds}\n")
}

fn rejected(url: &str) -> Sent {
    let mut sent = Sent::get(url);
    sent.record.outcome = Outcome::ClientRejectedCa;
    sent
}

fn whole() -> Vec<Sent> {
    let baggage = ("baggage", "a=b,squall.scope=own");
    vec![
        Sent::get("https://tool.test/q")
            .tool("search")
            .header(baggage.0, baggage.1),
        Sent::model("[]")
            .used("gpt-4o", 1, 1)
            .header(baggage.0, baggage.1),
    ]
}

#[tokio::test]
async fn an_agent_that_can_be_judged_passes() {
    let world = World {
        own: whole(),
        ..World::default()
    };
    insta::assert_snapshot!(told(SUITE, &world).await);
}

#[tokio::test]
async fn g13_the_agent_is_asked_without_the_suites_chaos() {
    let world = World {
        own: whole(),
        ..World::default()
    };
    told(SUITE, &world).await;
    let rules = world.rules.into_inner().expect("not poisoned");
    // In its own scope and in the shared one.
    assert_eq!(rules, [Rules::Nothing, Rules::Nothing]);
}

#[tokio::test]
#[rustfmt::skip]
async fn g47_what_is_wrong_is_told_with_its_line_and_what_to_do() {
    let unreachable = AskError::Unreachable {
        endpoint: "http://agent.test/".into(),
        tries: 3,
        why: "connection refused".into(),
    };
    let nowhere = AskError::NotThere {
        path: "text".into(),
        why: "has no `text` to go to".into(),
        shape: "{output: a text}".into(),
    };
    let slow = AgentAnswer {
        error: Some("there was no answer within 20000 ms".into()),
        timed_out: true,
        ..AgentAnswer::default()
    };
    let mut all = String::new();
    for (name, world) in [
        ("down", World { told: Err(unreachable), ..World::default() }),
        ("unread", World { told: Err(nowhere), own: whole(), ..World::default() }),
        ("slow", World { told: Ok(slow), own: whole(), ..World::default() }),
        ("silent", World { told: Ok(AgentAnswer::of(" ")), own: whole(), ..World::default() }),
        ("blind", World::default()),
        ("no scope", World { shared: whole(), ..World::default() }),
        ("some scope", World { own: whole(), shared: whole(), ..World::default() }),
        ("no trust", World { own: vec![rejected("https://api.test/")], ..World::default() }),
        (
            "failing",
            World {
                own: vec![Sent::get("https://api.test/").status(401)],
                is_reset: false,
                ..World::default()
            },
        ),
    ] {
        writeln!(all, "## {name}\n{}", told(SUITE, &world).await).expect("a text");
    }
    insta::assert_snapshot!(all);
}

#[tokio::test]
async fn a_suite_that_asks_nothing_cannot_be_run() {
    let text = "agent: {endpoint: 'http://a.test/'}\nreplays: {sessions: [{id: a, input: b}]}\n";
    let told = told(text, &World::default()).await;
    assert!(
        told.contains("agent \"failed\": the suite has no golden prompt"),
        "{told}"
    );
}

#[tokio::test]
async fn of_calls_that_a_failing_agent_did_not_make_nothing_is_said() {
    let failed = AgentAnswer {
        error: Some("the agent answered with status 429".into()),
        ..AgentAnswer::default()
    };
    let world = World {
        told: Ok(failed),
        ..World::default()
    };
    let told = told(SUITE, &world).await;
    assert!(
        told.contains("proxy \"skipped\": the agent failed before a call of it was seen"),
        "{told}"
    );
}

#[tokio::test]
async fn tools_that_the_rules_are_about_and_nobody_called_are_told() {
    let other = SUITE.replace(
        "{tool: search,",
        "{tool: other, match_url: 'https://o.test/*',",
    );
    let world = || World {
        own: whole(),
        ..World::default()
    };
    let said = told(&other, &world()).await;
    assert!(
        said.contains(
            "tools \"warned\": the first golden prompt called search; no rule for tools in `chaos` can match such calls"
        ),
        "{said}"
    );
    let any = SUITE.replace("{tool: search,", "{tool: '*',");
    let said = told(&any, &world()).await;
    assert!(said.contains("tools \"passed\": search"), "{said}");
}

#[tokio::test]
async fn the_advice_fits_how_the_agent_is_reached() {
    let mut all = String::new();
    for agent in [
        "{type: command, command: [my-agent]}",
        "{type: python, endpoint: 'agent:chat'}",
        "{endpoint: 'http://a.test/', start: {command: [serve], ready_url: 'http://a.test/ready'}}",
    ] {
        let suite =
            format!("agent: {agent}\ngolden_prompts: [one]\ninvariants: [{{type: completes}}]\n");
        let blind = told(&suite, &World::default()).await;
        let down = AskError::Unreachable {
            endpoint: "it".into(),
            tries: 1,
            why: "gone".into(),
        };
        let down = told(
            &suite,
            &World {
                told: Err(down),
                ..World::default()
            },
        )
        .await;
        writeln!(all, "## {agent}\n{blind}\n{down}").expect("a text");
    }
    insta::assert_snapshot!(all);
}

#[tokio::test]
async fn the_suites_own_model_is_asked_a_word() {
    let yes = json(r#"{"message": {"content": "yes"}}"#);
    let refused = |status| Reply::With(status, "application/json", "{}".to_owned());
    for (reply, expected) in [
        (yes, "model \"passed\": `m` answers\n  - -"),
        (
            refused(401),
            "suite.yaml:2:8 set the variable that `api_key` names",
        ),
        (
            refused(404),
            "suite.yaml:2:35 name a model that the provider serves",
        ),
        (json("{}"), "suite.yaml:2:8 correct `provider`"),
    ] {
        let server = Server::start(vec![reply]).await;
        let suite = format!(
            "agent: {{endpoint: 'http://a.test/'}}\nmodel: {{  provider: ollama, name: m, base_url: '{}'}}\n\
             golden_prompts: [one]\ninvariants: [{{type: llm_judge, rubric: It is kind.}}]\n",
            server.url
        );
        let told = told(&suite, &World::default()).await;
        assert!(told.contains(expected), "{told}");
    }
    // Nothing listens at this address, and no invariant needs the model.
    let suite = "agent: {endpoint: 'http://a.test/'}\nmodel: {provider: ollama, name: m, base_url: 'http://127.0.0.1:1'}\n\
                 golden_prompts: [one]\ninvariants: [{type: completes}]\n";
    let told = told(suite, &World::default()).await;
    assert!(
        told.contains("model \"skipped\": no invariant is judged"),
        "{told}"
    );
}
