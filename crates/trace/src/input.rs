//! The bytes of a trace, a buffer at a time, cut into lines or records without copying.

use crate::error::Fault;
use std::io::{self, Read};

/// Bytes read at a time; the longest line that is read.
pub(crate) const BUFFER_BYTES: usize = 1 << 18;

/// A buffer over the decompressed bytes.
pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `buffer[start]` lies in the decompressed file.
    offset: u64,
    is_end: bool,
}

/// Where a line lies in the buffer.
pub(crate) struct Line {
    start: usize,
    end: usize,
    /// Whether a newline ends it.
    pub(crate) is_whole: bool,
}

impl Input {
    pub(crate) fn new(source: Box<dyn Read + Send>) -> Input {
        Input { source, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, offset: 0, is_end: false }
    }

    /// Bytes taken so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// What is in the buffer and not taken.
    pub(crate) fn held(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether [`Input::held`] is all that is left.
    pub(crate) fn is_end(&self) -> bool {
        self.is_end
    }

    /// Takes `count` bytes of what is held.
    pub(crate) fn take(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "only what is held can be taken");
        self.start += count;
        self.offset += count as u64;
    }

    /// Reads until the buffer is full or nothing more comes.
    pub(crate) fn fill(&mut self) -> Result<(), Fault> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < self.buffer.len() && !self.is_end {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.is_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(self.failed(why)),
            }
        }
        Ok(())
    }

    /// Takes the next line; `None` at the end. Its bytes are [`Input::text`] until the next call.
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<Line>, Fault> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', self.held()) {
                let line = Line { start: self.start, end: self.start + length, is_whole: true };
                self.take(length + 1);
                return Ok(Some(line));
            }
            if self.is_end {
                return Ok(self.rest());
            }
            if self.end - self.start == self.buffer.len() {
                return Err(Fault::LineTooLong { limit_bytes: BUFFER_BYTES });
            }
            self.fill()?;
        }
    }

    /// The bytes of a line just taken.
    #[inline]
    pub(crate) fn text(&self, line: &Line) -> &[u8] {
        &self.buffer[line.start..line.end]
    }

    fn rest(&mut self) -> Option<Line> {
        let line = Line { start: self.start, end: self.end, is_whole: false };
        self.take(self.end - self.start);
        (line.start < line.end).then_some(line)
    }

    fn failed(&self, why: io::Error) -> Fault {
        let hint = match why.kind() {
            io::ErrorKind::UnexpectedEof => {
                ": the compressed file was cut; --allow-cut reads what is before it"
            }
            _ => "",
        };
        Fault::Read { at_bytes: self.offset + (self.end - self.start) as u64, why, hint }
    }
}
