//! The job file's outer form: sections, `key=value` lines, comments, includes, variables.

use super::Context;
use crate::{Place, WorkloadError};

/// One option line.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// As typed.
    pub(super) key: String,
    /// `None` where there is no `=`.
    pub(super) value: Option<String>,
    pub(super) place: Place,
}

/// One section with the options of the files it includes.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) settings: Vec<Setting>,
}

impl Section {
    /// As in fio, any name that begins with `global` sets defaults.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// Includes nested deeper than this are taken for a file that includes itself.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Options in all; a job file that includes another many times over could fill memory.
const SETTINGS_MAX: usize = 100_000;

/// Reads a job file into sections.
pub(super) fn read(text: &str, context: &Context<'_>) -> Result<Vec<Section>, WorkloadError> {
    let mut reader = Reader {
        context,
        sections: Vec::new(),
        settings: 0,
    };
    reader.read(text, context.file_name, 0)?;
    Ok(reader.sections)
}

struct Reader<'a> {
    context: &'a Context<'a>,
    sections: Vec<Section>,
    settings: usize,
}

impl Reader<'_> {
    fn read(&mut self, text: &str, file: &str, depth: usize) -> Result<(), WorkloadError> {
        for (index, line) in text.lines().enumerate() {
            let place = Place {
                file: file.to_owned(),
                line: index as u64 + 1,
            };
            // As in fio, a comment sign ends the line wherever it stands.
            let line = line.split([';', '#']).next().unwrap_or("");
            let line = line.trim_matches(|c: char| c.is_whitespace() || c.is_control());
            if line.is_empty() {
                continue;
            }
            if line.starts_with('[') {
                self.section(line, place, depth)?;
            } else {
                self.setting(line, place, depth)?;
            }
        }
        Ok(())
    }

    fn section(&mut self, line: &str, place: Place, depth: usize) -> Result<(), WorkloadError> {
        let error = |message: &str| WorkloadError::new(message).at(&place.file, place.line);
        if depth > 0 {
            let error = error("an included file must not begin a section");
            return Err(error.hint("move the section into the file that includes it"));
        }
        let Some(name) = line[1..].strip_suffix(']') else {
            let name = line[1..].split(']').next().unwrap_or_default().trim();
            let name = if name.is_empty() { "job" } else { name };
            let error = error(&format!("a section must end with `]`, found `{line}`"));
            return Err(error.hint(format!("write `[{name}]`")));
        };
        if name.is_empty() {
            return Err(error("a section must have a name").hint("write `[job]`"));
        }
        self.sections.push(Section {
            name: name.to_owned(),
            place,
            settings: Vec::new(),
        });
        Ok(())
    }

    fn setting(&mut self, line: &str, place: Place, depth: usize) -> Result<(), WorkloadError> {
        let error = |message: String| WorkloadError::new(message).at(&place.file, place.line);
        if self.sections.is_empty() {
            let message = format!("option `{line}` stands before any section");
            return Err(error(message).hint("begin the file with `[global]` or `[job]`"));
        }
        self.settings += 1;
        if self.settings > SETTINGS_MAX {
            let error = error(format!("more than {SETTINGS_MAX} options"));
            return Err(error.hint("does a file include itself many times over?"));
        }
        if let Some(name) = line.strip_prefix("include")
            && name.starts_with(char::is_whitespace)
        {
            return self.include(name.trim(), &place, depth);
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim().to_owned())),
            None => (line, None),
        };
        if let Some(section) = self.sections.last_mut() {
            section.settings.push(Setting {
                key: key.to_owned(),
                value,
                place,
            });
        }
        Ok(())
    }

    /// As in fio, a name that cannot be read as it stands is looked for beside the including file.
    fn include(&mut self, name: &str, place: &Place, depth: usize) -> Result<(), WorkloadError> {
        if depth == INCLUDE_DEPTH_MAX {
            let message = format!("includes are nested more than {INCLUDE_DEPTH_MAX} deep");
            let error = WorkloadError::new(message).at(&place.file, place.line);
            return Err(error.hint("does a file include itself?"));
        }
        let include = self.context.include;
        let beside = place
            .file
            .rsplit_once('/')
            .map(|(dir, _)| format!("{dir}/{name}"));
        let (text, name) = match (include(name), beside) {
            (Ok(text), _) => (Ok(text), name.to_owned()),
            (Err(_), Some(beside)) if !name.starts_with('/') => (include(&beside), beside),
            (Err(error), _) => (Err(error), name.to_owned()),
        };
        let text = text.map_err(|error| {
            let message = format!("cannot read the included file `{name}`: {error}");
            let error = WorkloadError::new(message).at(&place.file, place.line);
            error.hint("its name starts at the current directory, or at the folder of the file that includes it")
        })?;
        self.read(&text, &name, depth + 1)
    }
}

impl Setting {
    /// Replaces every `${NAME}` by the environment's value.
    ///
    /// fio takes an unset variable for an empty one; here that is an error, since no option that
    /// matters may be empty.
    pub(super) fn expand(&mut self, context: &Context<'_>) -> Result<(), WorkloadError> {
        let Some(value) = &self.value else {
            return Ok(());
        };
        let mut rest = value.as_str();
        let mut expanded = String::new();
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else {
                break;
            };
            let name = &rest[start + 2..start + length];
            let found = (context.env)(name).ok_or_else(|| {
                let message = format!("`${{{name}}}` is not set in the environment");
                let hint = format!("set it for this run: `{name}=... lodger ...`");
                self.error(message).hint(hint)
            })?;
            expanded.push_str(&rest[..start]);
            expanded.push_str(&found);
            rest = &rest[start + length + 1..];
        }
        expanded.push_str(rest);
        self.value = Some(expanded);
        Ok(())
    }
}
