//! `lodger help`, `lodger completions` and `lodger man`.

use super::Streams;
use crate::args::{CompletionsArgs, HelpArgs, ManArgs};
use crate::error::Error;
use crate::manual;
use crate::output;
use clap::Command;
use clap_mangen::Man;
use lodger_run::reason;
use std::path::Path;

/// The help of a command is told by the command, so that those of the Python package tell theirs.
pub(super) fn help(args: HelpArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    // This one has no `--help` of its own.
    if args.command == ["help"] {
        let mut tree = manual::tree();
        tree.build();
        let shown = manual::find(&tree, &args.command)
            .map(|command| command.clone().render_help().to_string());
        output::finish(None, streams.stdout, &shown.unwrap_or_default())?;
        return Ok(0);
    }
    let mut words = vec!["lodger".to_owned()];
    words.extend(args.command);
    words.push("--help".into());
    Ok(crate::main_with_args(words, streams.stdout, streams.stderr))
}

pub(super) fn completions(args: &CompletionsArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let mut script = Vec::new();
    let mut tree = manual::with_drives(manual::tree());
    clap_complete::generate(args.shell, &mut tree, "lodger", &mut script);
    output::finish(None, streams.stdout, &String::from_utf8_lossy(&script))
}

pub(super) fn man(args: &ManArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let mut tree = manual::tree();
    tree.build();
    if let Some(folder) = &args.out {
        // As `lodger sweep --out` does.
        std::fs::create_dir_all(folder).map_err(|error| no_folder(folder, &error))?;
        return all(&tree, folder);
    }
    let Some(command) = manual::find(&tree, &args.command) else {
        let message = format!("there is no command `{}`", args.command.join(" "));
        return Err(Error::input(message).hint("`lodger help` lists them"));
    };
    output::finish(None, streams.stdout, &page(command).1)
}

fn no_folder(folder: &Path, error: &std::io::Error) -> Error {
    let shown = folder.display();
    let error = match folder.exists() && !folder.is_dir() {
        true => Error::input(format!("`{shown}` is no folder")),
        false => Error::input(format!(
            "cannot make the folder `{shown}`: {}",
            reason(error)
        )),
    };
    error.hint("name a folder that is there, or one that can be made")
}

/// The name of a command's page, and the page.
fn page(command: &Command) -> (String, String) {
    let man = Man::new(command.clone()).manual("Lodger");
    let mut text = Vec::new();
    // A vector takes everything.
    let _ = man.render(&mut text);
    let text = String::from_utf8_lossy(&text);
    // Examples keep their lines, to be copied.
    let page = match text.split_once(".SH EXTRA\n") {
        None => text.into_owned(),
        Some((before, examples)) => {
            let (examples, after) =
                examples.split_at(examples.find(".SH ").unwrap_or(examples.len()));
            format!("{before}.SH EXAMPLES\n.nf\n{examples}.fi\n{after}")
        }
    };
    (man.get_filename(), page)
}

fn all(command: &Command, folder: &Path) -> Result<(), Error> {
    let (name, text) = page(command);
    let file = output::begin(Some(&folder.join(name)))?;
    output::finish(file, &mut std::io::sink(), &text)?;
    command
        .get_subcommands()
        .try_for_each(|below| all(below, folder))
}
