//! What documents that arrive by API may do.
//!
//! By default they may use no variables and start no programs. `api.env` in the config lists the variables of the
//! daemon's environment that they may use; `safety.commands` allows them to start programs.

use std::collections::{BTreeMap, BTreeSet};
use std::env::VarError;
use std::fmt;
use std::path::PathBuf;

use arc_swap::ArcSwap;
use squall_documents::variables::{Variables, is_variable_name};
use squall_documents::{At, Fields, ScalarKind, Tree, VariableError};
use squall_proxy::user_file;

/// What documents that arrive by API may do; a reload changes it for later documents.
///
/// Readers of a suite call [`Self::may_start_programs`] before they accept an agent of `type: command`, an
/// `agent.start` or any other program. `false` means 422 with the line and a hint at `safety.commands`.
/// [`Self::variables`] expands `${NAME}`.
#[derive(Debug, Default)]
pub struct Trust(ArcSwap<TrustConfig>);

/// The config's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustConfig {
    /// `safety.commands`: documents may start programs. Default false.
    pub commands: bool,
    /// `api.env`: names of variables that documents may use.
    pub variables: BTreeSet<String>,
}

impl Trust {
    /// With the settings of a config.
    pub fn new(terms: TrustConfig) -> Self {
        Self(ArcSwap::from_pointee(terms))
    }

    /// Replaces the settings after a reload.
    pub fn configure(&self, terms: TrustConfig) {
        self.0.store(terms.into());
    }

    /// Whether a document that arrived by API may start programs. Default false.
    pub fn may_start_programs(&self) -> bool {
        self.0.load().commands
    }

    /// Passes to `read` the variables that a document that arrived by API may use. Their values are secret: never
    /// stored, logged or returned.
    pub fn variables<T>(&self, read: impl FnOnce(Variables<'_>) -> T) -> T {
        self.variables_and(&SentVariables::default(), read)
    }

    /// The same, and the variables that were sent with the document.
    pub(crate) fn variables_and<T>(
        &self,
        sent: &SentVariables,
        read: impl FnOnce(Variables<'_>) -> T,
    ) -> T {
        let terms = self.0.load();
        read(Variables::Listed(&|name| match sent.0.get(name) {
            Some(value) => Some(Ok(value.clone())),
            None => terms.look_up(name),
        }))
    }
}

/// Variables and their values that were sent with the document that uses them. Its `Debug` output shows the names
/// only.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct SentVariables(BTreeMap<String, String>);

impl SentVariables {
    /// Greatest number of variables.
    pub(crate) const MOST: usize = 256;

    /// With these values.
    pub(crate) fn new(values: BTreeMap<String, String>) -> Self {
        Self(values)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the field `secrets`. Errors repeat neither names nor values, since these may be swapped.
    pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Self {
        let read = fields.field("secrets", "", |value| {
            let read = values(value.any()?);
            read.map_err(|error| value.error(error)).ok()
        });
        Self(read.unwrap_or_default())
    }
}

fn values(sent: &At<Tree>) -> Result<BTreeMap<String, String>, String> {
    let Tree::Map(members) = &sent.value else {
        return Err("`secrets` is a map from variables to texts".to_owned());
    };
    if members.len() > SentVariables::MOST {
        return Err(format!("there may be {} of them", SentVariables::MOST));
    }
    let read = (1..)
        .zip(members)
        .map(|(place, (name, value))| match &value.value {
            Tree::Scalar {
                text,
                kind: ScalarKind::Text,
            } if is_variable_name(&name.value) => Ok((name.value.clone(), text.clone())),
            _ => Err(format!(
                "member {place} is not a variable's name and a text"
            )),
        });
    read.collect()
}

impl fmt::Debug for SentVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A variable of this process: its value, or the content of the file that `NAME_FILE` names.
pub fn environment_variable(name: &str) -> Result<String, VariableError> {
    match std::env::var(name) {
        Ok(value) => return Ok(value),
        Err(VarError::NotPresent) => {}
        Err(VarError::NotUnicode(_)) => {
            let why = format!("the variable `{name}` does not hold valid UTF-8");
            return Err(VariableError::Invalid(why));
        }
    }
    let variable = format!("{name}_FILE");
    let file = std::env::var_os(&variable).filter(|file| !file.is_empty());
    let file = PathBuf::from(file.ok_or(VariableError::NotSet)?);
    match user_file::read_text(&file) {
        Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => Err(VariableError::Invalid(format!(
            "`{variable}`: {} cannot be read: {error}",
            file.display()
        ))),
    }
}

impl TrustConfig {
    fn look_up(&self, name: &str) -> Option<Result<String, VariableError>> {
        self.variables
            .contains(name)
            .then(|| environment_variable(name))
    }
}

#[cfg(test)]
mod tests {
    use squall_documents::variables::expand;

    use super::*;

    #[test]
    fn a_document_reads_what_the_config_lists_and_nothing_else() {
        let trust = Trust::default();
        let told = |text: &str| trust.variables(|variables| expand(text, variables));
        assert!(told("${PATH}").unwrap_err().contains("`api.env`"));
        trust.configure(TrustConfig {
            commands: true,
            variables: BTreeSet::from(["PATH".to_owned()]),
        });
        assert_eq!(told("${PATH}").unwrap(), std::env::var("PATH").unwrap());
        assert!(told("${HOME:-x}").unwrap_err().contains("`HOME`"));
        assert!(trust.may_start_programs());
    }
}
