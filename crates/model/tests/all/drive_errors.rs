//! A file that no drive could have: the error names the file, the line, the field, and says why.

use model::drive::DriveModel;

const RIGHT: &str = "\
name = \"A small disk\"
capacity_sectors = 2000
[disk]
rpm = 7200.0
cylinders = 20
surfaces = 2
mapping = \"serpentine\"
head_switch_ms = 0.5
write_settle_ms = 0.1
seek_ms = [[1, 1.0], [10, 2.0], [19, 4.0]]
[controller]
bus_ms_per_sector = 0.01
[cache]
segments = 4
segment_sectors = 64
write_segments = 1
read_ahead_sectors = 64
[[zone]]
first_cylinder = 0
last_cylinder = 9
sectors_per_track = 60
track_skew = 5.0
cylinder_skew = 9.0
spares = 10
slipped = [3, 70]
[[zone]]
first_cylinder = 10
last_cylinder = 19
sectors_per_track = 50
track_skew = 4.0
cylinder_skew = 7.0
";

/// What is replaced by what, and then: the line and the field that the error names, and a word of its reason.
const WRONG: &[(&str, &str, usize, &str, &str)] = &[
    ("first_cylinder = 10", "first_cylinder = 9", 27, "zone[1].first_cylinder", "overlaps"),
    ("last_cylinder = 19", "last_cylinder = 20", 28, "zone[1].last_cylinder", "the disk's last"),
    ("last_cylinder = 19", "last_cylinder = 5", 28, "zone[1].last_cylinder", "from 10"),
    ("rpm = 7200.0", "rpm = 0.0", 4, "disk.rpm", "from 1"),
    ("rpm = 7200.0", "rpm = nan", 4, "disk.rpm", "finite"),
    ("rpm = 7200.0", "rpm = \"fast\"", 4, "rpm", "expected f64"),
    ("rpm = 7200.0", "rpn = 7200.0", 4, "rpn", "unknown field"),
    ("rpm = 7200.0\n", "", 3, "rpm", "missing field"),
    ("[10, 2.0]", "[10, inf]", 10, "disk.seek_ms[1]", "finite"),
    ("[10, 2.0]", "[10, nan]", 10, "disk.seek_ms[1]", "finite"),
    ("[10, 2.0]", "[10, -2.0]", 10, "disk.seek_ms[1]", "from 0"),
    ("[10, 2.0]", "[1, 2.0]", 10, "disk.seek_ms[1]", "farther"),
    ("[10, 2.0], [19, 4.0]", "[4, 0.5]", 10, "disk.seek_ms", "for a seek of"),
    ("[[1, 1.0], [10, 2.0], [19, 4.0]]", "[]", 5, "disk.seek_ms", "missing"),
    ("capacity_sectors = 2000", "capacity_sectors = 3000", 2, "capacity_sectors", "have room"),
    ("capacity_sectors = 2000", "capacity_sectors = 0", 2, "capacity_sectors", "from 1"),
    ("head_switch_ms = 0.5", "head_switch_ms = -0.5", 8, "disk.head_switch_ms", "from 0"),
    ("write_settle_ms = 0.1", "write_settle_ms = inf", 9, "disk.write_settle_ms", "finite"),
    ("bus_ms_per_sector = 0.01", "bus_ms_per_sector = -1.0", 12, "controller.bus_ms_per_sector", "from 0"),
    ("read_ahead_sectors = 64", "read_ahead_sectors = 65", 17, "cache.read_ahead_sectors", "at most"),
    ("sectors_per_track = 60", "sectors_per_track = 0", 21, "zone[0].sectors_per_track", "from 1"),
    ("track_skew = 5.0", "track_skew = nan", 22, "zone[0].track_skew", "finite"),
    ("spares = 10", "spares = 1200", 18, "zone[0].spares", "as much as"),
    ("spares = 10", "spares = 1", 18, "zone[0].slipped", "more than there are spares"),
    ("slipped = [3, 70]", "slipped = [70, 3]", 25, "zone[0].slipped", "behind the one before"),
    ("surfaces = 2", "surfaces = 0", 6, "disk.surfaces", "from 1"),
    ("cylinders = 20", "cylinders = 4000000000", 5, "disk.cylinders", "from 1"),
    ("[controller]", "[access]\nread_ms = 1.0\nwrite_ms = 1.0\n[controller]", 11, "access", "one of them"),
];

#[test]
fn an_impossible_file_is_refused_by_file_line_and_field() {
    DriveModel::parse("right.toml", RIGHT).expect("nothing is wrong with it");
    for &(right, wrong, line, field, why) in WRONG {
        let text = RIGHT.replacen(right, wrong, 1);
        assert_ne!(text, RIGHT, "{right} stands in the file");
        let error = DriveModel::parse("bad.toml", &text).expect_err(wrong);
        assert_eq!((error.line, error.field.as_str()), (Some(line), field), "{wrong}: {error}");
        assert!(error.why.contains(why), "{wrong}: {error}");
        assert!(error.to_string().starts_with(&format!("bad.toml:{line}: {field}: ")), "{error}");
    }
}

#[test]
fn a_file_is_of_a_drive() {
    let empty =
        DriveModel::parse("empty.toml", "name = \"nothing\"\ncapacity_sectors = 1\n").expect_err("no drive");
    assert_eq!(empty.field, "disk");
    let torn = DriveModel::parse("torn.toml", "name = \"to").expect_err("not TOML");
    assert_eq!(torn.line, Some(1));
    let negative = "name = \"odd\"\ncapacity_sectors = 1\n[access]\nread_ms = -1.0\nwrite_ms = 1.0\n";
    let negative = DriveModel::parse("odd.toml", negative).expect_err("no such time");
    assert_eq!((negative.line, negative.field.as_str()), (Some(4), "access.read_ms"));
}

#[test]
fn slipped_sectors_take_their_room_from_the_end_of_the_disk() {
    let with = |capacity: u64| {
        let text = RIGHT.replacen("surfaces = 2", "surfaces = 2\nsparing = \"disk-end\"", 1);
        DriveModel::parse("slipped.toml", &text.replacen("= 2000", &format!("= {capacity}"), 1))
    };
    // 20 tracks of 60 and 20 of 50, without the two slipped.
    assert_eq!(with(2_199).expect_err("too large").field, "capacity_sectors");
    let last = with(2_198).expect("it fits").place(2_197).expect("a disk");
    assert_eq!((last.cylinder, last.surface, last.sector), (19, 0, 49));
}

/// Their makers left no sector unused, so that one more shows that the mapping counts spares as they did.
#[test]
fn mappings_have_room_for_exactly_what_the_drives_offer() {
    for id in ["hp-c2247a", "hp-c2490a", "hp-c3323a", "dec-rz26"] {
        let text = model::drive::find(id).expect("it is in the library").text;
        let capacity = DriveModel::parse(id, text).expect(id).capacity_sectors();
        let more = text.replacen(&format!("= {capacity}"), &format!("= {}", capacity + 1), 1);
        assert_eq!(DriveModel::parse(id, &more).expect_err(id).field, "capacity_sectors");
    }
}
