//! `redundancy`: at the end, all current members of a group agree: copies are equal, parity is the code of the data,
//! stamps say the same everywhere, and each holds what clients read last.

use super::Violation;
use base::{Payload, Stamp};
use code::Code;
use rules::layout::Geometry;

const NAME: &str = "redundancy";

/// What one current member holds at one block.
#[derive(Clone, Debug)]
pub struct Held {
    /// The member's slot.
    pub slot: u8,
    /// One stamp for data; one a data shard for parity.
    pub stamps: Vec<Stamp>,
    /// The block.
    pub content: Payload,
}

/// Checks what the current members hold at `lba`; members whose block is unreadable are left out.
pub fn check(geometry: &Geometry, lba: u64, held: &[Held]) -> Result<(), Violation> {
    let broken =
        |what: String| Err(Violation::new(NAME, format!("{} block {lba}: {what}", geometry.layout())));
    let verdict = match (geometry.layout().copies(), geometry.layout().parity()) {
        (2.., _) => check_copies(held),
        (_, 1..) => check_stamps(geometry, lba, held).and_then(|()| check_code(geometry, lba, held)),
        _ => Ok(()),
    };
    verdict.or_else(broken)
}

/// Checks that a data block holds the value of each of its registers, which share it equally.
pub fn check_content(lba: u64, held: &Held, values: &[u64]) -> Result<(), Violation> {
    let grain = held.content.len() / values.len().max(1);
    for (at, value) in values.iter().enumerate() {
        let part = held.content.slice(at * grain, grain);
        let is_it = |word: &[u8; 8]| u64::from_le_bytes(*word) == *value;
        if !part.parts().iter().all(|bytes| bytes.as_chunks::<8>().0.iter().all(is_it)) {
            let what = format!("slot {} block {lba} holds {part:?}, where {value} was read", held.slot);
            return Err(Violation::new(NAME, what));
        }
    }
    Ok(())
}

fn check_copies(held: &[Held]) -> Result<(), String> {
    let different =
        held.windows(2).find(|pair| pair[0].stamps != pair[1].stamps || pair[0].content != pair[1].content);
    different.map_or(Ok(()), |pair| Err(differ(&pair[0], &pair[1])))
}

fn check_stamps(geometry: &Geometry, lba: u64, held: &[Held]) -> Result<(), String> {
    let data = geometry.layout().data();
    let (units, parities): (Vec<&Held>, Vec<&Held>) =
        held.iter().partition(|member| geometry.shard_at(lba, member.slot) < data);
    for parity in &parities {
        for unit in &units {
            let index = usize::from(geometry.shard_at(lba, unit.slot));
            if parity.stamps.get(index) != unit.stamps.first() {
                return Err(differ(unit, parity));
            }
        }
    }
    let different = parities.windows(2).find(|pair| pair[0].stamps != pair[1].stamps);
    different.map_or(Ok(()), |pair| Err(differ(pair[0], pair[1])))
}

fn check_code(geometry: &Geometry, lba: u64, held: &[Held]) -> Result<(), String> {
    let layout = geometry.layout();
    let shards: Vec<(u8, Payload)> =
        held.iter().map(|member| (geometry.shard_at(lba, member.slot), member.content.clone())).collect();
    let enough = usize::from(layout.data());
    if shards.len() <= enough {
        return Ok(());
    }
    let code = Code::new(layout.data(), layout.parity());
    for (shard, content) in &shards[enough..] {
        let computed = code.reconstruct(&shards[..enough], *shard).map_err(|error| error.to_string())?;
        if computed != *content {
            return Err(format!("shard {shard} is {content:?}, and {computed:?} by the others"));
        }
    }
    Ok(())
}

fn differ(a: &Held, b: &Held) -> String {
    let text = |held: &Held| {
        let word = held
            .content
            .parts()
            .first()
            .and_then(|part| part.first_chunk())
            .map_or(0, |w| u64::from_le_bytes(*w));
        format!("slot {} holds {word:#x} of {:?}", held.slot, held.stamps)
    };
    format!("{}, {}", text(a), text(b))
}
