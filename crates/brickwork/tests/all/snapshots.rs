//! Snapshots, clones and rollbacks as operators and NBD clients meet them, on a cluster of real processes.

use crate::common::{Site, content};

const MIB: usize = 1 << 20;
const EPERM: u32 = 1;

#[test]
fn a_snapshot_keeps_what_was_there_and_gives_it_back() {
    let site = Site::start(3);
    site.text("volume create first --size 16MiB --layout raid1x3 --groups 2");
    let (before, after) = (content(2 * MIB, 1), content(MIB, 2));
    assert_eq!(site.open("first").write(0, &before), 0);
    let taken = site.text("volume snapshot first monday");
    assert!(taken.contains("'first@monday' is taken"), "{taken}");
    let mut first = site.open("first");
    assert_eq!(first.write(512 << 10, &after), 0);

    // The snapshot is an export of its own, and nobody writes to it.
    let mut snapshot = site.open("first@monday");
    assert!(snapshot.read(0, 2 * MIB) == Ok(before.clone()), "the snapshot is what the volume was");
    assert_eq!(snapshot.write(0, &after), EPERM);
    assert!(snapshot.read(0, MIB) == Ok(before[..MIB].to_vec()), "and stays so");
    assert!(first.read(512 << 10, MIB) == Ok(after.clone()), "the volume has what was written since");

    // A clone is another volume.
    site.text("volume clone first@monday try");
    let mut clone = site.open("try");
    assert!(clone.read(0, 2 * MIB) == Ok(before.clone()), "it begins as the snapshot is");
    assert_eq!(clone.write(0, &after), 0);
    assert!(snapshot.read(0, MIB) == Ok(before[..MIB].to_vec()), "which it leaves alone");
    let list = site.text("volume list");
    let lines: Vec<&str> = list.lines().map(str::trim).collect();
    assert!(lines[1].starts_with("first ") && lines[2].starts_with("@monday "), "{list}");
    assert!(lines[3].starts_with("try ") && lines[3].ends_with("first@monday"), "{list}");

    // A snapshot is not deleted under its clones or its volume, and a rollback gives back what it held.
    let refusal = site.refusal("volume delete first --yes");
    assert!(refusal.contains("first"), "{refusal}");
    site.text("volume rollback first@monday --yes");
    assert!(site.open("first").read(0, 2 * MIB) == Ok(before), "the volume is what it was");
    for name in ["try", "first@monday", "first"] {
        site.text(&format!("volume delete {name} --yes"));
    }
    assert_eq!(site.json("volume list").0, serde_json::json!([]));
}

#[test]
fn mistakes_about_snapshots_are_answered_with_what_would_be_right() {
    let site = Site::start(3);
    site.text("volume create first --size 1MiB --groups 1");
    site.text("volume snapshot first monday");
    for (arguments, hint) in [
        ("volume snapshot first monday", "exists already"),
        ("volume snapshot none monday", "no volume named 'none'"),
        ("volume snapshot first Not/Allowed", "a-z 0-9"),
        ("volume clone first@none copy", "no volume named 'first@none'"),
        ("volume clone first@monday first", "exists already"),
        ("volume rollback first@monday", "--yes"),
        ("volume delete first@monday", "--yes"),
    ] {
        let refusal = site.refusal(arguments);
        assert!(refusal.contains(hint), "brickwork {arguments}: {refusal}");
    }
    for arguments in ["volume clone first copy", "volume rollback first", "volume snapshot first@monday x"] {
        assert_eq!(site.run(arguments).status.code(), Some(2), "brickwork {arguments}");
    }
}
