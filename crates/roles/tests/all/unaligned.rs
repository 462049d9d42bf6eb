//! Requests that begin and end at any byte, through two gateways, against a flat array of bytes.

use crate::common::Cluster;
use base::Payload;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{Io, IoReply};

const LAYOUTS: [(&str, u32); 3] = [("raid1x2", 2), ("raid5-2+1", 3), ("rs-4+2", 6)];
const SIZE: usize = 256 << 10;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Write(u8),
    Zero,
    Read,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Kind,
    gateway: u64,
    offset: usize,
    length: usize,
}

fn a_step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![any::<u8>().prop_map(Kind::Write), Just(Kind::Zero), Just(Kind::Read)];
    // Near the borders of sectors and blocks more often than anywhere else.
    let near = (0..SIZE / 512, 0usize..3).prop_map(|(sector, by)| (sector * 512 + by).saturating_sub(1));
    let offset = prop_oneof![near, 0..SIZE];
    let length = prop_oneof![1usize..4, 500usize..520, 4090usize..4100, 1usize..40_000];
    (kind, 1u64..3, offset, length).prop_map(|(kind, gateway, offset, length)| Step {
        kind,
        gateway,
        offset,
        length: length.min(SIZE - offset),
    })
}

fn apply(cluster: &mut Cluster, volume: base::VolumeId, model: &mut [u8], step: Step) {
    let Step { kind, gateway, offset, length } = step;
    let (place, at) = (offset..offset + length, offset as u64);
    match kind {
        Kind::Write(byte) => {
            let bytes: Vec<u8> = (0..length).map(|index| byte.wrapping_add(index as u8)).collect();
            model[place].copy_from_slice(&bytes);
            assert_eq!(cluster.write(gateway, volume, at, bytes), Ok(IoReply::Done));
        }
        Kind::Zero => {
            model[place].fill(0);
            let io = Io::Zero { offset: at, length: length as u64 };
            let asked = cluster.begin(gateway, volume, io, Payload::new());
            cluster.finish(asked);
        }
        Kind::Read => {
            assert!(cluster.read(gateway, volume, at, length as u32) == model[place], "{step:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_on_any_byte_are_as_on_an_array(which in 0..LAYOUTS.len(), steps in vec(a_step(), 1..16)) {
        let (layout, bricks) = LAYOUTS[which];
        let mut cluster = Cluster::new(bricks, 2);
        let volume = cluster.volume(layout, SIZE as u64);
        let mut model = vec![0; SIZE];
        for step in steps {
            if step.length > 0 {
                apply(&mut cluster, volume, &mut model, step);
            }
        }
        prop_assert!(cluster.read(1, volume, 0, SIZE as u32) == model);
    }
}
