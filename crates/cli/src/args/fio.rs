//! Jobs on the command line, several job files, and which of their sections run.

use clap::Args;

/// Jobs as fio takes them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "fio jobs")]
pub struct FioArgs {
    /// Run only this section of the job files; may be repeated
    #[arg(long = "section", value_name = "NAME")]
    pub sections: Vec<String>,
    /// A job on the command line: `--name=JOB --rw=randread --bs=4k ...`, with any option of fio job files
    ///
    /// Options before the first `--name`, or after `--name=global`, hold for all jobs, those of job files among them.
    /// `--iodepth` is the jobs' after `--name`, and where no file is given. `docs/reference/fio-options.md` lists the options.
    #[arg(long = "name", value_name = "JOB")]
    pub names: Vec<String>,
    /// Options of jobs, `KEY` or `KEY=VALUE`: `fio_line` makes them of what was typed, `--name` among it.
    #[arg(long = "fio-option", hide = true, allow_hyphen_values = true)]
    pub options: Vec<String>,
}

impl FioArgs {
    /// Names and values of the options, in the order typed.
    #[must_use]
    pub fn line(&self) -> Vec<(String, Option<String>)> {
        let split = |option: &String| match option.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (option.clone(), None),
        };
        self.options.iter().map(split).collect()
    }
}
