//! Table 1: how fast Reed-Solomon codes are, by their length.

use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;
use base::{Payload, Rng};
use code::{Code, Computation};
use serde_json::json;

pub(super) struct Table1;

/// Blocks of data, as many of parity, and what the paper measured, MB/s.
const ROWS: [(u8, f64, f64); 4] = [(4, 112.2, 99.5), (8, 53.3, 60.8), (16, 26.8, 31.3), (32, 13.7, 15.9)];
const SHARD_BYTES: usize = 4096;

/// A stripe encoded, and decoded from its parity alone.
struct Coding {
    blocks: u8,
    multiply_add_mb_s: f64,
}

impl Job for Coding {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "robustore coding", "blocks": self.blocks, "multiply_add_mb_s": self.multiply_add_mb_s })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let code = Code::new(self.blocks, self.blocks);
        let mut random = Rng::with_seed(seed);
        let mut shard = || {
            let mut content = vec![0; SHARD_BYTES];
            random.fill(&mut content);
            Payload::from(content)
        };
        let data: Vec<Payload> = (0..self.blocks).map(|_| shard()).collect();
        let bytes = (data.len() * SHARD_BYTES) as f64;
        let encode = Computation::Encode { code, data: data.clone() };
        let parity = encode.run().map_err(|error| error.to_string())?;
        let shards: Vec<(u8, Payload)> = (self.blocks..).zip(parity).collect();
        let mut decoded = 0;
        for (wanted, original) in (0..).zip(&data) {
            let reconstruct = Computation::Reconstruct { code, shards: shards.clone(), wanted };
            decoded += reconstruct.bytes();
            if reconstruct.run().map_err(|error| error.to_string())? != [original.clone()] {
                return Err(format!("block {wanted} of {} was decoded wrongly", self.blocks));
            }
        }
        let rate = |multiplied: u64| bytes / multiplied as f64 * self.multiply_add_mb_s;
        let values = [("encode_mb_s", rate(encode.bytes())), ("decode_mb_s", rate(decoded))];
        Ok(Sample {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Sample::default()
        })
    }
}

impl Experiment for Table1 {
    fn id(&self) -> &str {
        "robustore.table1"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "Reed-Solomon codes: bandwidth by length, by the multiplications that they take"
    }

    fn assumptions(&self) -> Vec<&str> {
        vec!["multiply_add_mb_s"]
    }

    fn points(&self, parameters: &Parameters, _: Scale) -> Result<Vec<Point>, LabError> {
        let multiply_add_mb_s = parameters.number("multiply_add_mb_s");
        let point = |(blocks, encode, decode)| {
            Point::new(Coding { blocks, multiply_add_mb_s })
                .with("data", f64::from(blocks))
                .with("stored", f64::from(2 * blocks))
                .with("paper_encode_mb_s", encode)
                .with("paper_decode_mb_s", decode)
        };
        Ok(ROWS.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["encode_mb_s", "decode_mb_s"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |blocks: u8, figure: &str| table.number(&[("data", Cell::from(f64::from(blocks)))], figure);
        let claims = ROWS.windows(2).flat_map(|pair| {
            let [(shorter, encode, decode), (longer, half_encode, half_decode)] = *pair else {
                unreachable!("pairs")
            };
            let ratio = |figure: &str| of(shorter, figure) / of(longer, figure);
            let law = |verb: &str, paper: f64, figure: &str| {
                let what = format!("{verb} {shorter} blocks over {longer}: half as fast when twice as long");
                claim(what, paper, ratio(figure), [0.9 * paper, 1.1 * paper])
            };
            [
                law("encode", encode / half_encode, "encode_mb_s"),
                law("decode", decode / half_decode, "decode_mb_s"),
            ]
        });
        claims.collect()
    }

    fn charts(&self, _: &Table, _: &[Runs]) -> Vec<Chart> {
        Vec::new()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Multiplications are counted, and one rate of them is assumed, so that a run repeats on every machine. `cargo bench -p brickwork-code` \
             measures real time."
                .to_owned(),
        ]
    }
}
