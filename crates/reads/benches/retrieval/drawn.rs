//! Drawn arrays and requests of a given shape, as the paper has them: the copies of a bucket lie on distinct disks, each drawn
//! uniformly. The bench, the tests and the example that writes instances share this file.

use base::Rng;
use reads::distribute::retrieval::{Disk, Request};

/// Access times of the paper's table I: Barracuda, Raptor, Cheetah, Vertex, X25-E.
const ACCESSES_NS: [u64; 5] = [13_200_000, 8_300_000, 6_100_000, 500_000, 200_000];
/// A loaded disk is busy for at most so many of its own accesses.
const LOAD_MAX: u64 = 8;

/// What is fixed of a drawn instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) buckets: u32,
    /// How many disks hold each bucket.
    pub(crate) copies: u32,
    /// From how many of them it is read.
    pub(crate) needed: u32,
    pub(crate) disks: u32,
    /// All five kinds of disks in equal parts; otherwise all disks are Barracudas.
    pub(crate) is_mixed: bool,
    /// Disks are busy with earlier requests; otherwise all are idle.
    pub(crate) is_loaded: bool,
}

/// An array and a request of it.
pub(crate) struct Instance {
    pub(crate) disks: Vec<Disk>,
    pub(crate) request: Request,
}

impl Shape {
    pub(crate) fn draw(&self, random: &mut Rng) -> Instance {
        let kinds = if self.is_mixed { &ACCESSES_NS[..] } else { &ACCESSES_NS[..1] };
        let mut accesses: Vec<u64> = (0..self.disks as usize).map(|at| kinds[at % kinds.len()]).collect();
        random.shuffle(&mut accesses);
        let disk = |access_ns: u64| {
            let free_ns = if self.is_loaded { random.u64(..=LOAD_MAX * access_ns) } else { 0 };
            Disk { free_ns, access_ns, queue: 0 }
        };
        let disks = accesses.into_iter().map(disk).collect();
        let mut request = Request::default();
        for _ in 0..self.buckets {
            request.push_coded(&self.holders(random), self.needed);
        }
        Instance { disks, request }
    }

    fn holders(&self, random: &mut Rng) -> Vec<u32> {
        let mut holders = Vec::with_capacity(self.copies as usize);
        while holders.len() < self.copies as usize {
            let disk = random.u64(..u64::from(self.disks)) as u32;
            if !holders.contains(&disk) {
                holders.push(disk);
            }
        }
        holders
    }
}
