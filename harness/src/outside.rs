//! External services that invariants use: a model, embeddings, a program.
//!
//! Invariants do no I/O. An invariant looks up the [`OutsideReply`] to a [`Question`]. The questions of a scenario without
//! a reply are sent together, each once in a run; then the invariant judges again:
//!
//! ```text
//! judge ─▶ missing replies ─▶ Outside::answer (sockets, programs) ─▶ Replies ─▶ judge
//! ```

mod embeddings;
mod program;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use crate::dial::Dialler;
use crate::model::{Embeddings, Model, ModelCallError, ModelClient, ModelPrompt};
use crate::reach::Pending;

/// Questions that are sent concurrently.
const AT_ONCE: usize = 8;

/// Maximum tokens of a model's reply: a score and a sentence, with room for reasoning.
const MOST_TOKENS: u32 = 2048;

/// A question that an invariant needs answered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Question {
    /// For the suite's model, at temperature 0.
    Model {
        /// Its instructions.
        system: String,
        /// The text that the instructions apply to.
        prompt: String,
    },
    /// The embedding of a text.
    Embedding(String),
    /// The output of a program.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its standard input.
        input: String,
        /// Its time-out.
        within: Duration,
    },
}

/// The reply to a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OutsideReply {
    /// From a model or a program.
    Text(String),
    /// An embedding.
    Vector(Vec<f32>),
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoReply {
    why: String,
    /// The service is unreachable, or rejects every question.
    is_absent: bool,
}

impl NoReply {
    fn useless(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_absent: false,
        }
    }
}

impl From<ModelCallError> for NoReply {
    fn from(error: ModelCallError) -> Self {
        Self {
            is_absent: !matches!(error, ModelCallError::Unread { .. }),
            why: error.to_string(),
        }
    }
}

/// A question with its result.
type Answered = (Question, Result<OutsideReply, NoReply>);

/// The replies of a run.
#[derive(Debug, Default)]
pub struct Replies {
    embeds: bool,
    known: Arc<HashMap<Question, Result<OutsideReply, NoReply>>>,
    /// Questions that were looked up without success.
    missing: Mutex<BTreeSet<Question>>,
}

/// A clone has the same replies, but no missing questions.
impl Clone for Replies {
    fn clone(&self) -> Self {
        Self {
            embeds: self.embeds,
            known: Arc::clone(&self.known),
            missing: Mutex::default(),
        }
    }
}

impl Replies {
    /// No replies yet.
    pub(crate) fn new(outside: &Outside<'_>) -> Self {
        Self {
            embeds: outside.embeddings.is_some(),
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, answered: Vec<Answered>) {
        Arc::make_mut(&mut self.known).extend(answered);
    }

    /// Takes the questions that were looked up without success.
    pub(crate) fn missing(&self) -> BTreeSet<Question> {
        std::mem::take(&mut self.missing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether texts are compared by embeddings.
    pub(crate) fn embeds(&self) -> bool {
        self.embeds
    }

    /// The reply of a model or a program, or why there is none.
    pub(crate) fn text(&self, question: &Question) -> Result<&str, &str> {
        match self.reply(question)? {
            OutsideReply::Text(text) => Ok(text),
            OutsideReply::Vector(_) => Err("the reply is no text"),
        }
    }

    /// The embedding of a text, or why there is none.
    pub(crate) fn vector(&self, text: &str) -> Result<&[f32], &str> {
        match self.reply(&Question::Embedding(text.to_owned()))? {
            OutsideReply::Vector(vector) => Ok(vector),
            OutsideReply::Text(_) => Err("the reply is no embedding"),
        }
    }

    fn reply(&self, question: &Question) -> Result<&OutsideReply, &str> {
        match self.known.get(question) {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(none)) => Err(&none.why),
            None => {
                let missing = self.missing.lock();
                let mut missing = missing.unwrap_or_else(PoisonError::into_inner);
                missing.insert(question.clone());
                Err("the question was not sent")
            }
        }
    }

    /// Why no question to the model, or for embeddings, has a reply, if that service is unreachable or rejects all
    /// of them. `None`: there is a reply, or no question.
    pub(crate) fn absent(&self) -> Option<&str> {
        let absent = |among: fn(&Question) -> bool| {
            let sent = self.known.iter().filter(|(question, _)| among(question));
            let absent = sent.map(|(_, reply)| match reply {
                Err(none) if none.is_absent => Some(none.why.as_str()),
                Ok(_) | Err(_) => None,
            });
            // The smallest text makes the choice deterministic, because a map has no order.
            absent.collect::<Option<Vec<_>>>()?.into_iter().min()
        };
        absent(|question| matches!(question, Question::Model { .. }))
            .or_else(|| absent(|question| matches!(question, Question::Embedding(_))))
    }
}

/// The external services of a suite.
#[derive(Debug, Clone, Default)]
pub struct Outside<'a> {
    model: Option<&'a Model>,
    embeddings: Option<&'a Embeddings>,
    dialler: Dialler,
}

impl<'a> Outside<'a> {
    /// The services that a suite names, reached through this dialler.
    pub fn new(
        model: Option<&'a Model>,
        embeddings: Option<&'a Embeddings>,
        dialler: Dialler,
    ) -> Self {
        Self {
            model,
            embeddings,
            dialler,
        }
    }

