//! Runs a program that judges: input on stdin, verdict on stdout.

use super::{Answered, NoReply, OutsideReply, Question};
use crate::agents::program::{self, NotEnded};

/// It runs with Squall's own environment, without the agent's proxy variables. After its time-out it is killed with
/// all its descendants.
pub(super) async fn ask(question: Question) -> Vec<Answered> {
    let Question::Program {
        command,
        input,
        within,
    } = &question
    else {
        return Vec::new();
    };
    let reply = match program::run(command, &[], input, *within).await {
        Ok(ended) if ended.too_long => Err("the program says more than 8 MiB".to_owned()),
        Ok(ended) if !ended.status.success() => Err(ended.why()),
        Ok(ended) => Ok(OutsideReply::Text(ended.stdout_text)),
        Err(NotEnded::NotStarted(error)) => {
            let name = command.first().map_or("", String::as_str);
            Err(format!(
                "the program `{name}` could not be started: {error}"
            ))
        }
        Err(NotEnded::TooSlow) => {
            let within = within.as_millis();
            Err(format!(
                "the program said nothing within {within} ms, and was ended"
            ))
        }
        Err(NotEnded::Broken(error)) => {
            Err(format!("the program could not be listened to: {error}"))
        }
    };
    vec![(question, reply.map_err(NoReply::useless))]
}
