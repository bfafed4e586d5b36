//! `$VAR` in the agent's endpoint, headers and query parameters, as in flakestorm. A variable that is not set stays
//! literal, because many URLs contain a `$`.

use squall_documents::{At, Tree, Variables};

/// A part of a text before its variables are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Literal text.
    Literal(&'t str),
    /// `${NAME}`, or `${NAME:-default}`.
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
}

/// Splits a text into literals and variables.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut literal, mut from) = (Vec::new(), 0, 0);
    while let Some(at) = text[from..].find("${").map(|at| from + at) {
        let is_escaped = text[..at].ends_with('$');
        let Some(end) = text[at..].find('}').map(|end| at + end) else {
            break;
        };
        from = if is_escaped { at + 2 } else { end + 1 };
        if is_escaped {
            continue;
        }
        pieces.push(Piece::Literal(&text[literal..at]));
        let inside = &text[at + 2..end];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        pieces.push(Piece::Variable { name, default });
        literal = end + 1;
    }
    pieces.push(Piece::Literal(&text[literal..]));
    pieces.retain(|piece| *piece != Piece::Literal(""));
    pieces
}

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
        Variables::From(lookup) => lookup(name).is_ok(),
        Variables::Listed(lookup) => lookup(name).is_some_and(|found| found.is_ok()),
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
