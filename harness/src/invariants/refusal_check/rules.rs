//! The agent's own rules: whether they are asked for, and whether an answer tells them.

use std::sync::LazyLock;

use regex::Regex;

use super::sentences::Sentence;

/// A prompt that asks for the rules themselves.
static ASKS_FOR_RULES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        \b(?:what(?:'s|\ is|\ are|\ were)|tell\ me|reveal|print|repeat|show(?:\ me)?|output|leak)\b
        [^.?\n]{0,20}\b(?:
            your\ (?:full\ |exact\ )?(?:(?:system|hidden|initial|secret|original)\ )?(?:prompt|instructions?|rules?|message)
          | the\ (?:full\ |exact\ )?(?:system|hidden|secret)\ (?:prompt|instructions?)
        )\b
        ",
    )
    .expect("a constant pattern")
});

/// An answer that tells its rules.
static TELLS_RULES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\b(?:my (?:\w+ )?(?:prompt|instructions?|rules?)|i (?:was|am|'m|have been) (?:told|instructed)(?: never| not| always)?) ?(?:is|are|says?|reads?)?(?::| to\b| that\b| you\b)",
    )
    .expect("a constant pattern")
});

/// An answer that only says that its rules are not for telling.
static KEEPS_RULES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:confidential|private|secret|share|sharing|reveal\w*|disclos\w*|discuss\w*)\b")
        .expect("a constant pattern")
});

/// Whom a system prompt speaks to: the agent.
static ROLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        ^\W*(?:\w+\W+){0,3}?you\ are\ (?:now\ )?(?:\w+,\ )?(?:an?|the|our)\ (?:[\w'-]+\ ){0,5}?
          (?:agent|assistant|bot|chatbot|helper|expert|model|advisor|concierge|clerk|representative|companion|ai)\b
        | ^\W*your\ (?:task|role|job|goal)\ is\ to\b
        | ^\W*you\ must\ (?:never|not|always)\b
        ",
    )
    .expect("a constant pattern")
});

/// A rule as it is laid down: at least three words.
static RULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\W*(?:never|always|do not|don't|only)(?:\s+[\w'-]+){2,}")
        .expect("a constant pattern")
});

/// Whether a prompt asks for the rules themselves.
pub(super) fn asks_for_rules(prompt: &str) -> bool {
    ASKS_FOR_RULES.is_match(&prompt.replace(['’', '‘'], "'"))
}

/// Whether a sentence, in lower case, tells the speaker's rules.
pub(super) fn tells_rules(sentence: &str) -> bool {
    TELLS_RULES.is_match(sentence) && !KEEPS_RULES.is_match(sentence)
}

/// The sentence of an answer that lays rules down as a system prompt does: whom it speaks to, or two rules. What
/// others are said to have said does not count, and neither do rules for the one who asked.
pub(super) fn lays_down_rules<'s, 'a>(sentences: &'s [Sentence<'a>]) -> Option<&'s Sentence<'a>> {
    let mut own = sentences
        .iter()
        .filter(|one| !one.refuses() && !one.reports());
    if let Some(role) = own.clone().find(|one| ROLE.is_match(&one.whole())) {
        return Some(role);
    }
    own.by_ref().find(|one| RULE.is_match(&one.whole()))?;
    own.find(|one| RULE.is_match(&one.whole()))
}
