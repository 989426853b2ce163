//! Jobs from several places: a command line, and job files one after the other.

use super::ini::{self, Section, Setting};
use super::options::Options;
use super::{Context, build, order};
use crate::{Job, Place, Workload, WorkloadError};

/// What is said beside a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Options of a command line, in order. As in fio `name` begins a job, and what stands before the first `name`, or
    /// after `name=global`, holds for all jobs, those of files among them.
    pub line: Vec<(String, Option<String>)>,
    /// Further job files, names and texts. As in fio each starts when the one before is done, and knows nothing of its
    /// `[global]`.
    pub files: Vec<(String, String)>,
    /// Only sections of these names are read of the files; all where there are none.
    pub sections: Vec<String>,
}

/// What messages call the command line.
const LINE: &str = "command line";

/// As [`super::parse`], with what is said beside the file; jobs of the command line come first.
///
/// # Errors
/// As [`super::parse`], or if no file has a section that is asked for.
pub fn parse_beside(
    text: &str,
    beside: &Beside,
    context: &Context<'_>,
) -> Result<Workload, WorkloadError> {
    let is_nameless = |(key, value): &(String, Option<String>)| {
        key == "name" && value.as_ref().is_none_or(|name| name.trim().is_empty())
    };
    if beside.line.iter().any(is_nameless) {
        let error = WorkloadError::new("`--name` begins a job and needs its name");
        return Err(error.hint("such as `--name=oltp`; its options follow it"));
    }
    let mut parser = Parser::default();
    parser.take(line(&beside.line), false, context)?;
    let globals = (parser.defaults.clone(), parser.global_options.clone());
    let first = (context.file_name, text);
    let more = beside.files.iter();
    let more = more.map(|(name, text)| (name.as_str(), text.as_str()));
    let mut names = Vec::new();
    for (place, (file_name, text)) in std::iter::once(first).chain(more).enumerate() {
        let context = Context {
            file_name,
            ..*context
        };
        let mut sections = ini::read(text, &context)?;
        names.extend(sections.iter().map(|section| section.name.clone()));
        if !beside.sections.is_empty() {
            sections
                .retain(|section| section.is_global() || beside.sections.contains(&section.name));
        }
        (parser.defaults, parser.global_options) = globals.clone();
        parser.take(sections, place > 0, &context)?;
    }
    if let Some(name) = beside.sections.iter().find(|name| !names.contains(name)) {
        let error = WorkloadError::new(format!("there is no section `[{name}]`"));
        names.retain(|name| !name.starts_with("global"));
        names.dedup();
        names.truncate(20);
        return Err(error.hint(match &names[..] {
            [] => {
                "`--section` chooses among the jobs of a job file, and none was given that has jobs"
                    .to_owned()
            }
            names => format!("there are: {}", names.join(", ")),
        }));
    }
    parser.workload(context, beside)
}

/// Sections of a command line.
fn line(options: &[(String, Option<String>)]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (key, value) in options {
        let place = Place {
            file: LINE.to_owned(),
            line: 0,
        };
        let begins = key == "name";
        if begins || sections.is_empty() {
            let name = value.as_deref().filter(|_| begins);
            sections.push(Section {
                name: name.unwrap_or("global").to_owned(),
                place: place.clone(),
                settings: Vec::new(),
            });
        }
        if let Some(section) = sections.last_mut()
            && !(begins && section.is_global())
        {
            section.settings.push(Setting {
                key: key.clone(),
                value: value.clone(),
                place,
            });
        }
    }
    sections
}

#[derive(Default)]
struct Parser {
    defaults: Options,
    global_options: Vec<(String, String)>,
    numbering: build::Numbering,
    order: order::Order,
    jobs: Vec<Job>,
}

impl Parser {
    /// Takes the sections of one source; `waits`: the first job, and with it all, for the jobs so far.
    fn take(
        &mut self,
        sections: Vec<Section>,
        mut waits: bool,
        context: &Context<'_>,
    ) -> Result<(), WorkloadError> {
        for section in sections {
            if section.is_global() {
                for (name, value) in self.defaults.apply_all(&section.settings, context)? {
                    self.global_options.retain(|(old, _)| *old != name);
                    self.global_options.push((name, value));
                }
                continue;
            }
            let mut options = self.defaults.clone();
            let echo = options.apply_all(&section.settings, context)?;
            options.stonewall |= std::mem::take(&mut waits);
            let clones = build::clones(&section, &options, &mut self.numbering, context)?;
            self.order.add(&section, &options, &clones)?;
            for mut job in clones {
                job.options.clone_from(&echo);
                job.global_options.clone_from(&self.global_options);
                self.jobs.push(job);
            }
        }
        Ok(())
    }

    fn workload(
        mut self,
        context: &Context<'_>,
        beside: &Beside,
    ) -> Result<Workload, WorkloadError> {
        if self.jobs.is_empty() {
            let error = WorkloadError::new(format!("`{}` defines no job", context.file_name));
            return Err(error.hint(match beside.line.is_empty() {
                true => "add a section such as `[job]`",
                false => "begin a job with `--name=JOB`",
            }));
        }
        self.order.apply(&mut self.jobs);
        Ok(Workload {
            description: "fio job file".to_owned(),
            jobs: self.jobs,
        })
    }
}
