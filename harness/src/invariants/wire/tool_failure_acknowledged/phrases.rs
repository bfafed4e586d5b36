//! The short list of English words that tell of a failure; `docs/invariants.md` has it too.

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

/// What says the opposite with the same words.
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

/// Whether a text says that something failed.
pub(super) fn says(text: &str) -> bool {
    // Names of code are words too: `SEARCH_OUTAGE`, `HTTPStatusError`.
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

/// Whether a text names the status of a failed answer.
pub(super) fn names_a_status(text: &str) -> bool {
    STATUS.is_match(text)
}
