//! One-line texts of settings for reports, without values of variables.

use serde_json::Value;
use squall_journal::redact::Redactor;
use squall_profiles::library::Library;
use squall_profiles::profile::Profile;
use squall_profiles::rule::Rule;
use squall_profiles::tools::ToolNames;

use crate::invariants::member_list;

/// The rules of chaos, followed by those of the extended profiles in the library.
pub fn rule_lines(chaos: &Profile, library: &Library) -> Vec<String> {
    let document = chaos.document();
    // The name is removed, because a scenario may have the name of the profile that it extends.
    let mut nameless = chaos.clone();
    nameless.name = None;
    let rule = |rule: &Rule| {
        let own = document.pointer(&rule.origin.pointer);
        told_rule(rule, own.filter(|_| rule.origin.file == chaos.file))
    };
    if let Ok(all) = library.rule_set_of(&nameless, &ToolNames::default()) {
        return all.rules().iter().map(|one| rule(one)).collect();
    }
    let own = chaos.rules.iter().map(|one| rule(one));
    let extended = chaos.extends.iter();
    let extended = extended.map(|one| format!("the rules of profile {}", one.name));
    own.chain(extended).collect()
}

/// Family and mode, the written fields, and the defaults of the other parameters.
fn told_rule(rule: &Rule, written: Option<&Value>) -> String {
    let mut all = written.and_then(Value::as_object).cloned();
    let all = all.get_or_insert_default();
    if let Value::Object(used) = rule.parameters(&Redactor::default()) {
        for (name, value) in used {
            all.entry(name).or_insert(value);
        }
    }
    let parameters = member_list(all, &["id", "mode", "type", "counted_by"]);
    let family = rule.family().as_str();
    format!("{family}: {} ({}) {parameters}", rule.mode(), rule.id)
        .trim_end()
        .to_owned()
}
