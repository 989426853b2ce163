//! Commands about the command.

use clap::{Args, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// `lodger help`.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// The command, such as `simulate` or `drives show`; all of them without it
    pub command: Vec<String>,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples, for good:
  lodger completions bash > ~/.local/share/bash-completion/completions/lodger
  lodger completions zsh > \"${fpath[1]}/_lodger\"
  lodger completions fish > ~/.config/fish/completions/lodger.fish

For this shell alone: source <(lodger completions bash)";

/// `lodger completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

const MAN_EXAMPLES: &str = "\
Examples:
  lodger man simulate | man -l -
  lodger man --out ~/.local/share/man/man1                  then `man lodger-simulate`";

/// `lodger man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// The command, such as `simulate` or `drives show`; `lodger` itself without it
    pub command: Vec<String>,
    /// Write a page for each command to DIR, which must be there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub out: Option<PathBuf>,
}
