//! `$VAR` in the agent's endpoint, headers and query parameters, as in flakestorm. A variable that is not set stays
//! literal, because many URLs contain a `$`.

use squall_documents::{At, Tree, VariableError, Variables};

/// Names of bare variables in a text.
pub(super) fn bare_names(text: &str) -> impl Iterator<Item = &str> {
    bare(text).map(|(_, name)| name)
}

/// The names and positions of bare variables in a text; a position includes the `$`.
fn bare(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('$').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let length = rest.bytes().take_while(|byte| is_letter(*byte)).count();
        let begins = rest
            .bytes()
            .next()
            .is_some_and(|byte| !byte.is_ascii_digit());
        (length > 0 && begins).then(|| (at, &rest[..length]))
    })
}

/// The fields of an agent in which a bare `$VAR` is expanded.
const EXPANDING: [&str; 3] = ["endpoint", "headers", "query_params"];

/// Rewrites bare variables that are set as `${VAR}`.
pub(crate) fn spell_out(tree: &mut At<Tree>, variables: Variables<'_>) {
    let is_set = |name: &str| match variables {
        Variables::Refused => false,
        Variables::From(lookup) => lookup(name) != Err(VariableError::NotSet),
        Variables::Listed(lookup) => {
            lookup(name).is_some_and(|found| found != Err(VariableError::NotSet))
        }
    };
    let agent = tree.member_mut("agent");
    let Some(agent) = agent else { return };
    for name in EXPANDING {
        if let Some(field) = agent.member_mut(name) {
            field.each_text_mut(&mut |text| {
                let mut spelt = String::with_capacity(text.len());
                let mut from = 0;
                for (at, name) in bare(text).filter(|(_, name)| is_set(name)) {
                    spelt.push_str(&text[from..at]);
                    spelt.extend(["${", name, "}"]);
                    from = at + 1 + name.len();
                }
                spelt.push_str(&text[from..]);
                *text = spelt;
            });
        }
    }
}
