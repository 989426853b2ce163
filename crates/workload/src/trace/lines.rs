//! Lines of a file that may be anything at all.

use super::text::excerpt;
use super::unpack::Damaged;
use crate::WorkloadError;
use std::io::{self, BufRead, Read};

/// Longest line read. The longest honest line (blkparse with a command dump) is a few hundred
/// bytes; a binary file without newlines must not be read into memory whole.
pub(crate) const LINE_MAX_BYTES: usize = 64 * 1024;

/// What is said of a line that is longer than [`LINE_MAX_BYTES`].
pub(crate) fn too_long(line: &[u8], name: &str, number: u64) -> WorkloadError {
    let message = format!(
        "a line may be at most {LINE_MAX_BYTES} bytes long; this one begins `{}`",
        excerpt(line)
    );
    WorkloadError::new(message)
        .at(name, number)
        .hint("a block trace is a text file with one request a line")
}

/// One line, without its line ending.
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// Counted from 1.
    pub(crate) number: u64,
    /// Whether a newline followed: the last line of a file that was cut short has none.
    pub(crate) terminated: bool,
}

/// Reads lines of bounded length.
pub(crate) struct Lines<'r> {
    reader: Box<dyn BufRead + 'r>,
    name: &'r str,
    buffer: Vec<u8>,
    number: u64,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(reader: Box<dyn BufRead + 'r>, name: &'r str) -> Self {
        Self {
            reader,
            name,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// Reads on to the end of the file: whether what it is packed in is damaged is known only there.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        io::copy(&mut self.reader, &mut io::sink()).map(drop)
    }

    /// The next line, or `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, WorkloadError> {
        self.buffer.clear();
        // One byte more than allowed tells a line that fits exactly from one that is too long.
        let limit = LINE_MAX_BYTES as u64 + 2;
        self.reader
            .as_mut()
            .take(limit)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| read_error(&error, self.name))?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let terminated = self.buffer.last() == Some(&b'\n');
        let bytes = trim_line(&self.buffer);
        if bytes.len() > LINE_MAX_BYTES {
            return Err(too_long(bytes, self.name, self.number));
        }
        Ok(Some(Line {
            bytes,
            number: self.number,
            terminated,
        }))
    }
}

/// What is wrong with a packed file of which the rest has been read, if that is the packing.
pub(crate) fn damaged(rest: io::Result<()>, name: &str) -> Option<WorkloadError> {
    let error = rest.err()?;
    let is_damage = error.get_ref()?.is::<Damaged>();
    is_damage.then(|| read_error(&error, name))
}

pub(crate) fn read_error(error: &std::io::Error, name: &str) -> WorkloadError {
    let said = WorkloadError::new(format!("cannot read `{name}`: {error}"));
    let damaged = error.get_ref().and_then(|inner| inner.downcast_ref());
    match damaged {
        Some(Damaged(packer)) => said.hint(format!(
            "copy or pack it again; `{packer} -dc FILE | lodger ... -` takes what comes before that"
        )),
        None if error.kind() == io::ErrorKind::InvalidData => {
            said.hint("copy it again; what stands before that can be taken with `head -c`")
        }
        None => said,
    }
}

/// A line without surrounding white space (a carriage return among it) and without the
/// byte-order mark that some spreadsheets put first.
pub(crate) fn trim_line(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii()
}

/// Whether a line holds data: not empty, and no comment.
pub(crate) fn is_significant(line: &[u8]) -> bool {
    !line.is_empty() && line[0] != b'#'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Result<Vec<(u64, Vec<u8>, bool)>, WorkloadError> {
        let mut lines = Lines::new(Box::new(text), "t");
        let mut out = Vec::new();
        while let Some(line) = lines.next_line()? {
            out.push((line.number, line.bytes.to_vec(), line.terminated));
        }
        Ok(out)
    }

    #[test]
    fn endings_of_every_kind_are_removed() {
        assert_eq!(
            lines(b"\xef\xbb\xbfa,b\r\n\n c").unwrap(),
            [
                (1, b"a,b".to_vec(), true),
                (2, b"".to_vec(), true),
                (3, b"c".to_vec(), false)
            ]
        );
        assert_eq!(lines(b"").unwrap(), []);
    }

    #[test]
    fn the_longest_line_is_read_and_one_byte_more_is_an_error() {
        let mut text = vec![b'a'; LINE_MAX_BYTES];
        text.push(b'\n');
        assert_eq!(lines(&text).unwrap().len(), 1);
        text.insert(0, b'a');
        let error = lines(&text).unwrap_err();
        assert_eq!(error.place.unwrap().line, 1);
    }
}
