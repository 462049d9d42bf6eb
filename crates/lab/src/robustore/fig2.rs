//! Figure 2: how many stored blocks, in random order, give back all original ones.

use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use base::Rng;
use code::fountain::{Lt, Peeling, Precoded};
use num_bigint::BigInt;
use serde_json::json;

pub(super) struct Fig2;

const BLOCKS: u32 = 1024;
/// Each original block has so many replicas, or there are so many coded blocks for it.
const TIMES: u32 = 4;
/// Original blocks in a coded one, in the paper's formula.
const DEGREE: u32 = 5;
const REPLICAS: &str = "replicas";
const COVERED: &str = "coded, all covered";
const PEELED: &str = "lt, peeling";
const PRECODED: &str = "lt-precoded";
const SCHEMES: [&str; 4] = [REPLICAS, COVERED, PEELED, PRECODED];
const SHARES: [(&str, f64); 3] =
    [("blocks_1_percent", 0.01), ("blocks_half", 0.5), ("blocks_99_percent", 0.99)];
/// Steps of a curve, in blocks.
const STEP: u32 = 32;

/// The chance that so many blocks suffice, by a formula of the paper's appendix.
struct Formula {
    scheme: &'static str,
}

/// The same by trial, for a code.
struct Trials {
    scheme: &'static str,
    orders: u64,
}

impl Job for Formula {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "robustore formula", "scheme": self.scheme, "blocks": BLOCKS, "times": TIMES, "degree": DEGREE })
    }

    fn run(&self, _: u64) -> Result<Sample, String> {
        let chance = |stored: u32| match self.scheme {
            REPLICAS => replicas_suffice(BLOCKS, TIMES, stored),
            _ => blocks_are_covered(BLOCKS, DEGREE * stored),
        };
        let values = SHARES.map(|(name, share)| (name.to_owned(), f64::from(least(&chance, share))));
        let curve = (BLOCKS / STEP..=BLOCKS * TIMES / STEP).map(|step| step * STEP);
        let curve = curve.map(|stored| [f64::from(stored), chance(stored)]).collect();
        Ok(Sample {
            values: values.into(),
            series: [("chance".to_owned(), curve)].into(),
            ..Sample::default()
        })
    }
}

impl Job for Trials {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "robustore trials", "scheme": self.scheme, "blocks": BLOCKS, "times": TIMES, "orders": self.orders })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let mut random = Rng::with_seed(seed);
        let precoded = Precoded::new(BLOCKS);
        let needed = |random: &mut Rng| {
            let mut order: Vec<u32> = (0..BLOCKS * TIMES).collect();
            random.shuffle(&mut order);
            match self.scheme {
                PEELED => peeled(random.u64(..1 << 40), &order),
                _ => solved(&precoded, &order),
            }
        };
        let mut counts: Vec<u32> = (0..self.orders).map(|_| needed(&mut random)).collect();
        counts.sort_unstable();
        let at = |share: f64| counts[((counts.len() - 1) as f64 * share) as usize];
        let values = SHARES.map(|(name, share)| (name.to_owned(), f64::from(at(share))));
        let curve =
            (1..=100).map(|part| [f64::from(at(f64::from(part) / 100.0)), f64::from(part) / 100.0]).collect();
        let series = [("chance".to_owned(), curve)].into();
        Ok(Sample { values: values.into(), series, events: self.orders, ..Sample::default() })
    }
}

/// How many blocks of this order the paper's code and decoder take.
fn peeled(seed: u64, order: &[u32]) -> u32 {
    let (code, _) = Lt::decodable(BLOCKS, BLOCKS * TIMES, seed).expect("four times as many are enough");
    let mut peeling = Peeling::new(BLOCKS);
    for block in order {
        peeling.arrive(code.blocks_of(*block));
        if peeling.is_complete() {
            break;
        }
    }
    peeling.arrived() as u32
}

fn solved(code: &Precoded, order: &[u32]) -> u32 {
    let is_enough = |count: &u32| code.schedule(&order[..*count as usize], &[]).is_ok();
    (BLOCKS..).find(is_enough).expect("all blocks are enough")
}

/// The least number of blocks whose chance is at least `share`. The chance grows with the number.
fn least(chance: &impl Fn(u32) -> f64, share: f64) -> u32 {
    let (mut below, mut enough) = (0, BLOCKS * TIMES);
    while enough - below > 1 {
        let middle = below.midpoint(enough);
        if chance(middle) >= share { enough = middle } else { below = middle }
    }
    enough
}

/// Equation (A.1) over all choices: that `stored` (one at least) of `times * blocks` replicas have one of each block at least. The formula of
/// section 3.1 is this one with misprints.
fn replicas_suffice(blocks: u32, times: u32, stored: u32) -> f64 {
    let all = times * blocks;
    let choices = (0..stored).fold(BigInt::from(1), |choices, index| choices * (all - index) / (index + 1));
    // For i blocks: the choices of `stored` of their replicas, and the choices of the i blocks. Both from those for one more.
    let (mut of_replicas, mut of_blocks) = (choices.clone(), BigInt::from(1));
    let mut sum = choices.clone();
    for i in (1..blocks).rev() {
        for replica in (times * i + 1..=times * (i + 1)).rev() {
            of_replicas = of_replicas * replica.saturating_sub(stored) / replica;
        }
        of_blocks = of_blocks * (i + 1) / (blocks - i);
        let term = &of_replicas * &of_blocks;
        if (blocks - i).is_multiple_of(2) { sum += term } else { sum -= term }
    }
    ratio(&sum, &choices)
}

