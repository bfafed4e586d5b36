//! The documents that an order names, and the documents that those name.

use std::sync::Arc;

use serde_json::{Value, json};
use squall_harness::digest::sha256;
use squall_harness::invariants::Active;
use squall_harness::reach::Rules;
use squall_harness::run::{DocumentVersion, RunKind, RunRecord};
use squall_harness::runner::Trial;
use squall_harness::suite::{self, Suite, rule_lines};
use squall_profiles::library::{Library, ProfileSource};
use squall_profiles::profile::{self, Profile};
use squall_profiles::tools::ToolNames;

use super::{OrderReader, OrderedSuite};
use crate::document;
use crate::nearest::no_profile;
use crate::problem::ApiProblem;
use crate::runs::validation;
use crate::store::{DocumentKey, DocumentKind, RunFilter};
use crate::stored_documents::newest;
use crate::stored_profiles::profile_key;
use crate::trust::SentVariables;

/// Most runs that are searched for an interrupted one.
const MOST_SEARCHED: usize = 200;

/// Longest title of a run, characters.
const MOST_NAME: usize = 64;

/// The suite's own title; a truncated one ends with a mark.
fn title(suite: &Value) -> Option<String> {
    let name = suite["name"]
        .as_str()
        .filter(|name| !name.trim().is_empty())?;
    if name.chars().count() <= MOST_NAME {
        return Some(name.to_owned());
    }
    let kept = name.chars().take(MOST_NAME - 1);
    Some(kept.chain(['…']).collect())
}

