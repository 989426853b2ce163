//! The file that `--timeline` names.

use crate::args::TimeArgs;
use crate::commands::Streams;
use crate::error::Error;
use crate::output::{OutputFile, cannot_write};
use lodger_core::DriveSpec;
use lodger_run::timeline::{Interval, Table, Values};
use lodger_run::{RunResult, Timeline, reason};
use parquet::basic::{Repetition, Type as Physical};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// Form of a table, by the ending of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Csv,
    Parquet,
    JsonLines,
}

/// A timeline's file in the making.
#[derive(Debug)]
pub(crate) struct TimelineFile {
    file: OutputFile,
    form: Form,
    interval: Interval,
}

impl TimelineFile {
    /// Begins the file, if one is wanted.
    ///
    /// # Errors
    /// If its ending says nothing, it cannot be written, or the interval makes no sense.
    pub(crate) fn begin(args: &TimeArgs) -> Result<Option<Self>, Error> {
        let Some(path) = &args.timeline else {
            return Ok(None);
        };
        let ending = path.extension().and_then(|ending| ending.to_str());
        let form = match ending {
            Some("csv") => Form::Csv,
            Some("parquet") => Form::Parquet,
            Some("jsonl") => Form::JsonLines,
            _ => {
                let shown = path.display();
                let message = format!(
                    "`--timeline` must name a file that ends in `.csv`, `.parquet` or `.jsonl`, found `{shown}`"
                );
                return Err(Error::input(message).hint("the ending says which of them is written"));
            }
        };
        let interval = args.timeline_interval.as_deref().map(str::parse);
        Ok(Some(TimelineFile {
            interval: interval.transpose()?.unwrap_or_default(),
            file: OutputFile::create(path)?,
            form,
        }))
    }

    /// Who watches the run.
    pub(crate) fn timeline(&self, spec: &DriveSpec, submit_ps: u64) -> Timeline {
        Timeline::new(self.interval, spec, submit_ps)
    }

    /// Writes what was seen; the file is to be put in its place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(
        self,
        seen: Timeline,
        result: &RunResult,
        streams: &mut Streams<'_>,
    ) -> Result<OutputFile, Error> {
        let TimelineFile { mut file, form, .. } = self;
        let table = seen.finish(result);
        if let Some(warning) = table.warning() {
            streams.warning(&warning);
        }
        let written = match form {
            Form::Csv => table.write_csv(&mut file),
            Form::JsonLines => table.write_json_lines(&mut file),
            Form::Parquet => write_parquet(&table, &mut file).map_err(io_error),
        };
        match written.and_then(|()| file.flush()) {
            Ok(()) => Ok(file),
            Err(error) => Err(cannot_write(file.shown(), &reason(&error))),
        }
    }
}

/// What the disk said, where it was the disk.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause),
        },
        error => io::Error::other(error),
    }
}

/// Writes the table as one row group of optional columns.
fn write_parquet(table: &Table, to: &mut (impl Write + Send)) -> Result<(), ParquetError> {
    let mut fields = Vec::new();
    for column in &table.columns {
        let physical = match column.values {
            Values::Whole(_) => Physical::INT64,
            Values::Real(_) => Physical::DOUBLE,
        };
        let field = Type::primitive_type_builder(&column.name, physical);
        let field = field.with_repetition(Repetition::OPTIONAL).build()?;
        fields.push(Arc::new(field));
    }
    let schema = Type::group_type_builder("timeline").with_fields(fields);
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(to, Arc::new(schema.build()?), properties)?;
    let mut group = writer.next_row_group()?;
    for column in &table.columns {
        let Some(mut writer) = group.next_column()? else {
            break;
        };
        match &column.values {
            Values::Whole(values) => {
                let (levels, present) =
                    split(values, |value| i64::try_from(value).unwrap_or(i64::MAX));
                writer
                    .typed::<Int64Type>()
                    .write_batch(&present, Some(&levels), None)?;
            }
            Values::Real(values) => {
                let (levels, present) = split(values, |value| value);
                writer
                    .typed::<DoubleType>()
                    .write_batch(&present, Some(&levels), None)?;
            }
        }
        writer.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

/// Definition levels, and the values that are there.
fn split<T: Copy, U>(values: &[Option<T>], of: impl Fn(T) -> U) -> (Vec<i16>, Vec<U>) {
    let levels = values.iter().map(|value| i16::from(value.is_some()));
    (
        levels.collect(),
        values.iter().flatten().map(|value| of(*value)).collect(),
    )
}
