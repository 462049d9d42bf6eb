//! Postmark (Katcher: NetApp TR-3022): small files on a volume that are read, grow, come and go.
//!
//! What is certain: each transaction reads a whole file or appends to one, and then makes a file or deletes one; each file is as likely as any other.
//! What is assumed here, where Postmark leaves it to a file system: a file lies in one piece, at a place of the greatest size that is drawn from all
//! free ones; a read or a write is of the sectors that it touches, in requests of a bounded size; names, lengths and directories are in memory, so that
//! to delete a file asks for nothing. The files that Postmark makes before its transactions are there. The threads of a volume have its files in
//! common: a transaction's requests go out in their order, each by the next thread that is free.

use super::workload::{Shape, uniform};
use core::fmt;
use model::Draw;
use std::collections::VecDeque;

const SECTOR_BYTES: u64 = base::SECTOR_BYTES;
/// Places for files, by files at the beginning: enough for most of them to be free whenever one is drawn.
const PLACES_BY_FILE: u64 = 4;

/// How Postmark is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Postmark {
    /// Files at the beginning. There are never more than twice as many: then one is deleted in place of one that would be made.
    pub files: u32,
    /// Sizes of files that are made: all from the least to the greatest equally likely. An append takes none beyond the greatest.
    pub bytes_least: u32,
    pub bytes_most: u32,
    /// The share of transactions that read; the others append.
    pub reads: f64,
    /// The share of transactions that make a file; the others delete one.
    pub creates: f64,
    /// The most bytes of one request.
    pub request_bytes_most: u32,
}

/// A field that makes no sense, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nonsense {
    pub field: &'static str,
    pub why: String,
}

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl Postmark {
    /// As the program is without any settings (postmark.c 1.5): 500 files of 500 to 10,000 bytes, and all choices equally likely. Its file system
    /// gathers the 512 bytes of each of its calls, so that a file is one request.
    pub const USUAL: Postmark = Postmark {
        files: 500,
        bytes_least: 500,
        bytes_most: 10_000,
        reads: 0.5,
        creates: 0.5,
        request_bytes_most: 1 << 20,
    };
    /// As DSFQ has it (FAST 2007, section 4): files of 1 to 16 KB, and the program's own settings otherwise.
    pub const DSFQ: Postmark = Postmark { bytes_least: 1 << 10, bytes_most: 16 << 10, ..Postmark::USUAL };

    /// Sectors of a place for a file.
    fn place_sectors(&self) -> u64 {
        u64::from(self.bytes_most).div_ceil(SECTOR_BYTES)
    }

    /// Whether this can be asked of a volume of so many sectors.
    ///
    /// # Errors
    /// The field that makes no sense.
    pub fn check(&self, sectors: u64) -> Result<(), Nonsense> {
        let wrong = |field, why: String| Err(Nonsense { field, why });
        if self.files == 0 {
            return wrong("files", "there is nothing to read or to append to: give 1 at least".to_owned());
        }
        if self.bytes_least == 0 || self.bytes_most < self.bytes_least {
            let why = format!("sizes go from 1 byte at least to bytes_most, which is {}", self.bytes_most);
            return wrong("bytes_least", why);
        }
        for (field, share) in [("reads", self.reads), ("creates", self.creates)] {
            if !(0.0..=1.0).contains(&share) {
                return wrong(field, format!("{share} is not between 0 and 1"));
            }
        }
        if u64::from(self.request_bytes_most) < SECTOR_BYTES {
            return wrong("request_bytes_most", format!("a request has {SECTOR_BYTES} bytes at least"));
        }
        let wanted = u64::from(self.files) * PLACES_BY_FILE * self.place_sectors();
        if wanted > sectors {
            let (room, sectors) = (wanted * SECTOR_BYTES, sectors * SECTOR_BYTES);
            let why = format!("{} files need room for {room} bytes, and a volume has {sectors}", self.files);
            return wrong("files", why);
        }
        Ok(())
    }
}

/// A file: where its place is, and how long it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct File {
    sector: u64,
    bytes: u64,
}