impl OrderReader<'_> {
    /// The suite with the contract that it or the run names, and its title.
    pub(super) async fn suite(
        &mut self,
        kind: RunKind,
        ordered: OrderedSuite,
        contract: Option<String>,
        replays: Option<Vec<String>>,
        sent: &SentVariables,
    ) -> Result<Option<(String, Suite)>, ApiProblem> {
        let (name, mut suite) = match ordered {
            OrderedSuite::Sent(suite) => {
                let name = title(&suite).unwrap_or_else(|| "inline".to_owned());
                self.note("suite", &name, None, &suite.to_string());
                self.note_own_version(&suite);
                (name, suite)
            }
            OrderedSuite::Named(name) => {
                let Some(suite) = self.stored(DocumentKind::Suite, &name).await? else {
                    let shown: String = name.chars().take(64).collect();
                    self.add("/suite_name", format!("there is no suite `{shown}`"));
                    return Ok(None);
                };
                (title(&suite).unwrap_or(name), suite)
            }
        };
        let own = suite.get("contract").and_then(Value::as_str);
        let named = match (contract, own) {
            (Some(name), _) => Some((name, "/options/contract")),
            (None, Some(name)) => Some((name.to_owned(), "/suite/contract")),
            (None, None) => None,
        };
        if let Some((contract, at)) = &named
            && let Some(members) = suite.as_object_mut()
        {
            // Without one, the other errors of the suite are reported too.
            let found = self.contract(contract, at).await?;
            members.insert("contract".to_owned(), found.unwrap_or(json!(contract)));
        }
        self.replays(&mut suite, replays).await?;
        if kind == RunKind::Replay
            && let Some(members) = suite.as_object_mut()
        {
            // Its errors are then about sessions, not about prompts.
            members.entry("replays").or_insert_with(|| json!({}));
        }
        match validation::suite(&name, &suite, sent, &self.state.trust) {
            Ok(suite) => {
                if let Some((contract, _)) = named {
                    self.warnings.extend(notes_of(&contract, &suite));
                }
                Ok(Some((name, suite)))
            }
            Err(wrong) => {
                self.wrong.extend(wrong);
                Ok(None)
            }
        }
    }

    /// Sets the stored sessions that the run names, and the stored contracts that sessions name.
    async fn replays(
        &mut self,
        suite: &mut Value,
        named: Option<Vec<String>>,
    ) -> Result<(), ApiProblem> {
        if let Some(ids) = named {
            let mut sessions = Vec::new();
            for (place, id) in ids.iter().enumerate() {
                if let Some(mut session) = self.stored(DocumentKind::Replay, id).await? {
                    suite::escape_variables(&mut session);
                    sessions.push(session);
                } else {
                    let shown: String = id.chars().take(64).collect();
                    let at = format!("/options/replays/{place}");
                    self.add(at, format!("there is no replay session `{shown}`"));
                }
            }
            suite["replays"] = json!({ "sessions": sessions });
        }
        let own = suite["contract"]["name"].as_str().map(str::to_owned);
        let sessions = suite["replays"]["sessions"].as_array_mut();
        for session in sessions.into_iter().flatten() {
            let name = session["contract"].as_str();
            if let Some(name) = name.filter(|name| Some(*name) != own.as_deref()) {
                let found = self.stored(DocumentKind::Contract, name).await?;
                // Other names are resolved, or rejected, with the run.
                if let Some(mut contract) = found {
                    contract["name"] = json!(name);
                    session["contract"] = contract;
                }
            }
        }
        Ok(())
    }

    /// A stored contract; without a name of its own it gets the one it is stored under.
    async fn contract(&mut self, name: &str, at: &str) -> Result<Option<Value>, ApiProblem> {
        let Some(mut contract) = self.stored(DocumentKind::Contract, name).await? else {
            let shown: String = name.chars().take(64).collect();
            self.add(
                at,
                format!(
                    "there is no contract `{shown}`; write it here in the place of its name, or put it under \
                     /v1/contracts first; the commands also take a file, as in `./contract.yaml`"
                ),
            );
            return Ok(None);
        };
        if let Some(members) = contract.as_object_mut() {
            let own = members.entry("name").or_insert(Value::Null);
            if own.is_null() {
                *own = json!(name);
            }
        }
        Ok(Some(contract))
    }

    /// The run to compare with: posted, or found by its id.
    pub(super) async fn baseline(
        &mut self,
        wanted: Option<Result<Box<RunRecord>, String>>,
    ) -> Result<Option<Arc<RunRecord>>, ApiProblem> {
        let found = match wanted {
            None => return Ok(None),
            Some(Ok(run)) => Some(*run),
            Some(Err(id)) => {
                let found = self.state.runs.find(self.workspace, &id).await?;
                if found.is_none() {
                    let shown: String = id.chars().take(40).collect();
                    self.add("/options/baseline", format!("there is no run `{shown}`"));
                }
                found
            }
        };
        if let Some(run) = found.as_ref().filter(|run| !run.state.is_over()) {
            let shown: String = run.id.chars().take(40).collect();
            let state = run.state.as_str();
            let detail =
                format!("the run `{shown}` is {state}; there is nothing to compare with yet");
            self.add("/options/baseline", detail);
        }
        Ok(found.map(Arc::new))
    }

    /// The newest exploration of the suite with this name, to continue it.
    pub(super) async fn interrupted(
        &mut self,
        name: &str,
        suite: &Suite,
        seed: Option<u64>,
        budget: Option<u64>,
    ) -> Result<Option<Arc<RunRecord>>, ApiProblem> {
        let filter = RunFilter {
            kind: Some(RunKind::Explore),
            ..RunFilter::default()
        };
        let runs = self.state.runs.list(self.workspace, &filter, MOST_SEARCHED);
        let newest = runs.await?.into_iter().find(|run| run.name == name);
        let found = match newest {
            Some(run) if run.state.is_over() => {
                self.state.runs.find(self.workspace, &run.id).await?
            }
            Some(_) | None => None,
        };
        let found = found.filter(|run| run.exploration.is_some());
        let exploration = found.as_ref().and_then(|run| run.exploration.as_ref());
        let changed =
            exploration.map_or_else(Vec::new, |one| one.changed_members(&suite.digests()));
        let used = exploration.map_or(0, |one| one.invocations);
        match &found {
            None => {
                let what = format!(
                    "no exploration of suite `{name}` is there to continue: leave `resume` out to start one"
                );
                self.add("/options/resume", what);
            }
            Some(run) if !changed.is_empty() => {
                let what = format!(
                    "run `{}` has another `{}`: take its suite, or leave `resume` out to start a new exploration",
                    run.id,
                    changed.join("`, `")
                );
                self.add("/options/resume", what);
            }
            Some(run) if seed.is_some_and(|seed| seed != run.seed) => {
                let what = format!("run `{}` has seed {}: leave `seed` out", run.id, run.seed);
                self.add("/options/seed", what);
            }
            Some(run) if budget.is_some_and(|budget| budget <= used) => {
                let what = format!(
                    "run `{}` has made {used} invocations already: the budget counts them too, so use a larger one",
                    run.id
                );
                self.add("/options/budget", what);
            }
            Some(_) => {}
        }
        Ok(found.map(Arc::new))
    }

    /// Checks that all profiles exist that the suite's chaos extends. A requested profile replaces `chaos`, which
    /// is then not checked.
    pub(super) async fn extended(
        &mut self,
        suite: &Suite,
        names_profile: bool,
    ) -> Result<(), ApiProblem> {
        let scenarios = suite.scenarios().iter().enumerate();
        let scenarios = scenarios.map(|(number, scenario)| {
            let at = format!("/suite/contract/chaos_matrix/{number}");
            (at, &scenario.chaos)
        });
        let own = suite.chaos.iter().filter(|_| !names_profile);
        let own = own.map(|chaos| ("/suite/chaos".to_owned(), chaos));
        let library = self.state.library(self.workspace);
        for (at, chaos) in scenarios.chain(own) {
            // Without its name, since it may have the name of a profile that it extends.
            let mut nameless = Profile::clone(chaos);
            nameless.name = None;
            if nameless.extends.is_empty() {
                continue;
            }
            if let Err(error) = library.rule_set_of(&nameless, &suite.tools.names) {
                self.add(format!("{at}{}", error.pointer), error.message);
            }
            self.note_extended(&library, &nameless).await?;
        }
        Ok(())
    }

    /// The chaos of a profile; reports use the profile's name.
    pub(super) async fn profile(&mut self, name: &str) -> Result<Option<Trial>, ApiProblem> {
        let library = self.state.library(self.workspace);
        let Some((source, profile)) = library.get(name) else {
            self.add("/options/profile", no_profile(&library, name));
            return Ok(None);
        };
        self.note_profile(name, source, profile).await?;
        self.note_extended(&library, profile).await?;
        Ok(Some(Trial {
            rules: Rules::Profile(name.to_owned()),
            active: Active::of_extended(profile, &library, &ToolNames::default()),
            rule_lines: rule_lines(profile, &library),
            ..Trial::clean(name)
        }))
    }

    /// The chaos of a profile that was posted with the order.
    pub(super) async fn sent_profile(
        &mut self,
        document: &Value,
        sent: &SentVariables,
    ) -> Result<Option<Trial>, ApiProblem> {
        let text = document.to_string();
        let library = self.state.library(self.workspace);
        let read = self.state.trust.variables_and(sent, |variables| {
            let profile = profile::parse_file("profile", &text, variables)?;
            match library.rule_set_of(&profile, &ToolNames::default()) {
                Ok(_) => Ok(profile),
                Err(error) => Err(vec![error]),
            }
        });
        let profile = match read {
            Ok(profile) => Arc::new(profile),
            Err(errors) => {
                for error in errors {
                    self.add(format!("/options/profile{}", error.pointer), error.message);
                }
                return Ok(None);
            }
        };
        let name = profile.name.as_deref().unwrap_or("profile");
        self.note("profile", name, None, &profile.text);
        self.note_extended(&library, &profile).await?;
        Ok(Some(Trial {
            active: Active::of_extended(&profile, &library, &ToolNames::default()),
            ..Trial::of(name, &profile)
        }))
    }

    /// The newest version of a document; `None` when there is none.
    async fn stored(
        &mut self,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<Value>, ApiProblem> {
        let key = DocumentKey {
            workspace: self.workspace.to_owned(),
            kind,
            name: name.to_owned(),
        };
        let Some((version, text)) = newest(&self.state.store, &key).await? else {
            return Ok(None);
        };
        let tree = document::stored(&text.body)?;
        self.note(kind.as_str(), name, Some(version), &text.body);
        if kind == DocumentKind::Suite {
            self.note_own_version(&tree);
        }
        Ok(Some(tree))
    }

    /// Notes the profiles that this profile extends, directly or indirectly, as documents of the run.
    async fn note_extended(
        &mut self,
        library: &Library,
        profile: &Profile,
    ) -> Result<(), ApiProblem> {
        let names = |profile: &Profile| {
            let names = profile.extends.iter().rev();
            names.map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        let mut left = names(profile);
        while let Some(name) = left.pop() {
            let is_noted = |one: &DocumentVersion| one.kind == "profile" && one.name == name;
            if self.documents.iter().any(is_noted) {
                continue;
            }
            if let Some((source, extended)) = library.get(&name) {
                self.note_profile(&name, source, extended).await?;
                left.extend(names(extended));
            }
        }
        Ok(())
    }

    async fn note_profile(
        &mut self,
        name: &str,
        source: ProfileSource,
        profile: &Profile,
    ) -> Result<(), ApiProblem> {
        let key = profile_key(self.workspace, name);
        let stored = match source {
            ProfileSource::Api => newest(&self.state.store, &key).await?,
            ProfileSource::Builtin | ProfileSource::File => None,
        };
        let version = stored.map(|(version, _)| version);
        self.note("profile", name, version, &profile.text);
        Ok(())
    }

    /// Notes this version as a document of the run.
    fn note(&mut self, kind: &str, name: &str, version: Option<i64>, text: &str) {
        self.documents.push(DocumentVersion {
            kind: kind.to_owned(),
            name: name.to_owned(),
            version,
            own_version: None,
            digest: sha256(text),
        });
    }

    /// Adds the suite's own `version` to the document that was noted last.
    fn note_own_version(&mut self, suite: &Value) {
        let own = match &suite["version"] {
            Value::String(own) => Some(own.clone()),
            Value::Number(own) => Some(own.to_string()),
            _ => None,
        };
        if let Some(noted) = self.documents.last_mut() {
            noted.own_version = own.map(|own| own.chars().take(64).collect());
        }
    }
}

/// Notes on the suite's contract, with its name: the caller may not have seen the contract.
fn notes_of(contract: &str, suite: &Suite) -> Vec<String> {
    let notes = suite.notes.iter();
    let of_contract = notes.filter(|note| note.pointer.starts_with("/contract"));
    of_contract
        .map(|note| format!("contract `{contract}`: {}", note.message))
        .collect()
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;
    use squall_harness::suite;

    use super::*;

    #[test]
    fn warnings_of_a_named_contract_are_reported_with_the_run() {
        let text = "agent: {endpoint: 'http://agent.test/'}\ngolden_prompts: [hello]\n\
                    advanced: {skip_rules: [x]}\n\
                    contract: {name: c, invariants: [{id: a, type: completes, when: any_chaos_active}], \
                    chaos_matrix: [{name: clean}]}\n";
        let suite = suite::parse("s", text, Variables::Refused).expect("valid");
        assert_eq!(
            notes_of("bookings", &suite),
            [
                "contract `bookings`: invariant `a` is never judged: no scenario fits `when: any_chaos_active`",
                "contract `bookings`: no scenario of contract `c` has any chaos in it; nothing will be shown about failures",
            ]
        );
    }

    #[test]
    fn a_run_is_called_as_its_suite_calls_itself() {
        let long = "ä".repeat(65);
        let cut = format!("{}…", "ä".repeat(63));
        for (name, expected) in [
            (json!("checkout"), Some("checkout")),
            (json!("ä".repeat(64)), Some(&*"ä".repeat(64))),
            (json!(long), Some(&*cut)),
            (json!(" "), None),
            (json!(null), None),
        ] {
            let found = title(&json!({ "name": name }));
            assert_eq!(found.as_deref(), expected, "{name}");
        }
    }
}
