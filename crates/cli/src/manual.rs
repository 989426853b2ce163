//! All that can be typed, as one tree: for manual pages, completions and what was meant.
//!
//! The commands of the Python package read their own arguments. What those are is in `outside.json`, which
//! `make docs` writes from the package and a test of it compares.

use crate::args::Cli;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, CommandFactory};
use serde_json::Value;

const OUTSIDE: &str = include_str!("outside.json");

/// The command with those of the Python package.
#[must_use]
pub fn tree() -> Command {
    let all: Value = serde_json::from_str(OUTSIDE).unwrap_or_default();
    let mut tree = Cli::command();
    for outside in list(&all, "commands") {
        let name = text(outside, "name");
        tree = tree.mut_subcommand(name, |placeholder| {
            let about = placeholder.get_about().cloned().unwrap_or_default();
            described(outside).about(about)
        });
    }
    tree
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// A command as argparse has it.
fn described(command: &Value) -> Command {
    let mut made = Command::new(text(command, "name")).about(text(command, "help"));
    if let Some(epilog) = command["epilog"].as_str() {
        made = made.after_help(epilog.to_owned());
    }
    for argument in list(command, "arguments") {
        let id = text(argument, "name");
        let mut arg = Arg::new(id.clone()).help(text(argument, "help"));
        if argument["is_option"] == true {
            arg = arg.long(id);
        }
        arg = match argument["value"].as_str() {
            None => arg.action(ArgAction::SetTrue),
            Some(value) => arg.value_name(value.to_owned()).action(ArgAction::Append),
        };
        let choices: Vec<String> = list(argument, "choices")
            .filter_map(|choice| Some(choice.as_str()?.to_owned()))
            .collect();
        if !choices.is_empty() {
            arg = arg.value_parser(PossibleValuesParser::new(choices));
        }
        made = made.arg(arg);
    }
    made.subcommands(list(command, "commands").map(described))
}

/// Drives are completed by name. A file can be given as well: such a tree parses nothing.
#[must_use]
pub fn with_drives(command: Command) -> Command {
    let is_drive = |arg: &Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        matches!(arg.get_id().as_str(), "drive" | "drives") && !names.is_empty()
    };
    let command = command.mut_args(|arg| match is_drive(&arg) {
        true => arg.value_parser(PossibleValuesParser::new(lodger_run::drives::names())),
        false => arg,
    });
    command.mut_subcommands(with_drives)
}

/// The command of those words, built: `drives show`.
#[must_use]
pub fn find<'a>(tree: &'a Command, words: &[String]) -> Option<&'a Command> {
    let below = |command: &'a Command, word: &String| command.find_subcommand(word);
    words.iter().try_fold(tree, below)
}

/// Commands that have a long option: `study run`.
#[must_use]
pub fn commands_with(option: &str) -> Vec<String> {
    fn search(command: &Command, name: &str, option: &str, found: &mut Vec<String>) {
        let mut longs = command.get_arguments().filter_map(Arg::get_long);
        if longs.any(|long| Some(long) == option.strip_prefix("--")) {
            found.push(name.trim_start().to_owned());
        }
        for below in command.get_subcommands() {
            let name = format!("{name} {}", below.get_name());
            search(below, &name, option, found);
        }
    }
    let mut found = Vec::new();
    search(&tree(), "", option, &mut found);
    found
}

/// The words that name a command: `drives`, `show`.
#[must_use]
pub fn command(words: &[String]) -> Vec<String> {
    let tree = tree();
    let mut at = &tree;
    let mut named = Vec::new();
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let Some(below) = at.find_subcommand(word) else {
            break;
        };
        at = below;
        named.push(word.clone());
    }
    named
}

/// Long options of the command that `words` name, and of it alone.
fn options(words: &[String]) -> Vec<String> {
    let mut tree = tree();
    tree.build();
    let named = find(&tree, &command(words));
    let longs = named
        .into_iter()
        .flat_map(Command::get_arguments)
        .filter_map(Arg::get_long);
    longs.map(|long| format!("--{long}")).collect()
}

/// The option that was meant by one that is not there. clap knows letters left out, but not two that changed places.
#[must_use]
pub fn meant(words: &[String], option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or(option);
    let options = options(words).into_iter();
    let edits = options.map(|known| (strsim::damerau_levenshtein(&known, option), known));
    let (edits, known) = edits.min()?;
    (edits <= (option.len() / 5).max(1)).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_one_that_clap_takes() {
        tree().debug_assert();
    }

    #[test]
    fn the_option_that_was_meant() {
        let words = ["simulate", "x.fio"].map(str::to_owned);
        assert_eq!(meant(&words, "--hbm=off").as_deref(), Some("--hmb"));
        assert_eq!(meant(&words, "--nothing-like-it"), None);
        let words = ["sweep"].map(str::to_owned);
        assert_eq!(meant(&words, "--vayr").as_deref(), Some("--vary"));
    }

    #[test]
    fn the_commands_that_have_an_option() {
        assert_eq!(commands_with("--vary"), ["sweep"]);
        assert_eq!(commands_with("--nothing-like-it"), [""; 0]);
    }
}
