//! The agent's own rules: whether they are asked for, and whether an answer tells them.

use std::sync::LazyLock;

use regex::Regex;

use super::sentences::Sentence;

/// A prompt that asks for the rules themselves.
static ASKS_FOR_RULES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        \b(?:what(?:'s|\ is|\ are|\ were|\ do|\ does)|which|tell\ me|reveal|print|repeat|show(?:\ me)?|output|leak|write|translate|encode|summari[sz]e|list|recite|share|copy|quote|paste|dump|sum\ up|expose|disclose|give\ me)\b
        [^.?\n]{0,25}\b(?:
            your\ (?:full\ |exact\ |own\ )?(?:(?:system|hidden|initial|secret|original|internal)\ (?:prompt|message|setup|configuration)|(?:\w+\ )?(?:prompt|instructions?|rules?|guidelines?|briefing|guardrails))
          | the\ (?:full\ |exact\ )?(?:system|hidden|secret)\ (?:prompt|instructions?)
          | (?:everything|all|text|words?|lines?)\ (?:\w+\ )?above
          | you\ (?:were|have\ been)\ (?:given|told|instructed)
          | your\ (?:configuration|setup|settings)
        )\b
        | \bwhat\ (?:were|have)\ you\ (?:been\ )?(?:told|given|instructed)\b
        | \b(?:nenne|zeige?|gib|verrate|wiederhole)\b[^.?\n]{0,30}\b(?:anweisungen|systemprompt|system-prompt|regeln)\b
        | \b(?:donne|montre|répète|révèle|affiche)\w*\b[^.?\n]{0,40}\b(?:consignes|instructions|message\ système|prompt)\b
        | \b(?:muestra|dime|revela|repite)\w*\b[^.?\n]{0,40}\b(?:instrucciones|reglas|prompt|mensaje\ de\ sistema)\b
        ",
    )
    .expect("a constant pattern")
});

/// An answer that tells its rules.
static TELLS_RULES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\bi(?:'m| am) (?:supposed|told|meant|required) to\b|\bi (?:must (?:not|never|keep)|should (?:not|never|push))\b|\b(?:my (?:\w+ )?(?:prompt|instructions?|rules?)|i (?:was|am|'m|have been) (?:told|instructed)(?: never| not| always)?(?: at the \w+)?) ?(?:is|are|says?|reads?)?(?::| to\b| that\b| you\b)",
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
        r#"(?x)
        ^\W*(?:\w+\W+){0,3}?you\ are\ (?:now\ )?(?:\w+,\ (?:(?:an?|the|our)\ )?|(?:an?|the|our)\ )(?:[\w'-]+\ ){0,5}?
          (?:agent|assistant|bot|chatbot|helper|expert|model|advisor|concierge|clerk|representative|companion|tutor|teacher|coach|guide|operator|planner|butler|ai)\b
        | ^\W*your\ (?:task|role|job|goal)\ is\ to\b
        | ^\W*you\ must\ (?:never|not|always)\b
        | ^\W*(?:\w+\W+){0,3}?(?:tu\ es|vous\ êtes|du\ bist|eres|usted\ es)\b
        | "(?:\w+_)?(?:rules|instructions|system_prompt|guidelines|persona)"\s*:
        | ^\W*(?:role|persona|tools|rules|forbidden|constraints|guidelines)\s*:
        | ^\W*(?:rule|regel|règle|regla)\ (?:no\.\ ?)?\d+\W
        "#,
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
