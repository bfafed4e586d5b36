//! The proxy variables that `env`, `run` and `demo` set.

pub(crate) use squall_harness::agents::pointing::{Variable, encode, variables};

use crate::args::Shell;

/// The variables as shell commands, one a line.
pub(crate) fn script(shell: Shell, variables: &[Variable]) -> String {
    let line = |(name, value): &Variable| match shell {
        Shell::Bash => format!("export {name}={}\n", quoted(value, "'\\''")),
        Shell::Fish => format!(
            "set -gx {name} {}\n",
            quoted(&value.replace('\\', "\\\\"), "\\'")
        ),
        Shell::Powershell => format!("$env:{name} = {}\n", quoted(value, "''")),
        Shell::Dotenv => {
            format!(
                "{name}=\"{}\"\n",
                value.replace('\\', "\\\\").replace('"', "\\\"")
            )
        }
    };
    variables.iter().map(line).collect()
}

/// The text in single quotes; `escape` replaces a single quote in it.
pub(crate) fn quoted(text: &str, escape: &str) -> String {
    format!("'{}'", text.replace('\'', escape))
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
            .map(|shell| script(shell, &variables))
            .into();
        insta::assert_snapshot!(scripts.join("\n"));
    }
}
