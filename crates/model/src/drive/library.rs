//! The drives of the repository, a file each.

/// A drive's id and the text of its file.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Short, for command lines.
    pub id: &'static str,
    /// The file, for [`super::DriveModel::parse`].
    pub text: &'static str,
}

const DRIVES: &[Entry] = &[
    Entry::new("dec-rz26", include_str!("../../drives/dec-rz26.toml")),
    Entry::new("hp-c2247a", include_str!("../../drives/hp-c2247a.toml")),
    Entry::new("hp-c2490a", include_str!("../../drives/hp-c2490a.toml")),
    Entry::new("hp-c3323a", include_str!("../../drives/hp-c3323a.toml")),
    Entry::new("ibm-18es", include_str!("../../drives/ibm-18es.toml")),
    Entry::new("network-raid-7200", include_str!("../../drives/network-raid-7200.toml")),
    Entry::new("network-raid-ram-disk", include_str!("../../drives/network-raid-ram-disk.toml")),
    Entry::new("nvme-ssd", include_str!("../../drives/nvme-ssd.toml")),
    Entry::new("quantum-atlas-10k", include_str!("../../drives/quantum-atlas-10k.toml")),
    Entry::new("quantum-atlas-iii", include_str!("../../drives/quantum-atlas-iii.toml")),
    Entry::new("ram-disk", include_str!("../../drives/ram-disk.toml")),
    Entry::new("retrieval-barracuda", include_str!("../../drives/retrieval-barracuda.toml")),
    Entry::new("retrieval-cheetah", include_str!("../../drives/retrieval-cheetah.toml")),
    Entry::new("retrieval-raptor", include_str!("../../drives/retrieval-raptor.toml")),
    Entry::new("retrieval-vertex", include_str!("../../drives/retrieval-vertex.toml")),
    Entry::new("retrieval-x25e", include_str!("../../drives/retrieval-x25e.toml")),
    Entry::new("robustore-disk", include_str!("../../drives/robustore-disk.toml")),
    Entry::new("sata-ssd", include_str!("../../drives/sata-ssd.toml")),
    Entry::new("seagate-barracuda", include_str!("../../drives/seagate-barracuda.toml")),
    Entry::new("seagate-cheetah-4lp", include_str!("../../drives/seagate-cheetah-4lp.toml")),
    Entry::new("seagate-cheetah-9lp", include_str!("../../drives/seagate-cheetah-9lp.toml")),
];

/// All drives, by id.
pub fn library() -> &'static [Entry] {
    DRIVES
}

/// The drive of this id.
pub fn find(id: &str) -> Option<&'static Entry> {
    DRIVES.iter().find(|entry| entry.id == id)
}

impl Entry {
    const fn new(id: &'static str, text: &'static str) -> Entry {
        Entry { id, text }
    }
}
