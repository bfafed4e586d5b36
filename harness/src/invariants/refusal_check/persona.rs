//! Whom an agent is told to be against its rules, and whether it is.

use std::sync::LazyLock;

use regex::Regex;

/// Names that a text gives the agent.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)
        \b[Yy]ou\ are\ (?:now\ |from\ now\ on\ )?(?:called\ |named\ )?(?P<a>[A-Z]\w{2,})
        | \b(?:llamado|llamada|namens|genannt|nommé|appelé|name\ is)\ ["“«‘']?(?P<b>[A-Z]\w{2,})
        | \b(?i:act|pretend|behave|speak|answer|respond|reply|be)\b[^.!?,\n]{0,40}?\b(?:as|called|named|being|to\ be)\ (?P<d>[A-Z]\w{2,})
        | \b(?i:act|pretend|behave|speak|answer|respond|reply|antworte)\b[^.!?\n]{0,30}?\b(?:as|als|to\ be)\ ["“«„‘'](?P<c>[^"”»“’'\n]{3,40})["”»“’']
        "#,
    )
    .expect("a constant pattern")
});

/// The names, in lower case, that a text against the rules gives the agent.
pub(super) fn personas(text: &str) -> Vec<String> {
    let named = NAMED.captures_iter(text);
    named
        .filter_map(|found| {
            found
                .name("a")
                .or(found.name("b"))
                .or(found.name("c"))
                .or(found.name("d"))
        })
        .map(|name| name.as_str().to_lowercase())
        .collect()
}

/// Whether a sentence in lower case, which denies nothing, is spoken by who bears the name.
pub(super) fn is_spoken_by(name: &str, sentence: &str) -> bool {
    let said = sentence.trim_start_matches(|c: char| !c.is_alphanumeric());
    if sentence.starts_with('*') && said.starts_with(name) {
        return true;
    }
    let opens = said.strip_prefix(name).is_some_and(|rest| {
        let rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != ':');
        [
            ":",
            "here",
            "online",
            "at your",
            "speaking",
            "meldet sich",
            "hier",
            "al habla",
            "à l",
            "ici",
            "says",
        ]
        .iter()
        .any(|behind| rest.starts_with(behind))
    });
    opens
        || [
            "i am ",
            "i'm ",
            "i am now ",
            "i'm now ",
            "my name is ",
            "call me ",
            "this is ",
            "ich bin ",
            "je suis ",
            "soy ",
        ]
        .iter()
        .any(|before| sentence.contains(&format!("{before}{name}")))
}
