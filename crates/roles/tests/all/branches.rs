//! Snapshots, clones and rollbacks through gateways, while they write.

use crate::common::Cluster;
use base::{BLOCK, Payload, VolumeId};
use core::time::Duration;
use wire::{AdminReply, AdminRequest, Io, IoError, IoReply};

const LAYOUTS: [(&str, u32); 4] = [("raid1x2", 2), ("raid1x3", 3), ("raid5-4+1", 5), ("rs-4+2", 6)];
const SIZE: u64 = 1 << 20;
const BLOCKS: u64 = SIZE / BLOCK as u64;

fn cut(cluster: &mut Cluster, request: AdminRequest) -> VolumeId {
    match cluster.admin(request) {
        Ok(AdminReply::Volume(info)) => {
            cluster.open(&info.name);
            info.id
        }
        other => panic!("{other:?}"),
    }
}

fn snapshot(cluster: &mut Cluster, volume: &str, name: &str) -> VolumeId {
    let (volume, snapshot, nonce) = (volume.to_owned(), name.to_owned(), crate::common::nonce_of(name));
    cut(cluster, AdminRequest::Snapshot { volume, snapshot, nonce })
}

/// Writes `byte` to every `step`th block, half of each such block where `step` is odd.
fn fill(cluster: &mut Cluster, volume: VolumeId, copy: &mut [u8], step: usize, byte: u8) {
    for block in (0..BLOCKS).step_by(step) {
        let (offset, length) = (block * BLOCK as u64, BLOCK >> (step % 2));
        let written = cluster.write(1 + block % 2, volume, offset, vec![byte; length]);
        assert_eq!(written, Ok(IoReply::Done));
        copy[offset as usize..][..length].fill(byte);
    }
}

#[test]
fn a_snapshot_stays_what_it_was_and_a_clone_and_a_rollback_begin_with_it() {
    for (layout, bricks) in LAYOUTS {
        let mut cluster = Cluster::new(bricks, 2);
        let (volume, name) = (cluster.volume(layout, SIZE), layout.replace('+', "p"));
        let mut now = vec![0; SIZE as usize];
        fill(&mut cluster, volume, &mut now, 2, 1);
        let (frozen, then) = (snapshot(&mut cluster, &name, "s"), now.clone());
        fill(&mut cluster, volume, &mut now, 3, 2);
        let of = format!("{name}@s");
        let clone =
            cut(&mut cluster, AdminRequest::Clone { snapshot: of.clone(), name: "c".into(), nonce: 2 });
        let mut cloned = then.clone();
        fill(&mut cluster, clone, &mut cloned, 5, 3);
        let read = |cluster: &mut Cluster, volume| cluster.read(2, volume, 0, SIZE as u32);
        assert!(read(&mut cluster, frozen) == then, "{layout}: the snapshot");
        assert!(read(&mut cluster, clone) == cloned, "{layout}: the clone");
        assert!(read(&mut cluster, volume) == now, "{layout}: the volume");
        let refused = cluster.begin(1, frozen, Io::Zero { offset: 0, length: 4096 }, Payload::new());
        assert_eq!(cluster.reply(refused).expect("at once").0, Err(IoError::ReadOnly));
        let back = cluster.admin(AdminRequest::Rollback { snapshot: of, nonce: 3 });
        assert!(matches!(back, Ok(AdminReply::Volume(_))), "{back:?}");
        assert!(read(&mut cluster, volume) == then, "{layout}: rolled back");
        let mut again = then.clone();
        fill(&mut cluster, volume, &mut again, 7, 4);
        assert!(read(&mut cluster, volume) == again, "{layout}: written on");
        assert!(read(&mut cluster, frozen) == then, "{layout}: the snapshot in the end");
    }
}

/// Patches of the same blocks go on from both gateways while snapshots are taken: each byte is that of its own last write,
/// and none is lost between two heads.
#[test]
fn nothing_is_lost_between_two_heads() {
    for (layout, bricks) in LAYOUTS {
        let mut cluster = Cluster::new(bricks, 2);
        let (volume, name) = (cluster.volume(layout, SIZE), layout.replace('+', "p"));
        let mut snapshots = Vec::new();
        for round in 1..=6u8 {
            let writes: Vec<(u64, u64)> = (0..8u64)
                .map(|part| {
                    let io = Io::Write { offset: part * 512 };
                    cluster.begin(1 + part % 2, volume, io, Payload::from(vec![round * 8 + part as u8; 512]))
                })
                .collect();
            snapshots.push(snapshot(&mut cluster, &name, &format!("s{round}")));
            cluster.run(Duration::from_millis(500));
            for write in writes {
                assert_eq!(cluster.reply(write).expect("an answer").0, Ok(IoReply::Done));
            }
            let read = cluster.read(1, volume, 0, BLOCK as u32);
            let expected: Vec<u8> = (0..8).flat_map(|part| vec![round * 8 + part; 512]).collect();
            assert!(read == expected, "{layout}: round {round}");
            for (of, frozen) in (1u8..).zip(&snapshots) {
                let read = cluster.read(2, *frozen, 0, BLOCK as u32);
                let is_of = |(at, byte): (usize, &u8)| {
                    let part = (at / 512) as u8;
                    [of * 8 + part, if of > 1 { (of - 1) * 8 + part } else { 0 }].contains(byte)
                };
                assert!(read.iter().enumerate().all(is_of), "{layout}: snapshot {of} in round {round}");
            }
        }
    }
}
