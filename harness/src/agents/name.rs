//! The display name of an agent in a run, without secrets.

use squall_journal::redact::Redactor;

use super::settings::{Agent, Way};

/// The type and an address or a command: an origin without path and query, a command without the values of its
/// options, a Python target, a model.
pub fn agent_name(agent: &Agent) -> String {
    let what = match &agent.way {
        Way::Http(http) => origin(&http.endpoint).to_owned(),
        Way::Command(words) => command(words),
        Way::Python { target, .. } => target.clone(),
        Way::OpenAi(chat) => format!("{} at {}", chat.model, origin(&chat.endpoint)),
    };
    let started = agent.start.as_ref();
    let started = started.map(|start| format!(", started by {}", command(&start.command)));
    format!(
        "{} {what}{}",
        agent.way.as_str(),
        started.unwrap_or_default()
    )
}

/// A command, with `…` for the values of options and variables, which may hold a secret.
fn command(words: &[String]) -> String {
    let mut text = without_values(words.iter().map(String::as_str));
    Redactor::default().text(&mut text, usize::MAX);
    text
}

/// The words: `…` after an option, and for what follows a `=`. The command of a shell is split at spaces, unless it has
/// quotes.
fn without_values<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let (mut shown, mut option) = (Vec::new(), "");
    for word in words {
        let is_value = !option.is_empty() && !word.starts_with('-');
        let is_line = matches!(option, "-c" | "-lc")
            && word.contains(' ')
            && !word.contains(['"', '\'', '\\']);
        shown.push(match word.split_once('=') {
            _ if is_value && is_line => without_values(word.split_whitespace()),
            _ if is_value => "…".to_owned(),
            Some((name, _)) => format!("{name}=…"),
            None => word.to_owned(),
        });
        let is_option = word.starts_with('-') && !word.contains('=');
        option = if is_option { word } else { "" };
    }
    shown.join(" ")
}

/// Host and port of a URL, without credentials.
fn origin(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_a_name_without_secrets() {
        for (url, expected) in [
            ("http://agent.test:8000/ask?key=secret", "agent.test:8000"),
            ("https://user:secret@agent.test/secret#x", "agent.test"),
            ("http://[::1]:8000", "[::1]:8000"),
        ] {
            assert_eq!(origin(url), expected, "{url}");
        }
        for (words, expected) in [
            (&["python3", "agent.py", "x"][..], "python3 agent.py x"),
            (
                &[
                    "agent.py",
                    "--token=a secret",
                    "--fast",
                    "--model",
                    "gpt-4",
                    "x",
                ],
                "agent.py --token=… --fast --model … x",
            ),
            (
                &["agent", "--api-key", "a secret", "-v"],
                "agent --api-key … -v",
            ),
            (&["env", "API_KEY=secret", "agent"], "env API_KEY=… agent"),
            (
                &[
                    "sh",
                    "-c",
                    "A=secret agent.py --token secret x",
                    "-n",
                    "a secret",
                ],
                "sh -c A=… agent.py --token … x -n …",
            ),
            (&["sh", "-c", "agent.py --token 'a secret'"], "sh -c …"),
            (&["agent", "-c", "secret"], "agent -c …"),
            (
                &["agent", "sk-proj-Zq3vT9xLm2RbK7wYc5NdJ8fH"],
                "agent REDACTED",
            ),
        ] {
            let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(command(&words), expected);
        }
    }
}
