//! `lodger drives`.

use super::Streams;
use crate::args::{DrivesArgs, DrivesCommand, PlainFormat, ShowFormat};
use crate::error::{Error, ErrorKind};
use crate::inputs;
use crate::output;
use lodger_core::spec::SourceKind;
use lodger_run::report::toml_value;
use lodger_run::{Drive, drives, size, window_study};
use serde_json::{Map, Value, json};
use std::path::Path;

pub(super) fn run(args: DrivesArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let list = DrivesCommand::List {
        output_format: PlainFormat::Normal,
    };
    let text = match args.command.unwrap_or(list) {
        DrivesCommand::List { output_format } => list_drives(output_format)?,
        DrivesCommand::Show {
            drive,
            sets,
            output_format,
        } => {
            let drive = inputs::drive(&drive, &sets)?;
            match output_format {
                ShowFormat::Normal => show(&drive),
                ShowFormat::Json => show_json(&drive),
                ShowFormat::Toml => drive.parsed.to_toml(),
            }
        }
        DrivesCommand::Check { file } => check(&file)?,
    };
    output::finish(None, streams.stdout, &text)
}

fn all() -> Result<Vec<Drive>, Error> {
    drives::names().map(|name| Drive::open(name, &[])).collect()
}

fn list_drives(format: PlainFormat) -> Result<String, Error> {
    let hmb = |drive: &Drive| {
        let hmb = drive.parsed.spec.tiers.hmb.as_ref();
        hmb.map_or(0, |hmb| hmb.preferred_bytes)
    };
    if format == PlainFormat::Json {
        let drives: Vec<Value> = all()?
            .iter()
            .map(|drive| {
                let spec = &drive.parsed.spec;
                json!({
                    "name": drive.name,
                    "title": spec.name,
                    "capacity_bytes": spec.capacity_bytes,
                    "hmb_preferred_bytes": hmb(drive),
                })
            })
            .collect();
        return Ok(format!("{:#}\n", json!({ "drives": drives })));
    }
    let mut out = format!(
        "{:<18} {:>10} {:>12}  title\n",
        "name", "capacity", "host memory"
    );
    for drive in all()? {
        let spec = &drive.parsed.spec;
        let hmb = match hmb(&drive) {
            0 => "-".to_owned(),
            bytes => size::show(bytes),
        };
        let capacity = size::show_decimal(spec.capacity_bytes);
        out += &format!(
            "{:<18} {capacity:>10} {hmb:>12}  {}\n",
            drive.name, spec.name
        );
    }
    Ok(out)
}

/// Key, value, kind, source; what is only a default or follows from the rest says so.
fn show(drive: &Drive) -> String {
    let values = &drive.parsed.values;
    let width = |of: &dyn Fn(usize) -> usize| (0..values.len()).map(of).max().unwrap_or(0);
    let key_width = width(&|i| values[i].key.chars().count());
    let text_width = width(&|i| values[i].text.chars().count().min(36));
    let mut out = String::new();
    for value in values {
        let kind = value.source.kind;
        let from = match kind {
            SourceKind::Default | SourceKind::Unstated => "",
            _ => value.source.from.as_str(),
        };
        let line = format!(
            "{:key_width$}  {:text_width$}  {:12}  {from}",
            value.key,
            value.text,
            kind.name()
        );
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn show_json(drive: &Drive) -> String {
    let values: Map<String, Value> = drive
        .parsed
        .values
        .iter()
        .map(|value| {
            let entry = json!({
                "value": toml_value(&value.toml),
                "text": value.text,
                "kind": value.source.kind.name(),
                "source": value.source.from,
                "fitted_to": value.source.to,
            });
            (value.key.to_owned(), entry)
        })
        .collect();
    format!("{:#}\n", json!({ "name": drive.name, "values": values }))
}

/// A file that cannot be read is wrong use; one that is wrong has failed the check.
fn check(file: &Path) -> Result<String, Error> {
    let text = inputs::files().text(file, "drive file")?;
    let name = file.display().to_string();
    let parsed = inputs::files().parse_drive(&text, &name, &[]);
    let parsed = parsed.map_err(|error| Error {
        kind: ErrorKind::Failed,
        ..error
    })?;
    let unstated: Vec<&str> = parsed
        .values
        .iter()
        .filter(|value| value.numeric && value.source.kind == SourceKind::Unstated)
        .map(|value| value.key)
        .collect();
    let mut out = format!("{name}: ok, {}\n", parsed.spec.name);
    if !unstated.is_empty() {
        out += &format!("no source is given for: {}\n", unstated.join(", "));
    }
    if let Some(warning) = window_study::shortfall(&parsed.spec) {
        out += &format!("but {warning}\n");
    }
    Ok(out)
}
