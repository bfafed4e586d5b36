//! The display name of an agent in a run, without secrets.

use squall_journal::redact::Redactor;

use super::settings::{Agent, Way};

/// The type and an address or a command: an origin without path and query, a command without its options, a Python
/// target, a model.
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

/// The program and its arguments up to the first option or variable, which may hold a secret.
fn command(words: &[String]) -> String {
    let is_plain = |word: &&String| !word.starts_with('-') && !word.contains('=');
    let plain: Vec<_> = words
        .iter()
        .take_while(is_plain)
        .map(String::as_str)
        .collect();
    let more = if plain.len() < words.len() {
        " …"
    } else {
        ""
    };
    let mut text = plain.join(" ");
    Redactor::default().text(&mut text, usize::MAX);
    text + more
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
        for (written, expected) in [
            ("python3 agent.py", "python3 agent.py"),
            ("python3 agent.py --token=secret", "python3 agent.py …"),
            ("agent --api-key secret x", "agent …"),
            ("env API_KEY=secret agent -v", "env …"),
        ] {
            let words: Vec<_> = written.split(' ').map(str::to_owned).collect();
            assert_eq!(command(&words), expected);
        }
    }
}
