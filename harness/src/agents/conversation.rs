//! Holds a conversation with an agent: sends the turns of a prompt, with faults of the conversation.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use squall_dialects::tokens::{self, Counting};
use squall_documents::{Fields, named};
use squall_profiles::faults::model_input::filler;

use super::{AskError, Driver, Invocation};
use crate::answer::{AgentAnswer, AnsweredTurn};
use crate::count::count;

/// Most tokens of one turn of filler.
const FILLER_TURN: u64 = 4000;

/// One turn of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct PromptTurn<'a> {
    /// Its text.
    pub text: &'a str,
    /// The turns before it.
    pub before: &'a [AnsweredTurn],
    /// Duration of the turns before it, which counts towards the time-out.
    pub elapsed: Duration,
    /// Whether the conversation has or may have other turns.
    pub is_one_of_several: bool,
}

named! {
    /// How a conversation goes wrong.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ConversationFaultMode {
        /// The agent is reset after the turn.
        Reset = "reset",
        /// The turn is sent again after it was answered.
        RepeatTurn = "repeat_turn",
        /// The turn and the next one are sent at the same time.
        ConcurrentTurns = "concurrent_turns",
        /// Turns of filler precede the last turn.
        FillContext = "fill_context",
    }
}

impl ConversationFaultMode {
    /// What to change in an agent that it breaks.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::Reset => {
                "Keep what must outlast a session outside of it, or answer that earlier turns are not known."
            }
            Self::RepeatTurn => "Recognise a turn that arrives twice, and do nothing twice.",
            Self::ConcurrentTurns => "Answer the turns of one conversation one after the other.",
            Self::FillContext => {
                "Keep the facts of early turns when the context is full: summarise them before they are cut."
            }
        }
    }
}

/// A fault of the conversation with an agent. Squall injects it itself, not the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationFault {
    mode: ConversationFaultMode,
    /// The turn, from 1.
    turn: usize,
    /// The size of the conversation that filler is added to reach.
    context_tokens: u64,
}

impl ConversationFault {
    /// Reads one fault.
    pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let about = "How the conversation goes wrong.";
        let mode = fields.word("mode", about, "mode", ConversationFaultMode::NAMES);
        fields.require("mode", "how the conversation goes wrong");
        let about = "The turn, from 1; default 1. Not of `fill_context`.";
        let turn = fields.whole("turn", about, 1..=1000, "");
        let about = "`fill_context`: tokens of the whole conversation.";
        let tokens = fields.whole("context_tokens", about, 1..=2_000_000, " tokens");
        let mode = mode?;
        let is_filler = mode == ConversationFaultMode::FillContext;
        if is_filler && !fields.has("context_tokens") {
            fields.missing("context_tokens", "the model's context limit in tokens");
            return None;
        }
        for (name, is_read) in [("turn", !is_filler), ("context_tokens", is_filler)] {
            if fields.has(name) && !is_read {
                let message = format!("`{}` has no `{name}`; leave it out", mode.as_str());
                fields.error(name, message);
            }
        }
        Some(Self {
            mode,
            turn: turn
                .and_then(|turn| usize::try_from(turn).ok())
                .unwrap_or(1),
            context_tokens: tokens.unwrap_or_default(),
        })
    }

    /// One line for reports.
    pub(crate) fn line(&self) -> String {
        let mode = self.mode.as_str();
        match self.mode {
            ConversationFaultMode::FillContext => {
                format!("{FAMILY}: {mode} context_tokens: {}", self.context_tokens)
            }
            ConversationFaultMode::Reset
            | ConversationFaultMode::RepeatTurn
            | ConversationFaultMode::ConcurrentTurns => {
                format!("{FAMILY}: {mode} turn: {}", self.turn)
            }
        }
    }

    /// Why it cannot be applied to a conversation with so many turns.
    fn impossible(&self, turns: usize, agent: ConversationSupport) -> Option<String> {
        let needed = match self.mode {
            ConversationFaultMode::FillContext => return None,
            ConversationFaultMode::Reset
            | ConversationFaultMode::RepeatTurn
            | ConversationFaultMode::ConcurrentTurns
                if agent.keeps_nothing =>
            {
                let wanted = "an agent of type `openai` keeps no conversation, because each request has all turns: \
                              write `mode: fill_context`, or a type that sends one turn";
                return Some(wanted.to_owned());
            }
            ConversationFaultMode::Reset if !agent.resets => {
                let wanted = "the agent has no reset: write `agent.reset_endpoint`, \
                              `agent.reset_command` or `agent.reset_function`";
                return Some(wanted.to_owned());
            }
            ConversationFaultMode::ConcurrentTurns if !agent.concurrent => {
                let wanted = "an agent of type `python` or `langchain` gets one call at a time: \
                              serve it over HTTP";
                return Some(wanted.to_owned());
            }
            ConversationFaultMode::Reset | ConversationFaultMode::ConcurrentTurns => self.turn + 1,
            ConversationFaultMode::RepeatTurn => self.turn,
        };
        (turns < needed).then(|| {
            format!(
                "the prompt has {}, needed are {needed}: write `golden_prompts: [[first turn, second turn]]`",
                count(turns as u64, "turn")
            )
        })
    }
}

