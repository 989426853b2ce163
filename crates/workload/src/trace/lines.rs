//! Lines of a file that may be anything at all.

use super::text::excerpt;
use super::unpack::Damaged;
use crate::WorkloadError;
use memchr::memchr;
use std::io::{self, Read};
use std::ops::Range;

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

/// Bytes read at once: a few of the longest lines.
const BUFFER_BYTES: usize = 4 * LINE_MAX_BYTES;

/// Reads lines of bounded length.
pub(crate) struct Lines<'r> {
    reader: Box<dyn Read + 'r>,
    name: &'r str,
    buffer: Vec<u8>,
    /// What of it has been read and not given yet.
    left: Range<usize>,
    number: u64,
    /// Where the next line ends, counted from its beginning, if that was looked for and found.
    end: Option<usize>,
}

impl<'r> Lines<'r> {
    pub(crate) fn new(reader: Box<dyn Read + 'r>, name: &'r str) -> Self {
        Self {
            reader,
            name,
            buffer: vec![0; BUFFER_BYTES],
            left: 0..0,
            number: 0,
            end: None,
        }
    }

    /// Whether the reader has to be asked for the next line.
    #[inline]
    pub(crate) fn must_read_on(&mut self) -> bool {
        self.end = memchr(b'\n', &self.buffer[self.left.clone()]);
        self.end.is_none()
    }

    /// The number of the last line.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Reads on to the end of the file: whether what it is packed in is damaged is known only there.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        io::copy(&mut self.reader, &mut io::sink()).map(drop)
    }

    /// The next line, or `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, WorkloadError> {
        let found = self.end.take();
        let mut end = found.or_else(|| memchr(b'\n', &self.buffer[self.left.clone()]));
        // What is longer is no line, whether it ends or not: a carriage return and the end may come on top.
        while end.is_none() && self.left.len() < LINE_MAX_BYTES + 2 {
            let looked_at = self.left.len();
            if !self.read_on()? {
                break;
            }
            let new = &self.buffer[self.left.start + looked_at..self.left.end];
            end = memchr(b'\n', new).map(|end| looked_at + end);
        }
        let length = end.map_or(self.left.len(), |end| end + 1);
        if length == 0 {
            return Ok(None);
        }
        let start = self.left.start;
        self.left.start += length;
        self.number += 1;
        let bytes = trim_line(&self.buffer[start..start + length]);
        if bytes.len() > LINE_MAX_BYTES || end.is_none() && length > LINE_MAX_BYTES + 1 {
            return Err(too_long(bytes, self.name, self.number));
        }
        Ok(Some(Line {
            bytes,
            number: self.number,
            terminated: end.is_some(),
        }))
    }

    /// Reads more behind what is left. Returns false at the end of the file.
    #[cold]
    fn read_on(&mut self) -> Result<bool, WorkloadError> {
        if self.left.start > 0 {
            self.buffer.copy_within(self.left.clone(), 0);
            self.left = 0..self.left.len();
        }
        loop {
            match self.reader.read(&mut self.buffer[self.left.end..]) {
                Ok(bytes) => {
                    self.left.end += bytes;
                    return Ok(bytes > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(&error, self.name)),
            }
        }
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
        Some(Damaged { packer, .. }) => said.hint(format!(
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

    /// Gives a byte at a time, or two, or three, and is interrupted before each.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1 % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = out.len().min(self.1 / 2 % 3 + 1);
            self.0.read(&mut out[..most])
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_much_comes_at_once() {
        let mut text = b"a,b\r\n\n c,d\n".repeat(3);
        text.extend([&b"e".repeat(LINE_MAX_BYTES)[..], b"\r\nthe end"].concat());
        let mut slowly = Lines::new(Box::new(Slowly(&text, 0)), "t");
        let mut found = Vec::new();
        while let Some(line) = slowly.next_line().unwrap() {
            found.push((line.number, line.bytes.to_vec(), line.terminated));
        }
        assert_eq!(found, lines(&text).unwrap());
        assert_eq!(found.len(), 11);
        assert_eq!(found[10], (11, b"the end".to_vec(), false));
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
