//! The proxy variables that `env`, `run` and `demo` set.

pub(crate) use squall_harness::agents::pointing::{Variable, encode, script, variables};

use squall_harness::agents::pointing::ShellLanguage;

use crate::args::Shell;

impl Shell {
    /// The language of its commands.
    pub(crate) fn language(self) -> ShellLanguage {
        match self {
            Self::Bash => ShellLanguage::Bash,
            Self::Fish => ShellLanguage::Fish,
            Self::Powershell => ShellLanguage::Powershell,
            Self::Dotenv => ShellLanguage::Dotenv,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_shell_gets_the_whole_set() {
        let variables = variables(
            "127.0.0.1:7070",
            Some("job 1"),
            Path::new("/home/it's/ca.pem"),
        );
        let scripts: Vec<_> = [Shell::Bash, Shell::Fish, Shell::Powershell, Shell::Dotenv]
            .map(|shell| script(shell.language(), &variables))
            .into();
        insta::assert_snapshot!(scripts.join("\n"));
    }
}