/// What these faults hit, in reports.
pub(crate) const PLACE: &str = "the conversation";

/// The family of these faults in suites and reports.
pub(crate) const FAMILY: &str = "conversation_faults";

/// What an agent supports.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConversationSupport {
    /// It can be reset.
    pub(crate) resets: bool,
    /// It answers several calls at the same time.
    pub(crate) concurrent: bool,
    /// It gets all turns with each request.
    pub(crate) keeps_nothing: bool,
}

/// The faults of a conversation that were applied.
#[derive(Debug, Default)]
pub(crate) struct ConversationTally {
    pub(crate) applied: Vec<ConversationFaultMode>,
    /// Why others were not.
    pub(crate) not_applied: Vec<String>,
}

/// A part of a conversation, between two points where another conversation may go on.
#[derive(Debug, PartialEq, Eq)]
enum ConversationStep {
    /// Sends these turns at the same time, usually one, which applies these faults.
    Send(Vec<String>, Vec<ConversationFaultMode>),
    Reset,
    /// Adds filler up to so many tokens.
    Fill(u64),
}

/// A conversation in progress.
pub(crate) struct Conversing<'a, D: ?Sized> {
    driver: &'a D,
    invocation: &'a Invocation,
    steps: VecDeque<ConversationStep>,
    is_one_of_several: bool,
    since: Instant,
    /// The last answer, or the first that failed.
    pub(crate) answer: AgentAnswer,
    pub(crate) tally: ConversationTally,
}

impl<'a, D: Driver + ?Sized> Conversing<'a, D> {
    /// Nothing is sent yet.
    pub(crate) fn new(
        driver: &'a D,
        invocation: &'a Invocation,
        faults: &[ConversationFault],
        agent: ConversationSupport,
        is_one_of_several: bool,
    ) -> Self {
        let turns = invocation.prompt.turns();
        let (steps, not_applied) = steps(turns, faults, agent);
        Self {
            driver,
            invocation,
            steps,
            is_one_of_several: is_one_of_several || turns.len() > 1 || !faults.is_empty(),
            since: Instant::now(),
            answer: AgentAnswer::default(),
            tally: ConversationTally {
                applied: Vec::new(),
                not_applied,
            },
        }
    }

    /// Takes the next step. `false`: the conversation is over.
    pub(crate) async fn step(&mut self) -> Result<bool, AskError> {
        match self.steps.pop_front() {
            Some(ConversationStep::Send(texts, faults)) => {
                self.send(&texts, false).await?;
                self.tally.applied.extend(faults);
            }
            Some(ConversationStep::Reset) => {
                let reset = self.driver.reset(&self.invocation.place).await;
                reset.map_err(|error| AskError::NotReset(error.to_string()))?;
                self.tally.applied.push(ConversationFaultMode::Reset);
            }
            Some(ConversationStep::Fill(tokens)) => self.fill(tokens).await?,
            None => {}
        }
        let is_over = self.answer.error.is_some() || self.steps.is_empty();
        Ok(!is_over)
    }

