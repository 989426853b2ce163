//! Zstandard files: one frame after another (RFC 8878), as `cat` and `pzstd` make them.

use super::Damaged;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, Read};

/// Reads what all frames hold.
pub(super) struct Frames<R> {
    reader: R,
    decoder: FrameDecoder,
    /// A frame has been begun and not read to its end.
    is_open: bool,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(reader: R) -> Self {
        Frames {
            reader,
            decoder: FrameDecoder::new(),
            is_open: false,
        }
    }

    /// Begins the next frame; false at the end of the file.
    fn open(&mut self) -> io::Result<bool> {
        while !self.reader.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.reader) {
                Ok(()) => {
                    self.is_open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(u64::from(length))?,
                Err(_) => return Err(Damaged::by("zstd")),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length_bytes: u64) -> io::Result<()> {
        let mut rest = self.reader.by_ref().take(length_bytes);
        if io::copy(&mut rest, &mut io::sink())? < length_bytes {
            return Err(Damaged::by("zstd"));
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let said = self.decoder.get_checksum_from_data();
        if said.is_some() && said != self.decoder.get_calculated_checksum() {
            return Err(Damaged::by("zstd"));
        }
        self.is_open = false;
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_open && !self.open()? {
                return Ok(0);
            }
            while self.decoder.can_collect() < out.len() && !self.decoder.is_finished() {
                let missing = out.len() - self.decoder.can_collect();
                self.decoder
                    .decode_blocks(&mut self.reader, BlockDecodingStrategy::UptoBytes(missing))
                    .map_err(|_| Damaged::by("zstd"))?;
            }
            let bytes = self.decoder.read(out)?;
            if bytes > 0 || out.is_empty() {
                return Ok(bytes);
            }
            self.close()?;
        }
    }
}