/// A fraction of so many bits. Terms are as large as 2^1023, so that more than 300 bits of the sum are right.
const FRACTION_BITS: u32 = 1400;

/// The formula of appendix A2: that `drawn` independent blocks (one at least) are all of `blocks`. Its terms are powers with many thousand digits; they
/// are cut to fixed-point numbers, whose rounding is far below what is printed.
fn blocks_are_covered(blocks: u32, drawn: u32) -> f64 {
    let one = BigInt::from(1) << FRACTION_BITS;
    let power = |mut of: BigInt, mut exponent: u32| {
        let mut result = one.clone();
        while exponent > 0 {
            if exponent % 2 == 1 {
                result = (result * &of) >> FRACTION_BITS;
            }
            of = (&of * &of) >> FRACTION_BITS;
            exponent /= 2;
        }
        result
    };
    let mut of_blocks = BigInt::from(1);
    let mut sum = one.clone();
    for i in (1..blocks).rev() {
        of_blocks = of_blocks * (i + 1) / (blocks - i);
        let term = power(&one * i / blocks, drawn) * &of_blocks;
        if (blocks - i).is_multiple_of(2) { sum += term } else { sum -= term }
    }
    ratio(&sum, &one)
}

/// `part / whole`, to a double's precision.
fn ratio(part: &BigInt, whole: &BigInt) -> f64 {
    const BITS: u32 = 62;
    let scaled: BigInt = (part << BITS) / whole;
    let scaled = i64::try_from(scaled).expect("a chance is at most one");
    scaled as f64 / (1_u64 << BITS) as f64
}

impl Experiment for Fig2 {
    fn id(&self) -> &str {
        "robustore.fig2"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "Stored blocks that give back 1,024 original ones, of 4,096 in random order"
    }

    fn assumptions(&self) -> Vec<&str> {
        vec!["orders"]
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let orders = scale.of(parameters.count("orders"));
        let point = |scheme| {
            let point = match scheme {
                REPLICAS | COVERED => Point::new(Formula { scheme }),
                _ => Point::new(Trials { scheme, orders }),
            };
            point.with("scheme", scheme)
        };
        Ok(SCHEMES.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&SHARES.map(|(name, _)| name))
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |scheme: &str, figure: &str| table.number(&[("scheme", Cell::from(scheme))], figure);
        let over = |scheme: &str| of(scheme, "blocks_half") / f64::from(BLOCKS);
        let exact = |scheme: &'static str, expected: [f64; 3]| {
            SHARES.into_iter().zip(expected).map(move |((figure, share), expected)| {
                let what =
                    format!("{scheme}: blocks with which {:.0}% of orders are complete", share * 100.0);
                shape(what, of(scheme, figure), [expected, expected])
            })
        };
        let mut claims = vec![
            claim("replicas needed, over original blocks (about 3)", 3.0, over(REPLICAS), [2.5, 3.5]),
            claim("coded blocks needed, over original blocks (about 1.5)", 1.5, over(COVERED), [1.25, 1.75]),
        ];
        claims.extend(exact(REPLICAS, [3042.0, 3436.0, 3866.0]));
        claims.extend(exact(COVERED, [1110.0, 1495.0, 2361.0]));
        claims.push(claim(
            "the paper's code when it is decoded as well, over original blocks",
            1.5,
            over(PEELED),
            [1.25, 1.75],
        ));
        claims.push(shape("lt-precoded, over original blocks", over(PRECODED), [1.0, 1.01]));
        claims
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let series = runs.first().map_or(&[][..], |runs| &runs.runs).iter().zip(SCHEMES).map(
            |((_, sample), scheme)| {
                let spot = |[x, y]: &[f64; 2]| Spot { x: *x, y: *y, ci95: None };
                Series { name: scheme.to_owned(), spots: sample.series["chance"].iter().map(spot).collect() }
            },
        );
        let (x, y) = (
            Axis::new("stored blocks that have arrived", ""),
            Axis::new("chance that all original blocks are there", ""),
        );
        vec![Chart::lines("robustore.fig2", "Reassembly of 1,024 blocks", x, y, series.collect())]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "blocks_: so many blocks are enough in that share of orders. \"all covered\" is the paper's formula for coded blocks: each \
             original block is in one of them at least. That is necessary, not sufficient; \"lt, peeling\" is the paper's code when it \
             is really decoded, from 4,096 stored blocks that are known to be decodable."
                .to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small cases by counting all choices.
    #[test]
    fn formulas_count_what_they_say() {
        for stored in 1..=6_u32 {
            let choices = (0_u32..1 << 6).filter(|choice| choice.count_ones() == stored);
            let complete = choices
                .clone()
                .filter(|choice| [0b11, 0b1100, 0b11_0000].iter().all(|block| choice & block != 0));
            let expected = complete.count() as f64 / choices.count() as f64;
            assert!((replicas_suffice(3, 2, stored) - expected).abs() < 1e-15, "{stored} of 6 replicas");
        }
        for drawn in 1..=5_u32 {
            let all = 3_u32.pow(drawn);
            let is_complete = |mut number: u32| {
                let mut seen = 0;
                (0..drawn).for_each(|_| {
                    seen |= 1 << (number % 3);
                    number /= 3;
                });
                seen == 0b111
            };
            let expected = (0..all).filter(|number| is_complete(*number)).count() as f64 / f64::from(all);
            assert!((blocks_are_covered(3, drawn) - expected).abs() < 1e-15, "{drawn} drawn of 3");
        }
    }
}
