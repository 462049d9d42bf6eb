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

/// The failure domains of bricks that are numbered from 0, by numbers: comparing names for each group would take most of a placement's time.
#[derive(Debug)]
pub(super) struct Domains {
    levels: Vec<Level>,
    /// The widest level that has a domain for each brick of a group.
    spread: Option<usize>,
}

/// The domains at one level.
#[derive(Debug)]
struct Level {
    /// The domain of each brick.
    of: Vec<usize>,
    /// How many domains there are.
    count: usize,
}

impl Domains {
    /// Of the bricks with these paths, for groups of `width` bricks.
    pub(super) fn of(paths: &[Path<'_>], levels: usize, width: u8) -> Domains {
        let level = |level| {
            let domains: BTreeSet<&[&str]> = paths.iter().map(|path| path.domain(level)).collect();
            let numbers: BTreeMap<&[&str], usize> = domains.into_iter().zip(0..).collect();
            Level { of: paths.iter().map(|path| numbers[path.domain(level)]).collect(), count: numbers.len() }
        };
        let levels: Vec<Level> = (0..levels).map(level).collect();
        let mut domains = Domains { levels, spread: None };
        domains.spread = domains.spread_of(width.into());
        domains
    }

    /// The widest level that has a domain for each brick of a group of so many.
    fn spread_of(&self, width: usize) -> Option<usize> {
        self.levels.iter().position(|level| level.count >= width)
    }

    /// How many of these members are in this brick's domains, where one more is to join them; what matters most comes first.
    pub(super) fn around<'a>(
        &'a self,
        brick: usize,
        members: &'a [usize],
    ) -> impl Iterator<Item = usize> + 'a {
        let levels = self.spread_of(members.len() + 1).into_iter().chain(0..self.levels.len());
        levels.map(move |level| {
            let of = &self.levels[level].of;
            members.iter().filter(|member| of[**member] == of[brick]).count()
        })
    }

    /// The widest level that has a domain for each brick of a group.
    pub(super) fn spread(&self) -> Option<usize> {
        self.spread
    }
}

/// How many bricks were taken of each failure domain.
pub(super) struct Crowds<'a> {
    domains: &'a Domains,
    /// By level and domain.
    taken: Vec<Vec<u8>>,
}

impl<'a> Crowds<'a> {
    /// None is taken yet.
    pub(super) fn new(domains: &'a Domains) -> Crowds<'a> {
        let taken = domains.levels.iter().map(|level| vec![0; level.count]).collect();
        Crowds { domains, taken }
    }

    /// How many bricks were taken of this one's domains; what matters most comes first.
    pub(super) fn around(&self, brick: usize) -> impl Iterator<Item = u8> + '_ {
        let levels = self.domains.spread.into_iter().chain(0..self.taken.len());
        levels.map(move |level| self.taken[level][self.domains.levels[level].of[brick]])
    }

    pub(super) fn take(&mut self, brick: usize) {
        for (level, taken) in self.domains.levels.iter().zip(&mut self.taken) {
            taken[level.of[brick]] += 1;
        }
    }
}

/// What a group may take of each failure domain, for bricks that are numbered from 0.
pub(super) struct Limits {
    domains: Domains,
    width: u8,
}

impl Limits {
    /// Of groups of `width` bricks. In the widest level with a domain for each brick of a group, and below it, a domain has
    /// one of them; in wider ones it has no more than an even spread asks for.
    pub(super) fn new(paths: &[Path<'_>], levels: usize, width: u8) -> Limits {
        Limits { domains: Domains::of(paths, levels, width), width }
    }

    /// Whether a group may have these bricks.
    pub(super) fn allow(&self, members: &[usize]) -> bool {
        debug_assert_eq!(members.len(), usize::from(self.width), "a whole group");
        self.domains.levels.iter().all(|level| {
            let most = usize::from(self.width).div_ceil(level.count.max(1));
            members.iter().all(|member| {
                let same = members.iter().filter(|other| level.of[**other] == level.of[*member]).count();
                same <= most
            })
        })
    }
}