    async fn send(&mut self, texts: &[String], is_filler: bool) -> Result<(), AskError> {
        let at = self.since.elapsed();
        let AgentAnswer { turns, latency, .. } = &self.answer;
        let turn = |text| PromptTurn {
            text,
            before: turns,
            elapsed: *latency,
            is_one_of_several: self.is_one_of_several,
        };
        let asked = texts.iter().map(|text| {
            let turn = turn(text.as_str());
            self.driver.turn(self.invocation, turn)
        });
        let answers = try_join_all(asked).await?;
        let longest = answers.iter().map(|answer| answer.latency).max();
        let latency = *latency + longest.unwrap_or_default();
        let mut turns = std::mem::take(&mut self.answer.turns);
        let answered = texts.iter().zip(&answers);
        turns.extend(answered.map(|(text, answer)| AnsweredTurn {
            text: text.clone(),
            answer: answer.text.clone(),
            at,
            is_filler,
        }));
        let failed = answers.iter().position(|answer| answer.error.is_some());
        let decisive = failed.unwrap_or(answers.len().saturating_sub(1));
        self.answer = AgentAnswer {
            latency,
            turns,
            ..answers.into_iter().nth(decisive).unwrap_or_default()
        };
        Ok(())
    }

    async fn fill(&mut self, tokens: u64) -> Result<(), AskError> {
        let estimate = |text: &String| tokens::count(Counting::Estimate, text);
        let rest = self.steps.iter().map(|step| match step {
            ConversationStep::Send(texts, _) => texts.iter().map(estimate).sum(),
            ConversationStep::Reset | ConversationStep::Fill(_) => 0,
        });
        let rest: u64 = rest.sum();
        let of = |turn: &AnsweredTurn| estimate(&turn.text) + estimate(&turn.answer);
        let mut used = rest + self.answer.turns.iter().map(of).sum::<u64>();
        if used >= tokens {
            let why = format!(
                "the conversation has about {used} tokens by itself: write a greater `context_tokens` than {tokens}"
            );
            self.tally.not_applied.push(why);
        } else {
            self.tally.applied.push(ConversationFaultMode::FillContext);
        }
        while used < tokens && self.answer.error.is_none() {
            let text = filler::of((tokens - used).min(FILLER_TURN));
            self.send(&[text], true).await?;
            used += self.answer.turns.last().map_or(0, of);
        }
        Ok(())
    }
}

/// Sends all turns of a prompt.
pub(super) async fn converse<D: Driver + ?Sized>(
    driver: &D,
    invocation: &Invocation,
) -> Result<AgentAnswer, AskError> {
    let agent = ConversationSupport::default();
    let mut conversing = Conversing::new(driver, invocation, &[], agent, false);
    while conversing.step().await? {}
    Ok(conversing.answer)
}

/// The steps of a conversation, and why some faults cannot be applied.
fn steps(
    turns: &[String],
    faults: &[ConversationFault],
    agent: ConversationSupport,
) -> (VecDeque<ConversationStep>, Vec<String>) {
    let checked = faults
        .iter()
        .map(|fault| (fault, fault.impossible(turns.len(), agent)));
    let (possible, others): (Vec<_>, Vec<_>) = checked.partition(|(_, why)| why.is_none());
    let possible: Vec<_> = possible.into_iter().map(|(fault, _)| fault).collect();
    let not_applied = others.into_iter().filter_map(|(_, why)| why);
    let mut not_applied: Vec<_> = not_applied.collect();
    let has = |mode, place| {
        let mut possible = possible.iter();
        possible.any(|fault| fault.mode == mode && fault.turn == place + 1)
    };
    let mut steps = VecDeque::new();
    let mut first = 0;
    while first < turns.len() {
        let mut last = first;
        while has(ConversationFaultMode::ConcurrentTurns, last) {
            last += 1;
        }
        if last + 1 == turns.len() {
            let fills = possible.iter();
            let fills = fills.filter(|fault| fault.mode == ConversationFaultMode::FillContext);
            steps.extend(fills.map(|fault| ConversationStep::Fill(fault.context_tokens)));
        }
        let concurrent = vec![ConversationFaultMode::ConcurrentTurns; last - first];
        steps.push_back(ConversationStep::Send(
            turns[first..=last].to_vec(),
            concurrent,
        ));
        let again = (first..=last).filter(|at| has(ConversationFaultMode::RepeatTurn, *at));
        steps.extend(again.map(|at| {
            ConversationStep::Send(
                vec![turns[at].clone()],
                vec![ConversationFaultMode::RepeatTurn],
            )
        }));
        if let Some(at) = (first..=last).find(|at| has(ConversationFaultMode::Reset, *at)) {
            if last + 1 < turns.len() {
                steps.push_back(ConversationStep::Reset);
            } else {
                not_applied.push(format!(
                    "`reset` at turn {} has no turn after it, because `concurrent_turns` sends the last turn together \
                     with it: write a prompt with one more turn",
                    at + 1
                ));
            }
        }
        first = last + 1;
    }
    (steps, not_applied)
}

