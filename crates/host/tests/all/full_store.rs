//! The file system of the directory's store is full for a while, for real: a loop device of 16 MiB.

use crate::common::daemon::{Daemon, LIMIT, MIB, admin, admin_within, start_brick, start_directory};
use crate::common::small_disk::SmallDisk;
use host::HostError;
use std::thread;
use std::time::{Duration, Instant};
use wire::{AdminError, AdminReply, AdminRequest, ClusterStatus};

fn status(directory: &str) -> ClusterStatus {
    match admin(directory, AdminRequest::STATUS) {
        Ok(AdminReply::Status(status)) => *status,
        other => panic!("no status: {other:?}"),
    }
}

fn create(directory: &str, timeout: Duration, number: u64) -> Result<AdminReply, HostError> {
    let request = AdminRequest::CreateVolume {
        name: format!("v{number}"),
        size_bytes: 16 * MIB,
        layout: "raid1x3".to_owned(),
        stripe_unit_blocks: 0,
        groups: 1,
        read_policy: wire::ReadPolicy::default(),
        io_timeout: wire::IoTimeout::default(),
        protocol: wire::Protocol::default(),
        placement: wire::Placement::default(),
        stream: base::StreamId::default(),
        nonce: number,
        reads: wire::Reads::default(),
    };
    admin_within(timeout, directory, request)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < limit, "in vain: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_directory_whose_file_system_is_full_waits_says_so_and_heals() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Some(disk) = SmallDisk::mount_or_skip(folder.path()) else { return };
    let directory = start_directory(&disk.mounted);
    let at = directory.addresses[0].as_str();
    let mut bricks: Vec<Daemon> = (1..=3).map(|nonce| start_brick(folder.path(), at, nonce)).collect();
    wait_until("the first volume is made", || create(at, LIMIT, 1).is_ok());
    disk.fill();
    // The store has some room of its own left in its file.
    let failed = (2..200).find_map(|number| create(at, Duration::from_secs(2), number).err());
    let failed = failed.expect("the store runs full");
    assert!(
        matches!(failed, HostError::Timeout { .. } | HostError::Admin(AdminError::Storage(_))),
        "{failed}"
    );
    wait_until("the status tells", || status(at).store.is_some());
    let failure = status(at).store.expect("just seen");
    assert!(failure.why.contains("No space left"), "{failure:?}");

    let used = || bricks.iter().chain([&directory]).map(Daemon::processor_time).sum::<Duration>();
    let before = used();
    thread::sleep(Duration::from_secs(3));
    let used = used() - before;
    assert!(used < Duration::from_millis(1500), "the daemons used {used:?} of 3 s: a loop spins");
    let refused = create(at, LIMIT, 300).expect_err("nothing can be stored");
    assert!(refused.to_string().contains("No space left"), "{refused}");
    let read = admin(at, AdminRequest::VolumeMap { name: "v1".to_owned() });
    assert!(matches!(read, Ok(AdminReply::Map(_))), "reads go on: {read:?}");

    drop(bricks.pop());
    thread::sleep(Duration::from_secs(6));
    let is_left_out =
        |status: &ClusterStatus| status.volumes[0].degraded == 1 && status.volumes[0].unavailable == 0;
    assert!(!is_left_out(&status(at)), "no view is made that is not stored");
    disk.free();
    wait_until("the store works again", || status(at).store.is_none());
    wait_until("the brick that died is left out", || is_left_out(&status(at)));
    drop(bricks);
    drop(directory);
}
