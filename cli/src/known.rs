//! Names that a configuration defines, for commands that need no daemon.

use std::path::{Path, PathBuf};

use squall_profiles::library::Library;
use squall_profiles::tools::ToolNames;

use crate::config::{Config, DEFAULT_FILE};
use crate::daemon::profiles;
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;
use crate::text::{self, environment};

/// The configuration's names of upstreams, and its profile files.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) tools: ToolNames,
    files: Vec<PathBuf>,
}

impl Known {
    /// Reads the file `config`, else `squall.yaml` here. An unreadable `squall.yaml` is ignored, since it may use
    /// secrets that only the daemon has.
    pub(crate) fn read(config: Option<&Path>) -> Result<Self, Failure> {
        let named = config.unwrap_or(Path::new(DEFAULT_FILE));
        if config.is_none() && !named.is_file() {
            return Ok(Self::default());
        }
        let read = Config::from_file(crate::home::home()?, named);
        let read = match read {
            Ok(read) => read,
            Err(errors) if config.is_some() => return Err(errors),
            Err(errors) => {
                let warning = Paint::stderr().notable("warning:");
                output::report(&format!(
                    "{warning} its tools and profiles are not known: {errors}"
                ));
                return Ok(Self::default());
            }
        };
        let tools = read.proxy.names();
        let tools = tools.map_err(|error| Failure::Usage(error.to_string()))?;
        let files = read.profiles.as_deref().map(profiles::list);
        let files = files.transpose().unwrap_or_default();
        Ok(Self {
            tools,
            files: files.unwrap_or_default(),
        })
    }

    /// A library with its profiles added. Invalid ones, and those with a name that is taken, are left out.
    pub(crate) fn beside(&self, library: &Library) -> Library {
        let mut all = library.clone();
        for file in &self.files {
            if let Ok(text) = text::read(file)
                && let Ok(more) = all.with_file(&file.display().to_string(), &text, environment())
            {
                all = more;
            }
        }
        all
    }
}
