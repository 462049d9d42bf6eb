//! How bricks are drawn for one group: all who know the bricks agree, and little moves when they change.
//!
//! Bricks are drawn by weighted rendezvous hashing (Thaler and Ravishankar 1998; the weights after Schindelhauer and
//! Schomaker, "Weighted Distributed Hash Tables", 2005): each brick has a score `-weight / ln(hash)` for each group,
//! and the highest scores win, among those in the least crowded failure domains.

use super::domains::{Crowds, Domains, Path};
use super::{Candidate, mix};
use base::{BrickId, VolumeId};

/// Those that take part in the draws of a volume's groups: what is the same for all of these.
pub(super) struct Field<'a> {
    able: Vec<&'a Candidate>,
    domains: Domains,
}

impl<'a> Field<'a> {
    /// For groups of so many bricks. All candidates with a weight take part.
    pub(super) fn of(width: u8, candidates: &'a [Candidate], domains: &[&str]) -> Field<'a> {
        let able: Vec<&Candidate> = candidates.iter().filter(|candidate| candidate.weight > 0).collect();
        let paths: Vec<Path<'_>> = able.iter().map(|candidate| Path::of(candidate, domains)).collect();
        Field { domains: Domains::of(&paths, domains.len(), width), able }
    }

    /// How many take part.
    pub(super) fn len(&self) -> usize {
        self.able.len()
    }
}

/// The draw of bricks for one group.
pub(super) struct Draw<'a> {
    /// Those that are not taken, the highest score first.
    contenders: Vec<Contender>,
    crowds: Crowds<'a>,
}

struct Contender {
    id: BrickId,
    score: f64,
    /// Its number in the field.
    number: usize,
}

impl<'a> Draw<'a> {
    /// For a group of a volume.
    pub(super) fn new((volume, group_index): (VolumeId, u32), field: &'a Field<'_>) -> Draw<'a> {
        let group = mix(mix(volume.0) ^ u64::from(group_index));
        let contender = |(number, candidate): (usize, &&Candidate)| Contender {
            id: candidate.id,
            score: score(mix(group ^ u64::from(candidate.id.0)), candidate.weight),
            number,
        };
        let mut contenders: Vec<Contender> = field.able.iter().enumerate().map(contender).collect();
        contenders.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        Draw { contenders, crowds: Crowds::new(&field.domains) }
    }
}

impl Iterator for Draw<'_> {
    type Item = BrickId;

    /// The brick with the highest score among those in the least crowded domains.
    fn next(&mut self) -> Option<BrickId> {
        // The first of several equals, which is the one with the highest score.
        let around = |at: &usize| self.crowds.around(self.contenders[*at].number);
        let best = (0..self.contenders.len()).min_by(|a, b| around(a).cmp(around(b)))?;
        let best = self.contenders.remove(best);
        self.crowds.take(best.number);
        Some(best.id)
    }
}

/// `-weight / ln(hash)`, the hash taken as a fraction between 0 and 1, both excluded.
pub fn score(hash: u64, weight: u64) -> f64 {
    let fraction = ((hash >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
    -(weight as f64) / libm::log(fraction)
}