#[cfg(test)]
mod tests {
    use squall_documents::{DocumentReader, SourceText};

    use super::*;

    fn faults(written: &str) -> Vec<ConversationFault> {
        let tree = squall_documents::parse("faults", written).expect("valid");
        let mut reader = DocumentReader::new(SourceText::new("faults", written));
        let faults = reader.read(&tree, |value| {
            value.list("faults", |value| {
                value.fields("a fault", ConversationFault::read)
            })
        });
        reader.finish(faults).expect("valid").0
    }

    #[test]
    #[rustfmt::skip]
    fn each_fault_changes_the_steps_or_says_what_it_needs() {
        let all = ConversationSupport { resets: true, concurrent: true, keeps_nothing: false };
        let stateless = ConversationSupport { keeps_nothing: true, ..all };
        let none = ConversationSupport::default();
        for (written, turns, agent, expected, needs) in [
            ("[{mode: reset}]", 3, all, "a|reset|b|c", ""),
            ("[{mode: reset, turn: 2}]", 3, all, "a|b|reset|c", ""),
            ("[{mode: reset}]", 2, none, "a|b", "agent.reset_endpoint"),
            ("[{mode: reset}]", 1, all, "a", "the prompt has 1 turn, needed are 2"),
            ("[{mode: repeat_turn}]", 2, all, "a|a|b", ""),
            ("[{mode: repeat_turn, turn: 2}]", 1, all, "a", "needed are 2"),
            ("[{mode: concurrent_turns}]", 3, all, "a+b|c", ""),
            ("[{mode: concurrent_turns, turn: 2}]", 3, all, "a|b+c", ""),
            ("[{mode: concurrent_turns}, {mode: concurrent_turns, turn: 2}]", 3, all, "a+b+c", ""),
            ("[{mode: concurrent_turns}]", 1, all, "a", "needed are 2"),
            ("[{mode: concurrent_turns}]", 2, none, "a|b", "over HTTP"),
            ("[{mode: reset, turn: 2}, {mode: concurrent_turns, turn: 2}]", 3, all, "a|b+c", "`reset` at turn 2"),
            ("[{mode: reset}, {mode: concurrent_turns}]", 3, all, "a+b|reset|c", ""),
            ("[{mode: reset}]", 2, stateless, "a|b", "type `openai`"),
            ("[{mode: repeat_turn}]", 2, stateless, "a|b", "type `openai`"),
            ("[{mode: concurrent_turns}]", 2, stateless, "a|b", "type `openai`"),
            ("[{mode: fill_context, context_tokens: 9}]", 2, stateless, "a|fill 9|b", ""),
            ("[{mode: fill_context, context_tokens: 9}]", 2, none, "a|fill 9|b", ""),
            ("[{mode: fill_context, context_tokens: 9}]", 1, none, "fill 9|a", ""),
            ("[{mode: repeat_turn}, {mode: reset}, {mode: concurrent_turns, turn: 2}]", 3, all, "a|a|reset|b+c", ""),
        ] {
            let texts = ["a", "b", "c"].map(str::to_owned);
            let (steps, why) = steps(&texts[..turns], &faults(written), agent);
            let steps = steps.iter().map(|step| match step {
                ConversationStep::Send(texts, _) => texts.join("+"),
                ConversationStep::Reset => "reset".to_owned(),
                ConversationStep::Fill(tokens) => format!("fill {tokens}"),
            });
            assert_eq!(steps.collect::<Vec<_>>().join("|"), expected, "{written}");
            let why = why.join("; ");
            assert!(why.contains(needs) && why.is_empty() == needs.is_empty(), "{written}: {why}");
        }
    }
}
