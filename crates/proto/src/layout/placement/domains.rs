//! The failure domains of bricks, and how crowded they are by the members of a group.

use super::Candidate;
use std::collections::{BTreeMap, BTreeSet};

/// A brick's failure domains, the widest first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Path<'a>(Vec<&'a str>);

impl<'a> Path<'a> {
    /// Of a brick, by these labels. A brick without a label shares a domain with all others that lack it.
    pub(super) fn of(candidate: &'a Candidate, labels: &[&str]) -> Path<'a> {
        let value = |label: &&str| {
            let known = candidate.labels.iter().find(|(name, _)| name == label);
            known.map_or("", |(_, value)| value.as_str())
        };
        Path(labels.iter().map(value).collect())
    }

    /// Its domain at some level: the labels from the widest one down, as domains of one name in two wider ones are two.
    fn domain(&self, level: usize) -> &[&'a str] {
        &self.0[..=level]
    }

    /// The label at some level; `None` below the narrowest.
    pub(super) fn label(&self, level: usize) -> Option<&'a str> {
        self.0.get(level).copied()
    }
}

/// The widest level that has a domain for each of `width` bricks.
pub(super) fn spread_level<'a>(
    paths: impl Iterator<Item = &'a Path<'a>>,
    levels: usize,
    width: u8,
) -> Option<usize> {
    Crowds::new(paths, levels, width).spread
}

/// How many bricks were taken of each failure domain.
pub(super) struct Crowds<'a> {
    levels: Vec<BTreeMap<Vec<&'a str>, u8>>,
    /// The widest level with a domain for each slot.
    spread: Option<usize>,
}

impl<'a> Crowds<'a> {
    /// None is taken yet; `paths` are those of all that may be.
    pub(super) fn new<'b>(paths: impl Iterator<Item = &'b Path<'a>>, levels: usize, width: u8) -> Crowds<'a>
    where
        'a: 'b,
    {
        let mut counts: Vec<BTreeMap<Vec<&'a str>, u8>> = vec![BTreeMap::new(); levels];
        for path in paths {
            for (level, domains) in counts.iter_mut().enumerate() {
                domains.entry(path.domain(level).to_vec()).or_insert(0);
            }
        }
        let spread = counts.iter().position(|domains| domains.len() >= usize::from(width));
        Crowds { levels: counts, spread }
    }

    /// How many bricks were taken of this one's domains; what matters most comes first.
    pub(super) fn around(&self, path: &Path<'a>) -> Vec<u8> {
        let levels = self.spread.into_iter().chain(0..self.levels.len());
        levels.map(|level| self.levels[level][path.domain(level)]).collect()
    }

    pub(super) fn take(&mut self, path: &Path<'a>) {
        for (level, domains) in self.levels.iter_mut().enumerate() {
            *domains.get_mut(path.domain(level)).expect("every brick's domain is known") += 1;
        }
    }
}

/// What a group may take of each failure domain, for bricks that are numbered from 0.
pub(super) struct Limits {
    levels: Vec<Level>,
    width: u8,
}

struct Level {
    /// The domain of each brick.
    of: Vec<usize>,
    /// Bricks that a group may have in one of them.
    most: usize,
}

impl Limits {
    /// Of groups of `width` bricks. In the widest level with a domain for each brick of a group, and below it, a domain has
    /// one of them; in wider ones it has no more than an even spread asks for.
    pub(super) fn new(paths: &[Path<'_>], levels: usize, width: u8) -> Limits {
        let level = |level| {
            let domains: BTreeSet<&[&str]> = paths.iter().map(|path| path.domain(level)).collect();
            let numbers: BTreeMap<&[&str], usize> = domains.into_iter().zip(0..).collect();
            let of = paths.iter().map(|path| numbers[path.domain(level)]).collect();
            Level { of, most: usize::from(width).div_ceil(numbers.len().max(1)) }
        };
        Limits { levels: (0..levels).map(level).collect(), width }
    }

    /// Whether a group may have these bricks.
    pub(super) fn allow(&self, members: &[usize]) -> bool {
        debug_assert_eq!(members.len(), usize::from(self.width), "a whole group");
        self.levels.iter().all(|level| {
            members.iter().all(|member| {
                let same = members.iter().filter(|other| level.of[**other] == level.of[*member]).count();
                same <= level.most
            })
        })
    }
}
