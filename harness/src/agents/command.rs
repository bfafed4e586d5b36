//! An agent that is a program: the prompt on stdin, the answer on stdout.
//!
//! Each turn is a separate process. `SQUALL_CONVERSATION` is the same in all turns of a prompt, so that a stateful
//! program can recognise them. The proxy variables carry the scope of the invocation.

use std::time::{Duration, Instant};

use super::pointing::{ProxyVariables, Variable};
use super::program::{self, NotEnded};
use super::reset::Resetter;
use super::settings::Agent;
use super::{AskError, Driver, Invocation, InvocationPlace, PromptTurn, ResetError, Surroundings};
use crate::answer::AgentAnswer;
use crate::reach::Pending;

/// Invokes an agent that is a program.
pub(super) struct CommandDriver {
    command: Vec<String>,
    reset: Resetter,
    timeout: Duration,
    variables: ProxyVariables,
}

impl CommandDriver {
    pub(super) fn new(agent: &Agent, command: &[String], surroundings: &Surroundings) -> Self {
        Self {
            command: command.to_owned(),
            reset: Resetter::new(agent, surroundings),
            timeout: agent.timeout,
            variables: surroundings.variables.clone(),
        }
    }

    async fn invoke(
        &self,
        invocation: &Invocation,
        turn: PromptTurn<'_>,
    ) -> Result<AgentAnswer, AskError> {
        let began = Instant::now();
        let left = self.timeout.saturating_sub(turn.elapsed);
        let environment = self.environment(invocation);
        let mut answer = match program::run(&self.command, &environment, turn.text, left).await {
            Ok(ended) if ended.too_long => return Err(AskError::TooLong),
            Ok(ended) => AgentAnswer {
                error: (!ended.status.success()).then(|| ended.why()),
                ..AgentAnswer::of(ended.stdout_text.trim_end_matches(['\r', '\n']))
            },
            Err(NotEnded::NotStarted(error)) => {
                return Err(AskError::Unreachable {
                    endpoint: self.command[0].clone(),
                    tries: 1,
                    why: error.to_string(),
                });
            }
            Err(NotEnded::TooSlow) => {
                let within = self.timeout.as_millis();
                let why = format!("there was no answer within {within} ms");
                AgentAnswer {
                    timed_out: true,
                    ..AgentAnswer::failed(String::new(), why)
                }
            }
            Err(NotEnded::Broken(error)) => {
                let why = format!("the program could not be listened to: {error}");
                AgentAnswer::failed(String::new(), why)
            }
        };
        answer.latency = began.elapsed();
        Ok(answer)
    }

    fn environment(&self, invocation: &Invocation) -> Vec<Variable> {
        let mut variables = (self.variables)(Some(&invocation.place.scope));
        variables.extend(invocation.variables());
        variables
    }
}

impl Driver for CommandDriver {
    fn turn<'a>(
        &'a self,
        invocation: &'a Invocation,
        turn: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>> {
        Box::pin(self.invoke(invocation, turn))
    }

    fn reset<'a>(&'a self, place: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(self.reset.reset(place))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::driver_of;
    use super::*;
    use crate::prompt::Prompt;

    fn driver(fields: &str) -> Box<dyn Driver> {
        driver_of(&format!("type: command, {fields}"))
    }

    async fn ask(fields: &str, prompt: Prompt) -> Result<AgentAnswer, AskError> {
        let invocation = Invocation {
            prompt,
            change: None,
            place: InvocationPlace::shared("cell-1"),
            traceparent: "00-00-00-01".into(),
            conversation: "c1".into(),
        };
        driver(fields).ask(&invocation).await
    }

    #[tokio::test]
    async fn the_prompt_goes_in_and_the_answer_comes_out() {
        let answer = ask("command: [cat]", Prompt::single("hi\nthere"))
            .await
            .expect("asked");
        assert_eq!((answer.text.as_str(), answer.error), ("hi\nthere", None));
        let shown = "command: [sh, -c, 'echo $HTTP_PROXY $SQUALL_CONVERSATION']";
        let answer = ask(shown, Prompt::single("x")).await.expect("asked");
        assert_eq!(answer.text, "http://cell-1:x@127.0.0.1:1 c1");
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_ends_with_it() {
        let left = "command: [sh, -c, 'sleep 600 & echo $!']";
        let answer = ask(left, Prompt::single("x".repeat(1 << 20))).await;
        let answer = answer.expect("asked");
        assert_eq!(answer.error, None);
        let stat = format!("/proc/{}/stat", answer.text);
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_program_that_does_not_listen_is_no_error() {
        let long = "x".repeat(1 << 20);
        let answer = ask("command: [sh, -c, 'echo done']", Prompt::single(long)).await;
        assert_eq!(answer.expect("asked").text, "done");
    }

    #[tokio::test]
    async fn every_turn_is_asked_and_the_last_answer_counts() {
        let turns = vec!["one".to_owned(), "two".to_owned()];
        let prompt = Prompt::conversation(turns).expect("turns");
        let answer = ask("command: [cat]", prompt).await.expect("asked");
        assert_eq!(answer.text, "two");
    }

    #[tokio::test]
    async fn a_program_that_fails_gives_an_answer_with_an_error() {
        let fields = "command: [sh, -c, 'echo partly; echo oops >&2; exit 3']";
        let answer = ask(fields, Prompt::single("x")).await.expect("an answer");
        assert_eq!(answer.text, "partly");
        let error = answer.error.expect("an error");
        assert_eq!(error, "the program ended with exit status: 3: oops");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_its_children() {
        // The grandchild holds the pipe, so reading ends only when the whole group is killed.
        let fields = "timeout: 1000, command: [sh, -c, 'sleep 600 & sleep 600']";
        let answer = ask(fields, Prompt::single("x")).await.expect("an answer");
        assert_eq!(
            answer.error.as_deref(),
            Some("there was no answer within 1000 ms")
        );
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_told() {
        let found = ask("command: [/no/such/program]", Prompt::single("x")).await;
        assert!(
            matches!(found, Err(AskError::Unreachable { .. })),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn a_reset_by_program_is_checked() {
        let with = |program: &str| {
            driver(&format!(
                "command: [cat], reset_command: [sh, -c, '{program}']"
            ))
        };
        assert_eq!(
            with("exit 0")
                .reset(&InvocationPlace::shared("cell-1"))
                .await,
            Ok(())
        );
        let failed = with("echo no >&2; exit 1")
            .reset(&InvocationPlace::shared("cell-1"))
            .await
            .expect_err("it fails");
        assert_eq!(
            failed.to_string(),
            "the reset by sh failed: the program ended with exit status: 1: no"
        );
    }
}
