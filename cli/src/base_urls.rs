//! Base URLs for programs that ignore proxies: the variables that provider SDKs read, and a route behind each.

use squall_proxy::config::{ProxyRoute, RouteEntry};

use crate::config::upstream_url;
use crate::failure::Failure;
use crate::pointing::{Variable, encode};

/// The variables of one provider, and its base URL; `None` if each customer has another.
const PROVIDERS: [(&[&str], Option<&str>); 6] = [
    (
        &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        Some("https://api.openai.com/v1"),
    ),
    (&["ANTHROPIC_BASE_URL"], Some("https://api.anthropic.com")),
    (
        &["GOOGLE_GEMINI_BASE_URL"],
        Some("https://generativelanguage.googleapis.com"),
    ),
    (&["GROQ_BASE_URL"], Some("https://api.groq.com")),
    (&["CO_API_URL"], Some("https://api.cohere.com")),
    (&["AZURE_OPENAI_ENDPOINT"], None),
];

/// Adds a route for each variable, with the variable's name. A value that is set already becomes the route's
/// upstream.
pub(crate) fn add_routes(
    routes: &mut Vec<ProxyRoute>,
    set: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<&'static str>, Failure> {
    let set = |name: &str| set(name).filter(|value| !value.is_empty());
    let mut added = Vec::new();
    for (variables, own) in PROVIDERS {
        // Of two variables for the same setting, one may be unset.
        let shared = variables.iter().find_map(|name| Some((*name, set(name)?)));
        for name in variables {
            let given = set(name).map(|url| (*name, url)).or_else(|| shared.clone());
            let Some((from, url)) = given.or_else(|| Some((*name, own?.to_owned()))) else {
                continue;
            };
            let upstream = upstream_url(&url)
                .map_err(|error| Failure::Usage(format!("the variable {from}: {error}")))?;
            routes.push(ProxyRoute {
                name: (*name).to_owned(),
                entry: RouteEntry::Prefix(prefix(name)),
                upstream,
                scope: None,
            });
            added.push(*name);
        }
    }
    Ok(added)
}

/// The variables for a proxy at `authority` that has those routes.
pub(crate) fn variables(
    added: &[&'static str],
    authority: &str,
    scope: Option<&str>,
) -> Vec<Variable> {
    let scope = scope.map_or_else(String::new, |scope| format!("/_scope/{}", encode(scope)));
    let url = |name: &str| format!("http://{authority}{scope}{}", prefix(name));
    added.iter().map(|name| (*name, url(name))).collect()
}

fn prefix(name: &str) -> String {
    format!("/_base/{}", name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams(set: &[(&str, &str)]) -> Result<Vec<(String, String)>, Failure> {
        let mut routes = Vec::new();
        let look_up = |name: &str| {
            let found = set.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        add_routes(&mut routes, &look_up)?;
        let named = routes.into_iter();
        Ok(named
            .map(|route| (route.name, route.upstream.to_string()))
            .collect())
    }

    #[test]
    #[rustfmt::skip]
    fn what_a_variable_is_set_to_is_where_its_route_goes() {
        let of = |set: &[(&str, &str)], name: &str| {
            let upstreams = upstreams(set).expect("valid").into_iter();
            upstreams
                .filter(|(other, _)| other == name)
                .map(|(_, upstream)| upstream)
                .next()
        };
        let local = [("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")];
        let both = [local[0], ("OPENAI_API_BASE", "https://other.test/v1")];
        let azure = [("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.test/")];
        let empty = [("OPENAI_BASE_URL", "")];
        for (set, name, expected) in [
            (&[][..], "OPENAI_BASE_URL", Some("https://api.openai.com/v1")),
            (&empty, "OPENAI_BASE_URL", Some("https://api.openai.com/v1")),
            (&local, "OPENAI_BASE_URL", Some("http://127.0.0.1:8000/v1")),
            (&local, "OPENAI_API_BASE", Some("http://127.0.0.1:8000/v1")),
            (&both, "OPENAI_API_BASE", Some("https://other.test/v1")),
            (&[], "AZURE_OPENAI_ENDPOINT", None),
            (&azure, "AZURE_OPENAI_ENDPOINT", Some("https://me.openai.azure.test/")),
        ] {
            assert_eq!(of(set, name).as_deref(), expected, "{set:?} {name}");
        }
        let wrong = upstreams(&[("CO_API_URL", "ftp://x")]).expect_err("no URL of an upstream");
        assert!(wrong.to_string().contains("CO_API_URL"), "{wrong}");
    }

    #[test]
    fn a_scope_stands_in_the_path() {
        assert_eq!(
            variables(&["CO_API_URL"], "127.0.0.1:7", Some("job-7")),
            [(
                "CO_API_URL",
                "http://127.0.0.1:7/_scope/job-7/_base/co_api_url".to_owned()
            )]
        );
    }
}
