//! Workspaces: each owns documents, scopes, runs and exchanges.

/// Longest name of a workspace, characters.
const LONGEST: usize = 64;

/// Whether this is a valid workspace name: 1 to 64 characters of `a-z A-Z 0-9 _ -`. A dot is not allowed: scopes
/// of workspace `w` are named `w.NAME`.
pub fn is_workspace_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_one_plain_word() {
        for (name, fits) in [
            ("default", true),
            ("Team_7-b", true),
            ("", false),
            ("a.b", false),
            ("a/b", false),
            ("é", false),
            (&"a".repeat(64), true),
            (&"a".repeat(65), false),
        ] {
            assert_eq!(is_workspace_name(name), fits, "{name}");
        }
    }
}
