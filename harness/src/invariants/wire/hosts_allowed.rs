//! `hosts_allowed`: the agent reaches only these hosts.

use super::{Narrow, holds, hosts, is_host};
use crate::invariants::{Check, InvariantKind, Verdict};

/// `hosts`: globs for hosts, with or without a port.
pub(super) const HOSTS_ALLOWED: InvariantKind = InvariantKind::wire("hosts_allowed", |fields| {
    let narrow = Narrow::without_hosts(fields);
    let about = "Hosts that may be reached: globs, also over `host:port`.";
    let hosts = hosts(fields, "hosts", about);
    fields.require("hosts", "who may be reached, a list of globs");
    let (narrow, hosts) = (narrow?, hosts?);
    Some(Check::new(move |subject| {
        let mut attempts = narrow.attempts(subject.trace);
        match attempts.find(|attempt| !is_host(attempt, &hosts)) {
            Some(attempt) => Verdict::fails(format!(
                "{} went to {}, which is not allowed",
                attempt.id, attempt.host_and_port
            ))
            .at(attempt),
            None => holds(subject.trace, "only allowed hosts were reached"),
        }
    }))
});

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
    use crate::invariants::testing::{Outcome::*, errors_of};
    use crate::trace::testing::Sent;

    #[test]
    fn every_destination_is_looked_at() {
        let written = "{type: hosts_allowed, hosts: ['*.openai.test', 'tools.test:8080']}";
        for (urls, expected) in [
            (
                vec!["https://api.openai.test/v1", "http://tools.test:8080/x"],
                Holds,
            ),
            (vec!["https://API.OpenAI.test/v1"], Holds),
            (vec!["http://[::1]:8080/x"], Fails),
            (vec!["http://tools.test/x"], Fails),
            (
                vec!["https://api.openai.test/v1", "https://evil.test/"],
                Fails,
            ),
            (vec!["https://openai.test.evil.test/"], Fails),
        ] {
            let sent: Vec<_> = urls.iter().map(|url| Sent::get(url)).collect();
            assert_eq!(judged(written, &sent), expected, "{urls:?}");
        }
    }

    #[test]
    fn case_and_brackets_of_hosts_do_not_count_and_hosts_that_never_come_are_errors() {
        for (hosts, url) in [
            ("LocalHost", "http://localhost:8080/"),
            ("'*.OpenAI.test:443'", "https://api.openai.test/"),
            ("'::1'", "http://[::1]:8080/"),
            ("'[::1]:8080'", "http://[::1]:8080/"),
        ] {
            let written = format!("{{type: hosts_allowed, hosts: {hosts}}}");
            assert_eq!(judged(&written, &[Sent::get(url)]), Holds, "{hosts}");
        }
        let errors = errors_of("{type: hosts_allowed, hosts: [münchen.test]}");
        assert!(errors[0].contains("write the host in ASCII"), "{errors:?}");
    }
}
