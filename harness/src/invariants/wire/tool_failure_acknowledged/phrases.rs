//! The English words that report a failure, also listed in `docs/invariants.md`.

use std::sync::LazyLock;

use regex::Regex;

fn compiled(pattern: &str) -> Regex {
    Regex::new(&format!("(?ix){pattern}")).expect("a constant pattern")
}

static SAYS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\b(?: errors? | exceptions? | fail(?:s|ed|ure|ures|ing)? | traceback | unavailable | unreachable | unable | refused | denied
          | time[\ -]?outs? | timed[\ -]out | outages? | offline | overloaded | crash(?:ed)? | econn\w+ | etimedout
          | too\ many\ requests | rate\ limit(?:ed)? | not\ (?:found|available|reachable) | (?:is|was|are)\ down )\b
        | \b(?:did|does|could|can)(?:\ not|n['’]t|not)\ (?:\w+\ )?(?:work|respond|answer|reach|find|get|load|connect|complete)\b",
    )
});

/// Phrases that deny a failure with the same words.
static DENIES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\b(?:no|not\ an?|without(?:\ any)?|zero|0)\ (?:errors?|failures?|exceptions?|outages?|timeouts?)\b
        | \b(?:did|does|has|have)(?:\ not|n['’]t)\ (?:fail(?:ed)?|crash(?:ed)?|timed?\ out)\b
        | \berror[\ -]free\b
        | \b(?:errors?|failures?|failed)\ ?[:=]\ ?(?:0|none|null|no|false)\b",
    )
});

static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"\b(?:https?|status|code)\W{0,3}(?:code|status|is|was|of)?\W{0,3}([45]\d\d)\b")
});

/// Whether a text reports a failure.
pub(super) fn says(text: &str) -> bool {
    // Identifiers are split into words: `SEARCH_OUTAGE`, `HTTPStatusError`.
    let mut parted = String::with_capacity(text.len() + 8);
    let mut after_lower = false;
    for letter in text.chars() {
        if after_lower && letter.is_uppercase() {
            parted.push(' ');
        }
        parted.push(if letter == '_' { ' ' } else { letter });
        after_lower = letter.is_lowercase();
    }
    SAYS.is_match(&DENIES.replace_all(&parted, " "))
}

/// Whether a text contains an error status.
pub(super) fn names_a_status(text: &str) -> bool {
    STATUS.is_match(text)
}
