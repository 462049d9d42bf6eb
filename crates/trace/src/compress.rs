//! Compressed traces: what gzip, xz and zstd wrote is read as if it were plain, told by its first bytes; what is written
//! is compressed as the end of the file's name says.

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzReader, XzWriter};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{self, BufRead, BufReader, Read, Write};

/// Bytes of plain text that become one zstd frame. The encoder takes a frame at a time.
const FRAME_BYTES: usize = 4 << 20;
/// As `xz -3`: a good deal faster than its default, and hardly larger for columns of digits.
const XZ_PRESET: u32 = 3;
/// The largest memory that a compressed trace may ask its decompressor for.
const WINDOW_BYTES_MAX: u64 = 128 << 20;
/// Bytes read from the file at a time.
const READ_BYTES: usize = 1 << 17;

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, `.gz`.
    Gzip,
    /// xz, `.xz`.
    Xz,
    /// Zstandard, `.zst`.
    Zstd,
}

impl Compression {
    /// As the first bytes of a file say.
    pub fn of_bytes(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // A frame, or a skippable one before it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// As the end of a file's name says.
    pub fn of_name(name: &str) -> Compression {
        match name.rsplit('.').next() {
            Some("gz") => Compression::Gzip,
            Some("xz") => Compression::Xz,
            Some("zst") => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// The plain bytes of `source`, however it is compressed.
///
/// # Errors
/// When its first bytes cannot be read. What is wrong further on shows when it is read.
pub fn plain(mut source: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    source.by_ref().take(6).read_to_end(&mut head)?;
    let compression = Compression::of_bytes(&head);
    let whole = BufReader::with_capacity(READ_BYTES, io::Cursor::new(head).chain(source));
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(
            whole,
            true,
            u32::try_from(WINDOW_BYTES_MAX >> 10).unwrap_or(u32::MAX),
        )),
        Compression::Zstd => Box::new(Frames { source: whole, decoder: decoder(), is_inside: false }),
    })
}

fn decoder() -> FrameDecoder {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_BYTES_MAX);
    decoder
}

/// zstd frames one after another; skippable ones are left out.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_inside && !self.next_frame()? {
                return Ok(0);
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if self.decoder.is_finished() {
                self.end_frame()?;
            } else {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(broken)?;
            }
        }
    }
}

impl<R: BufRead> Frames<R> {
    /// Begins the next frame; `false` when there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.is_inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(false)
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.is_inside = false;
        let (said, found) = (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        match said.is_some() && said != found {
            true => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "a zstd frame does not match its checksum"))
            }
            false => Ok(()),
        }
    }
}

fn broken(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A sink that compresses. [`Sink::finish`] has to be called: what is dropped instead is cut.
pub enum Sink<W: Write> {
    None(W),
    Gzip(GzEncoder<W>),
    Xz(Box<XzWriter<W>>),
    /// zstd: what waits to become a frame, and where frames go.
    Zstd(Vec<u8>, W),
}

impl<W: Write> Sink<W> {
    /// A sink that writes to `inner` with `compression`.
    ///
    /// # Errors
    /// When the encoder does not start.
    pub fn new(inner: W, compression: Compression) -> io::Result<Sink<W>> {
        Ok(match compression {
            Compression::None => Sink::None(inner),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(inner, flate2::Compression::default())),
            Compression::Xz => Sink::Xz(Box::new(XzWriter::new(inner, XzOptions::with_preset(XZ_PRESET))?)),
            Compression::Zstd => Sink::Zstd(Vec::with_capacity(FRAME_BYTES), inner),
        })
    }

    /// Writes what is still held, and the end.
    ///
    /// # Errors
    /// Those of the inner sink.
    pub fn finish(self) -> io::Result<W> {
        let mut inner = match self {
            Sink::None(inner) => inner,
            Sink::Gzip(encoder) => encoder.finish()?,
            Sink::Xz(encoder) => encoder.finish()?,
            Sink::Zstd(held, mut inner) => {
                inner.write_all(&compress_to_vec(held.as_slice(), CompressionLevel::Fastest))?;
                inner
            }
        };
        inner.flush()?;
        Ok(inner)
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::None(inner) => inner.write(bytes),
            Sink::Gzip(encoder) => encoder.write(bytes),
            Sink::Xz(encoder) => encoder.write(bytes),
            Sink::Zstd(held, inner) => {
                held.extend_from_slice(bytes);
                if held.len() >= FRAME_BYTES {
                    inner.write_all(&compress_to_vec(held.as_slice(), CompressionLevel::Fastest))?;
                    held.clear();
                }
                Ok(bytes.len())
            }
        }
    }

    /// Does nothing: what would be flushed early would be compressed worse.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(bytes: &[u8], compression: Compression) -> Vec<u8> {
        let mut sink = Sink::new(Vec::new(), compression).unwrap();
        bytes.chunks(10_000).for_each(|part| sink.write_all(part).unwrap());
        let packed = sink.finish().unwrap();
        assert_eq!(Compression::of_bytes(&packed), compression);
        let mut again = Vec::new();
        plain(Box::new(io::Cursor::new(packed))).unwrap().read_to_end(&mut again).unwrap();
        again
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn what_is_compressed_comes_back(seed: u8, length in 0_usize..60_000) {
            let bytes: Vec<u8> = (0..length).map(|i| b"0123456789,\n"[(i * 7 + i / 13 + usize::from(seed)) % 12]).collect();
            for compression in [Compression::None, Compression::Gzip, Compression::Xz, Compression::Zstd] {
                prop_assert_eq!(&round_trip(&bytes, compression), &bytes);
            }
        }
    }

    #[test]
    fn many_frames_and_skippable_ones_are_one_file() {
        let mut packed = vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
        for part in [&b"one "[..], b"two ", b"three"] {
            packed.extend(compress_to_vec(part, CompressionLevel::Fastest));
        }
        let mut again = String::new();
        plain(Box::new(io::Cursor::new(packed))).unwrap().read_to_string(&mut again).unwrap();
        assert_eq!(again, "one two three");
    }

    #[test]
    fn a_cut_file_is_an_error_in_every_compression() {
        for compression in [Compression::Gzip, Compression::Xz, Compression::Zstd] {
            let mut sink = Sink::new(Vec::new(), compression).unwrap();
            (0..2_000).for_each(|n| writeln!(sink, "{}", n * 7919).unwrap());
            let mut packed = sink.finish().unwrap();
            packed.truncate(packed.len() / 2);
            let mut again = Vec::new();
            let result = plain(Box::new(io::Cursor::new(packed))).unwrap().read_to_end(&mut again);
            assert!(result.is_err(), "{compression:?}");
        }
    }
}