/// The files of a volume, and what is asked of them.
#[derive(Debug)]
pub(super) struct Files {
    postmark: Postmark,
    files: Vec<File>,
    /// Which places have a file. None as long as the size of the volume is not known.
    places: Vec<bool>,
    /// The rest of the transaction.
    next: VecDeque<Shape>,
}

impl Files {
    pub(super) fn new(postmark: Postmark) -> Files {
        Files { postmark, files: Vec::new(), places: Vec::new(), next: VecDeque::new() }
    }

    /// The next request, on a volume of so many sectors.
    pub(super) fn next(&mut self, sectors: u64, draw: &mut Draw) -> Shape {
        if self.places.is_empty() {
            let places = (sectors / self.postmark.place_sectors()).max(2 * u64::from(self.postmark.files));
            self.places = vec![false; places as usize];
            for _ in 0..self.postmark.files {
                self.make(draw);
            }
        }
        loop {
            if let Some(shape) = self.next.pop_front() {
                return shape;
            }
            self.transaction(draw);
        }
    }

    /// Asks for what one transaction takes, which may be nothing.
    fn transaction(&mut self, draw: &mut Draw) {
        if !self.files.is_empty() {
            let at = draw.index(self.files.len());
            match uniform(draw) < self.postmark.reads {
                true => {
                    let File { sector, bytes } = self.files[at];
                    self.ask((sector, 0, bytes), false);
                }
                false => self.append(at, draw),
            }
        }
        let has_room = self.files.len() < 2 * self.postmark.files as usize;
        let makes = uniform(draw) < self.postmark.creates && has_room;
        if makes || self.files.is_empty() {
            let File { sector, bytes } = self.make(draw);
            self.ask((sector, 0, bytes), true);
        } else {
            let File { sector, .. } = self.files.swap_remove(draw.index(self.files.len()));
            let place = sector / self.postmark.place_sectors();
            self.places[place as usize] = false;
        }
    }

    /// A file grows by a part of what it may grow by. One that may not stays as it is.
    fn append(&mut self, at: usize, draw: &mut Draw) {
        let File { sector, bytes } = self.files[at];
        let room = u64::from(self.postmark.bytes_most) - bytes;
        if room == 0 {
            return;
        }
        let more = draw.between(1, room);
        self.files[at].bytes += more;
        self.ask((sector, bytes, bytes + more), true);
    }

    /// A file of any size at a free place.
    fn make(&mut self, draw: &mut Draw) -> File {
        let Postmark { bytes_least, bytes_most, .. } = self.postmark;
        let bytes = draw.between(u64::from(bytes_least), u64::from(bytes_most));
        let place = loop {
            let place = draw.index(self.places.len());
            if !self.places[place] {
                break place;
            }
        };
        self.places[place] = true;
        let file = File { sector: place as u64 * self.postmark.place_sectors(), bytes };
        self.files.push(file);
        file
    }

