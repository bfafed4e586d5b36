//! The display name of an agent in a run, without secrets.

use squall_journal::redact::Redactor;

use super::settings::{Agent, Way};

/// The type and an address or a command: an origin without path and query, a command with its arguments, a Python
/// target, a model. Values of arguments that are named like a key are removed.
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

/// Arguments such as `--api-key X`, `--api-key=X` and `API_KEY=X` keep only their names, also in the command of a
/// shell.
fn command(words: &[String]) -> String {
    let redactor = Redactor::default();
    let is_secret = |name: &str| {
        let written = format!("/?{}=value", name.trim_start_matches('-'));
        let mut url = written.clone();
        redactor.url(&mut url, usize::MAX);
        url != written
    };
    let mut hides_next = false;
    let mut shown = Vec::new();
    for word in words {
        if std::mem::take(&mut hides_next) {
            shown.push("REDACTED".to_owned());
            continue;
        }
        // The command of a shell is a word that has words in it.
        for part in word.split(' ') {
            let hides = std::mem::take(&mut hides_next);
            hides_next = part.starts_with('-') && !part.contains('=') && is_secret(part);
            shown.push(match part.split_once('=') {
                _ if hides => "REDACTED".to_owned(),
                Some((name, _)) if is_secret(name) => format!("{name}=REDACTED"),
                Some(_) | None => part.to_owned(),
            });
        }
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
        for (written, expected) in [
            ("python3 agent.py --fast", "python3 agent.py --fast"),
            ("python3 --token=secret", "python3 --token=REDACTED"),
            ("agent --api-key secret x", "agent --api-key REDACTED x"),
            (
                "env API_KEY=secret agent -v",
                "env API_KEY=REDACTED agent -v",
            ),
        ] {
            let words: Vec<_> = written.split(' ').map(str::to_owned).collect();
            assert_eq!(command(&words), expected);
        }
        let shell = [
            "sh",
            "-c",
            "agent --api-key secret x",
            "--token",
            "a secret",
        ];
        assert_eq!(
            command(&shell.map(str::to_owned)),
            "sh -c agent --api-key REDACTED x --token REDACTED"
        );
    }
}
