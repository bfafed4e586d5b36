//! What a run calls its agent: enough to know it by, and nothing that might be a secret.

use squall_harness::suite::agent::Way;

/// The type and where the agent is or what it is: an origin without path and query, the name of a program
/// without its arguments, a Python target, a model. Variables in the rest may stand for secrets.
pub(crate) fn agent_name(way: &Way) -> String {
    let what = match way {
        Way::Http(agent) => origin(&agent.endpoint).to_owned(),
        Way::Command(words) => words.first().cloned().unwrap_or_default(),
        Way::Python { target, .. } => target.clone(),
        Way::OpenAi(agent) => format!("{} at {}", agent.model, origin(&agent.endpoint)),
    };
    format!("{} {what}", way.as_str())
}

/// Host and port of a URL, without who asks.
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
        let words = vec!["python3".to_owned(), "--token=secret".to_owned()];
        assert_eq!(agent_name(&Way::Command(words)), "command python3");
    }
}