    /// Requests for the sectors that bytes of a file touch, from the first of these to before the other.
    fn ask(&mut self, (sector, from, until): (u64, u64, u64), is_write: bool) {
        let most = u64::from(self.postmark.request_bytes_most) / SECTOR_BYTES;
        let (mut at, end) = (sector + from / SECTOR_BYTES, sector + until.div_ceil(SECTOR_BYTES));
        while at < end {
            let count = most.min(end - at);
            self.next.push_back(Shape { sector: at, count: count as u32, is_write });
            at += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 256 MB, as DSFQ's volumes are.
    const SECTORS: u64 = 1 << 19;

    fn asked(postmark: Postmark, count: usize) -> Vec<Shape> {
        let (mut files, mut draw) = (Files::new(postmark), Draw::new(1));
        (0..count).map(|_| files.next(SECTORS, &mut draw)).collect()
    }

    fn share(all: &[Shape], is_meant: impl Fn(&Shape) -> bool) -> f64 {
        all.iter().filter(|shape| is_meant(shape)).count() as f64 / all.len() as f64
    }

    /// Of four steps of two transactions one reads, one appends (if the file may grow), one makes and one asks for nothing.
    #[test]
    fn a_third_of_the_requests_are_reads() {
        let all = asked(Postmark::USUAL, 100_000);
        let reads = share(&all, |shape| !shape.is_write);
        assert!((0.33..0.35).contains(&reads), "{reads}");
        let reading = asked(Postmark { reads: 1.0, ..Postmark::USUAL }, 100_000);
        let reads = share(&reading, |shape| !shape.is_write);
        assert!(
            (0.66..0.68).contains(&reads),
            "each transaction reads, and half of them make a file: {reads}"
        );
    }

    #[test]
    fn files_have_all_sizes_alike_and_lie_anywhere() {
        let postmark = Postmark { creates: 1.0, reads: 1.0, ..Postmark::DSFQ };
        let writes: Vec<Shape> = asked(postmark, 900).into_iter().filter(|shape| shape.is_write).collect();
        assert!(writes.len() > 400);
        let mean = writes.iter().map(|shape| f64::from(shape.count)).sum::<f64>() / writes.len() as f64;
        assert!((15.5..18.5).contains(&mean), "8.5 KB are 17 sectors: {mean}");
        assert!(writes.iter().all(|shape| (2..=32).contains(&shape.count)));
        assert!(writes.iter().all(|shape| shape.sector % 32 == 0 && shape.sector < SECTORS));
        let upper = share(&writes, |shape| shape.sector >= SECTORS / 2);
        assert!((0.4..0.6).contains(&upper), "{upper}");
    }

    /// A file of which all was read is what was written of it: by making it, and by appending to it.
    #[test]
    fn a_read_is_of_a_whole_file_that_is_there() {
        let (mut files, mut draw) = (Files::new(Postmark::USUAL), Draw::new(2));
        for _ in 0..20_000 {
            let shape = files.next(SECTORS, &mut draw);
            assert!(shape.count >= 1 && u64::from(shape.count) <= files.postmark.place_sectors());
            assert!(shape.sector + u64::from(shape.count) <= SECTORS);
            let used = files.places.iter().filter(|is_used| **is_used).count();
            assert_eq!(used, files.files.len(), "each file has a place of its own");
            assert!((1..=1_000).contains(&files.files.len()));
        }
    }

    #[test]
    fn large_files_are_asked_for_in_pieces_one_after_another() {
        let postmark = Postmark {
            files: 10,
            bytes_least: 300_000,
            bytes_most: 300_000,
            reads: 1.0,
            creates: 0.0,
            request_bytes_most: 128 << 10,
        };
        let all = asked(postmark, 9);
        let counts: Vec<u32> = all.iter().map(|shape| shape.count).collect();
        assert_eq!(counts, [256, 256, 74, 256, 256, 74, 256, 256, 74]);
        assert!(all.chunks(3).all(|file| file[1].sector == file[0].sector + 256));
    }

    /// Where every transaction deletes a file, and where every one makes one.
    #[test]
    fn it_goes_on_whatever_it_is_set_to() {
        for (reads, creates) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            assert_eq!(asked(Postmark { reads, creates, files: 3, ..Postmark::USUAL }, 5_000).len(), 5_000);
        }
    }

    #[test]
    fn nonsense_is_refused_by_the_field() {
        let field = |postmark: Postmark| postmark.check(SECTORS).expect_err("nonsense").field;
        let usual = Postmark::USUAL;
        assert_eq!(field(Postmark { files: 0, ..usual }), "files");
        assert_eq!(field(Postmark { files: 1_000_000, ..usual }), "files");
        assert_eq!(field(Postmark { bytes_least: 0, ..usual }), "bytes_least");
        assert_eq!(field(Postmark { bytes_least: 20_000, ..usual }), "bytes_least");
        assert_eq!(field(Postmark { reads: 1.5, ..usual }), "reads");
        assert_eq!(field(Postmark { creates: f64::NAN, ..usual }), "creates");
        assert_eq!(field(Postmark { request_bytes_most: 100, ..usual }), "request_bytes_most");
        assert_eq!((usual.check(SECTORS), Postmark::DSFQ.check(SECTORS)), (Ok(()), Ok(())));
    }
}
