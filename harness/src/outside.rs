//! What invariants want to know before they judge: what a model or a program says.
//!
//! Judging stays pure. An invariant names its [`Question`]s, all of a scenario's are asked at once, each only
//! once in a run however many cells want to know it, and the invariant judges with the replies at hand:
//!
//! ```text
//! subjects ─▶ questions ─▶ Outside::answer (sockets, programs) ─▶ Told ─▶ judge
//! ```

mod embeddings;
mod program;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use crate::dial::Dialler;
use crate::model::{ModelClient, ModelError, Wish};
use crate::reach::Pending;
use crate::suite::{Embeddings, Model, Suite};

/// Questions that are asked at the same time.
const AT_ONCE: usize = 8;

/// Most tokens of a model's reply: a score and a sentence, and room to think for models that do.
const MOST_TOKENS: u32 = 2048;

/// Something that an invariant wants to know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Question {
    /// What the suite's model says to this, at temperature 0.
    Model {
        /// What it is to do.
        system: String,
        /// What it is to do it to.
        prompt: String,
    },
    /// Where a text lies among others by what it means.
    Embedding(String),
    /// What a program says.
    Program {
        /// Its name and its arguments.
        command: Vec<String>,
        /// What it reads.
        input: String,
        /// How long it may take.
        within: Duration,
    },
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    /// What a model or a program says.
    Text(String),
    /// An embedding.
    Vector(Vec<f32>),
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Nobody is there, or who is there refuses.
    Absent(String),
    /// What came is of no use.
    Useless(String),
}

impl Silence {
    fn why(&self) -> &str {
        match self {
            Self::Absent(why) | Self::Useless(why) => why,
        }
    }
}

impl From<ModelError> for Silence {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Unreachable { .. } | ModelError::Refused { .. } => {
                Self::Absent(error.to_string())
            }
            ModelError::Unread { .. } => Self::Useless(error.to_string()),
        }
    }
}

/// Every reply of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    embeds: bool,
    replies: HashMap<Question, Result<Reply, Silence>>,
}

impl Told {
    /// Nothing was asked yet; whether texts are compared by embeddings is known.
    pub(crate) fn nothing(outside: &Outside<'_>) -> Self {
        Self {
            embeds: outside.embeddings.is_some(),
            replies: HashMap::new(),
        }
    }

    /// These too.
    pub(crate) fn and(&mut self, others: Self) {
        self.replies.extend(others.replies);
    }

    /// Whether somebody was asked this, whatever came back.
    pub(crate) fn knows(&self, question: &Question) -> bool {
        self.replies.contains_key(question)
    }

    /// Whether texts are compared by embeddings.
    pub(crate) fn embeds(&self) -> bool {
        self.embeds
    }

    /// What a model or a program said, or why it said nothing.
    pub(crate) fn text(&self, question: &Question) -> Result<&str, &str> {
        match self.reply(question)? {
            Reply::Text(text) => Ok(text),
            Reply::Vector(_) => Err("the reply is no text"),
        }
    }

    /// The embedding of a text, or why there is none.
    pub(crate) fn vector(&self, text: &str) -> Result<&[f32], &str> {
        match self.reply(&Question::Embedding(text.to_owned()))? {
            Reply::Vector(vector) => Ok(vector),
            Reply::Text(_) => Err("the reply is no embedding"),
        }
    }

    fn reply(&self, question: &Question) -> Result<&Reply, &str> {
        match self.replies.get(question) {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(silence)) => Err(silence.why()),
            None => Err("nobody was asked"),
        }
    }

    /// Why nothing could be learnt from the model, or of embeddings: nobody was there or all was refused, whatever
    /// was asked. `None`: somebody answered, or nobody was asked.
    pub(crate) fn absent(&self) -> Option<&str> {
        let of_model = |question: &Question| matches!(question, Question::Model { .. });
        let of_embeddings = |question: &Question| matches!(question, Question::Embedding(_));
        self.always_absent(of_model)
            .or_else(|| self.always_absent(of_embeddings))
    }

    fn always_absent(&self, among: impl Fn(&Question) -> bool) -> Option<&str> {
        let asked = self.replies.iter().filter(|(question, _)| among(question));
        let absent = asked.map(|(_, reply)| match reply {
            Err(Silence::Absent(why)) => Some(why.as_str()),
            Ok(_) | Err(Silence::Useless(_)) => None,
        });
        // Whichever comes first by its words: a map has no order.
        absent.collect::<Option<Vec<_>>>()?.into_iter().min()
    }
}

/// Whom a suite's invariants may ask.
#[derive(Debug, Clone, Default)]
pub struct Outside<'a> {
    model: Option<&'a Model>,
    embeddings: Option<&'a Embeddings>,
    /// Whom they dial by.
    dialler: Dialler,
}

impl<'a> Outside<'a> {
    /// What a suite names.
    pub fn of(suite: &'a Suite) -> Self {
        Self {
            model: suite.model.as_ref(),
            embeddings: suite.embeddings.as_ref(),
            ..Self::default()
        }
    }

    /// The same, dialling by this.
    #[must_use]
    pub fn through(self, dialler: Dialler) -> Self {
        Self { dialler, ..self }
    }

    /// Asks everything, in whatever order; what nobody answers is told as such.
    pub(crate) async fn answer(&self, questions: BTreeSet<Question>) -> Told {
        let mut told = Told::nothing(self);
        if questions.is_empty() {
            return told;
        }
        let model = self
            .model
            .map(|model| ModelClient::new(model, &self.dialler));
        let (mut invocations, mut texts): (Vec<Pending<'_, Vec<Asked>>>, Vec<String>) =
            Default::default();
        for question in questions {
            match question {
                Question::Embedding(text) => texts.push(text),
                question @ Question::Model { .. } => {
                    invocations.push(Box::pin(ask_model(model.as_ref(), question)));
                }
                question @ Question::Program { .. } => {
                    invocations.push(Box::pin(program::ask(question)));
                }
            }
        }
        if let Some(endpoint) = self.embeddings {
            for some in texts.chunks(embeddings::AT_A_TIME) {
                invocations.push(Box::pin(embeddings::ask(
                    endpoint,
                    &self.dialler,
                    some.to_vec(),
                )));
            }
        }
        let mut replies = stream::iter(invocations).buffer_unordered(AT_ONCE);
        while let Some(some) = replies.next().await {
            told.replies.extend(some);
        }
        drop(replies);
        told
    }
}

type Asked = (Question, Result<Reply, Silence>);

async fn ask_model(model: Option<&ModelClient>, question: Question) -> Vec<Asked> {
    let Question::Model { system, prompt } = &question else {
        return Vec::new();
    };
    let reply = match model {
        None => Err(Silence::Useless(
            "the suite names no model; write `model: {provider: …, name: …}`".to_owned(),
        )),
        Some(model) => {
            let wish = Wish {
                system,
                prompt,
                temperature: 0.0,
                most_tokens: MOST_TOKENS,
                json: true,
            };
            let said = model.ask(&wish).await;
            said.map(Reply::Text).map_err(Silence::from)
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
        let told = Outside::of(&suite).answer([question].into()).await;
        told.absent().map(str::to_owned)
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
