//! Text with the place it was read from, and the complaint that points back at it.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

pub(crate) use crate::text::Position;

/// A place in a file that is known by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file.
    pub(crate) file: PathBuf,
    /// Where in it.
    pub(crate) at: Position,
}

impl Place {
    /// A complaint about what stands there.
    pub(crate) fn complain(&self, message: impl Into<String>) -> ConfigError {
        ConfigError::at(self.at, message).in_file(&self.file)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.at;
        write!(f, "{}:{line}:{column}", self.file.display())
    }
}

/// A scalar as it is written, before variables are expanded and before it has a type.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    /// The text, quotes removed.
    pub(crate) text: String,
    /// Where the value begins.
    pub(crate) at: Position,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self {
            at: spanned.referenced.into(),
            text: spanned.value,
        })
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// One thing wrong with a configuration: where, what was found, what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigError {
    /// The file, when the value came from one.
    pub(crate) file: Option<PathBuf>,
    /// The place in it.
    pub(crate) at: Option<Position>,
    /// What was found, what is allowed, the nearest valid word.
    pub(crate) message: String,
}

impl ConfigError {
    /// A complaint about a value in a file that will be named later, by [`ConfigError::in_file`].
    pub(crate) fn at(at: Position, message: impl Into<String>) -> Self {
        Self {
            file: None,
            at: Some(at),
            message: message.into(),
        }
    }

    /// A complaint about something that has no place in a file: a flag, a variable, a missing
    /// field.
    pub(crate) fn anywhere(message: impl Into<String>) -> Self {
        Self {
            file: None,
            at: None,
            message: message.into(),
        }
    }

    /// The same complaint, with the file's name.
    pub(crate) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
        }
        if let Some(at) = self.at {
            write!(f, "{}:{}:", at.line, at.column)?;
        }
        if self.file.is_some() || self.at.is_some() {
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Every complaint about one configuration, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigErrors(pub(crate) Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}
