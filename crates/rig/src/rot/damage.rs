//! What rots on a disk: places drawn over the whole file, with more where something lies, and bytes changed there.

use anyhow::{Context, Result};
use rig::noise::Noise;
use rustix::fs::{SeekFrom, seek};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Superblock, journal headers and what lies before the journal.
const HEAD_BYTES: u64 = 64 << 10;
const SECTOR_BYTES: u64 = 512;
/// Bytes changed one by one at a disk, at most: few, so that some disks are still whole enough to be used; and many.
const FLIPS: [u64; 4] = [1, 4, 16, 96];
/// Sectors that are overwritten in one go, at most.
const BURST_SECTORS: u64 = 64;

/// What was done to a disk.
#[derive(Clone, Copy, Default)]
pub(super) struct Damage {
    /// Bytes changed.
    pub(super) bytes: u64,
}

/// Changes bytes anywhere in a brick's disk. `journal_bytes` is the size of its journal.
pub(super) fn damage(path: &Path, journal_bytes: u64, noise: &mut Noise) -> Result<Damage> {
    let open = || OpenOptions::new().read(true).write(true).open(path);
    let file = open().with_context(|| format!("opening {}", path.display()))?;
    let used = used(&file)?;
    let mut damage = Damage::default();
    let most = FLIPS[noise.below(FLIPS.len() as u64) as usize];
    for _ in 0..1 + noise.below(most) {
        let at = place(&file, &used, journal_bytes, noise)?;
        damage.bytes += overwrite(&file, at, 1, noise)?;
    }
    if noise.below(4) == 0 {
        let at = place(&file, &used, journal_bytes, noise)? / SECTOR_BYTES * SECTOR_BYTES;
        damage.bytes += overwrite(&file, at, SECTOR_BYTES * (1 + noise.below(BURST_SECTORS)), noise)?;
    }
    file.sync_all()?;
    Ok(damage)
}

/// Changes every byte of a block of 4 KiB wherever a disk holds exactly this content; how often it was found.
pub(super) fn damage_content(path: &Path, content: &[u8], noise: &mut Noise) -> Result<u64> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let (mut found, mut chunk) = (0, vec![0; content.len()]);
    for (from, to) in used(&file)? {
        for at in (from..to).step_by(content.len()) {
            file.read_exact_at(&mut chunk, at)?;
            if chunk == content {
                overwrite(&file, at, content.len() as u64, noise)?;
                found += 1;
            }
        }
    }
    file.sync_all()?;
    Ok(found)
}

fn place(file: &File, used: &[(u64, u64)], journal_bytes: u64, noise: &mut Noise) -> Result<u64> {
    Ok(match noise.below(20) {
        0 => noise.below(file.metadata()?.len()),
        1 => HEAD_BYTES + noise.below(journal_bytes),
        2 if noise.below(4) == 0 => noise.below(HEAD_BYTES),
        _ => {
            let mut at = noise.below(used.iter().map(|(from, to)| to - from).sum::<u64>().max(1));
            for (from, to) in used {
                if at < to - from {
                    return Ok(from + at);
                }
                at -= to - from;
            }
            0
        }
    })
}

/// Changes each byte to another one; how many.
fn overwrite(file: &File, at: u64, length: u64, noise: &mut Noise) -> Result<u64> {
    let length = length.min(file.metadata()?.len() - at);
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at)?;
    bytes.iter_mut().for_each(|byte| *byte ^= 1 + noise.below(255) as u8);
    file.write_all_at(&bytes, at)?;
    Ok(length)
}

/// Stretches of the file that are not holes, cut to whole blocks.
fn used(file: &File) -> Result<Vec<(u64, u64)>> {
    let (mut used, mut at) = (Vec::new(), 0);
    while let Ok(from) = seek(file, SeekFrom::Data(at)) {
        let to = seek(file, SeekFrom::Hole(from))?;
        used.push((from & !4095, to & !4095));
        at = to;
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_change_where_something_lies_and_nowhere_else() -> Result<()> {
        let path = job::scratch("log")?.join(format!("{}-damage", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        file.set_len(8 << 20)?;
        file.write_all_at(&[7; 4096], 3 << 20)?;
        file.write_all_at(&[7; 4096], 5 << 20)?;
        assert_eq!(damage_content(&path, &[7; 4096], &mut Noise::new(1))?, 2);
        assert_eq!(damage_content(&path, &[7; 4096], &mut Noise::new(1))?, 0);
        let before = std::fs::read(&path)?;
        let bytes = damage(&path, 1 << 20, &mut Noise::new(2))?.bytes;
        let after = std::fs::read(&path)?;
        let changed = before.iter().zip(&after).filter(|(one, two)| one != two).count() as u64;
        assert!(changed > 0 && changed <= bytes);
        Ok(std::fs::remove_file(&path)?)
    }
}
