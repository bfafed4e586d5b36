//! Environment variables of options: `SQUALL_` and the name in capitals, `--log-level` as `SQUALL_LOG_LEVEL`. The
//! option overrides its variable.

use clap::builder::{FalseyValueParser, OsStr, Resettable};
use clap::{Arg, ArgAction, Command};
use squall_control_api::environment_variable;
use squall_documents::VariableError;
use squall_harness::agents::group::TOKEN_VARIABLES;

use crate::failure::Failure;

/// Adds a variable to every option of the command and its subcommands that has none.
pub(crate) fn given(command: Command) -> Command {
    command
        .mut_args(|argument| set(with_variable(argument)))
        .mut_subcommands(given)
}

/// The token of `SQUALL_TOKEN`, or of the file that `SQUALL_TOKEN_FILE` names.
pub(crate) fn token() -> Result<Option<String>, Failure> {
    match environment_variable(TOKEN_VARIABLES[0]) {
        Ok(token) => Ok(Some(token).filter(|token| !token.is_empty())),
        Err(VariableError::NotSet) => Ok(None),
        Err(VariableError::Invalid(why)) => Err(Failure::Usage(why)),
    }
}

/// Ignores a variable that is set to the empty text, such as a missing secret in CI.
fn set(argument: Arg) -> Arg {
    let value = argument.get_env().and_then(std::env::var_os);
    if value.is_some_and(|value| value.is_empty()) {
        return argument.env(Resettable::<OsStr>::Reset);
    }
    argument
}

/// An error that names the variable instead of the option if the invalid value is that of the variable.
pub(crate) fn named(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let option = text(ContextKind::InvalidArg);
    let value = text(ContextKind::InvalidValue);
    let name = option
        .as_deref()
        .and_then(|option| option.strip_prefix("--"));
    if let (Some(name), Some(value)) = (name, value) {
        let variable = variable(name.split(' ').next().unwrap_or_default());
        let is_option = std::env::args().any(|argument| argument.contains(&value));
        if !is_option && std::env::var(&variable).is_ok_and(|set| set == value) {
            error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
        }
    }
    error
}

fn variable(option: &str) -> String {
    format!("SQUALL_{}", option.to_uppercase().replace('-', "_"))
}

fn with_variable(argument: Arg) -> Arg {
    let Some(name) = argument.get_long().filter(|_| argument.get_env().is_none()) else {
        return argument;
    };
    let variable = variable(name);
    // clap requires static names, so they are leaked. Help hides them; the documentation describes the rule.
    let argument = argument.env(&*variable.leak()).hide_env(true);
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        return argument.value_parser(FalseyValueParser::new());
    }
    argument
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command, CommandFactory as _};

    use super::given;
    use crate::args::Arguments;

    /// Every option of a command and its subcommands, without clap's own.
    fn options(command: &Command) -> Vec<&Arg> {
        let own = command.get_arguments().filter(|arg| {
            let is_clap_s = matches!(
                arg.get_action(),
                ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
            );
            arg.get_long().is_some() && !is_clap_s
        });
        own.chain(command.get_subcommands().flat_map(options))
            .collect()
    }

    #[test]
    fn every_option_has_the_variable_of_its_name() {
        let command = given(Arguments::command());
        command.clone().debug_assert();
        let options = options(&command);
        assert!(options.len() > 40, "{}", options.len());
        for option in options {
            let name = option.get_long().unwrap_or_default();
            let variable = option.get_env().and_then(|variable| variable.to_str());
            let expected = format!("SQUALL_{}", name.to_uppercase().replace('-', "_"));
            assert_eq!(variable, Some(expected.as_str()), "--{name}");
        }
    }
}
