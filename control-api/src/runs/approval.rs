//! What may be touched only when somebody has said yes.

/// Names of suites and hosts that a run may touch only when somebody has approved it: globs, in which `*`
/// stands for anything. Letter case does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approval(Vec<String>);

impl Approval {
    /// These globs.
    pub fn new(globs: impl IntoIterator<Item = String>) -> Self {
        Self(
            globs
                .into_iter()
                .map(|glob| glob.to_ascii_lowercase())
                .collect(),
        )
    }

    /// The first of `touched` that needs a yes.
    pub(crate) fn wanted_for<'a>(
        &self,
        touched: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        touched.into_iter().find(|name| {
            let name = name.to_ascii_lowercase();
            self.0
                .iter()
                .any(|glob| matches(glob.as_bytes(), name.as_bytes()))
        })
    }
}

/// Whether a glob matches a name. Goes back to the last star only, so it takes no more than
/// their lengths multiplied.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while from < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                last_star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == name[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star, taken)) = last_star else {
                    return false;
                };
                last_star = Some((star, taken + 1));
                (at, from) = (star + 1, taken + 1);
            }
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

/// The hosts of a URL or of a glob over URLs, with and without the port.
pub(crate) fn hosts(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest[..end].rsplit('@').next().unwrap_or_default();
    let host = match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    };
    vec![host.to_owned(), authority.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (glob, name, is_matched) in [
            ("*.prod.example", "api.prod.example", true),
            ("*.prod.example", "API.Prod.Example", true),
            ("*.prod.example", "prod.example", false),
            ("*.prod.example", "api.prod.example.org", false),
            ("*prod*", "a-prod-b", true),
            ("checkout", "checkout", true),
            ("checkout", "checkout2", false),
            ("*", "", true),
            ("a*b*c", "axxbyybc", true),
            ("a*b*c", "axxbyybd", false),
            ("", "x", false),
        ] {
            let approval = Approval::new([glob.to_owned()]);
            let wanted = approval.wanted_for([name]);
            assert_eq!(wanted, is_matched.then_some(name), "{glob} {name}");
        }
        assert_eq!(Approval::default().wanted_for(["anything"]), None);
    }

    #[test]
    fn a_url_is_known_by_its_host_with_and_without_the_port() {
        for (url, expected) in [
            ("http://a.example/x", ["a.example", "a.example"]),
            (
                "https://u:p@a.example:8443/x?y",
                ["a.example", "a.example:8443"],
            ),
            ("http://[::1]:80/", ["[::1]", "[::1]:80"]),
            ("*.prod.example/*", ["*.prod.example", "*.prod.example"]),
        ] {
            assert_eq!(hosts(url), expected, "{url}");
        }
    }
}