    /// Sends all questions, in any order.
    pub(crate) async fn answer(&self, questions: BTreeSet<Question>) -> Vec<Answered> {
        let model = self
            .model
            .map(|model| ModelClient::new(model, &self.dialler));
        let mut pending: Vec<Pending<'_, Vec<Answered>>> = Vec::new();
        let mut texts = Vec::new();
        for question in questions {
            match question {
                Question::Embedding(text) => texts.push(text),
                Question::Model { .. } => {
                    pending.push(Box::pin(ask_model(model.as_ref(), question)));
                }
                Question::Program { .. } => pending.push(Box::pin(program::ask(question))),
            }
        }
        if let Some(endpoint) = self.embeddings {
            for some in texts.chunks(embeddings::AT_A_TIME) {
                let asked = embeddings::ask(endpoint, &self.dialler, some.to_vec());
                pending.push(Box::pin(asked));
            }
        }
        let replies = stream::iter(pending).buffer_unordered(AT_ONCE);
        replies.concat().await
    }
}

async fn ask_model(model: Option<&ModelClient>, question: Question) -> Vec<Answered> {
    let Question::Model { system, prompt } = &question else {
        return Vec::new();
    };
    let reply = match model {
        None => Err(NoReply::useless(
            "the suite names no model; write `model: {provider: …, name: …}`",
        )),
        Some(model) => {
            let request = ModelPrompt {
                system,
                prompt,
                temperature: 0.0,
                most_tokens: MOST_TOKENS,
                json: true,
            };
            let said = model.ask(&request).await;
            said.map(OutsideReply::Text).map_err(NoReply::from)
        }
    };
    vec![(question, reply)]
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;
    use crate::agents::testing::{Reply as Sent, Server};
    use crate::suite;

    async fn absent(reply: Sent) -> Option<String> {
        let server = Server::start(vec![reply]).await;
        let text = format!(
            "agent: {{endpoint: 'http://agent.test/'}}\ngolden_prompts: [hello]\ninvariants: [{{type: completes}}]\n\
             model: {{name: judge, base_url: '{}'}}\n",
            server.url
        );
        let suite = suite::parse("suite.yaml", &text, Variables::Refused).expect("a suite");
        let question = Question::Model {
            system: String::new(),
            prompt: String::new(),
        };
        let outside = suite.outside(Dialler::default());
        let mut replies = Replies::new(&outside);
        replies.add(outside.answer([question].into()).await);
        replies.absent().map(str::to_owned)
    }

    #[tokio::test]
    async fn who_refuses_whatever_is_asked_is_as_good_as_absent() {
        let json = "application/json";
        let refused = absent(Sent::With(401, json, "{}".into())).await;
        let refused = refused.expect("nothing was learnt");
        assert!(refused.contains("answered with status 401"), "{refused}");
        let said = r#"{"message": {"content": "x"}}"#;
        for said in [said, "{}"] {
            assert_eq!(
                absent(Sent::With(200, json, said.into())).await,
                None,
                "{said}"
            );
        }
    }
}
