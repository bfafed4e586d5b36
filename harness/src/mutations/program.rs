//! Mutants that a program of the suite writes.

use serde_json::{Value, json};

use super::{LONGEST, MutationProgram};
use crate::agents::program::{self, NotEnded};
use crate::prompt::Prompt;

/// The mutants that a program writes: texts, or lists of turns.
pub(super) async fn write(
    program: &MutationProgram,
    kind: &str,
    prompt: &Prompt,
    seed: u64,
    many: usize,
) -> Result<Vec<Prompt>, String> {
    let input =
        json!({ "type": kind, "prompt": prompt.turns(), "count": many, "seed": seed }).to_string();
    let ran = program::run(&program.command, &[], &input, program.within);
    let output = match ran.await {
        Ok(ended) if ended.too_long => {
            return Err("the program writes more than 8 MiB".to_owned());
        }
        Ok(ended) if !ended.status.success() => return Err(ended.why()),
        Ok(ended) => ended.stdout_text,
        Err(NotEnded::NotStarted(error)) => {
            return Err(format!(
                "`{}` could not be started: {error}",
                program.command[0]
            ));
        }
        Err(NotEnded::TooSlow) => {
            let within = program.within.as_millis();
            return Err(format!(
                "the program wrote nothing within {within} ms, and was ended"
            ));
        }
        Err(NotEnded::Broken(error)) => return Err(error.to_string()),
    };
    let wrong =
        "the program must print a JSON list of texts, or of lists of turns, and nothing else";
    let mutants: Vec<Value> =
        serde_json::from_str(&output).map_err(|error| format!("{wrong} ({error})"))?;
    let mutants = mutants.into_iter().zip(1..).map(|(mutant, number)| {
        let turns = match mutant {
            Value::String(text) => vec![text],
            turns => serde_json::from_value(turns).unwrap_or_default(),
        };
        let is_valid = turns
            .iter()
            .all(|turn| !turn.trim().is_empty() && turn.len() <= LONGEST);
        let mutant = Prompt::conversation(turns).filter(|_| is_valid);
        let expected = "a text that is not empty, of at most 64 KiB, or a list of such turns";
        mutant.ok_or_else(|| format!("{wrong}; entry {number} must be {expected}"))
    });
    mutants.collect()
}
