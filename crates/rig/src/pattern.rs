//! Blocks that prove what they are: each 4 KiB carries the volume, its own number, a value unique to the write, and a
//! checksum over all of it. A block of zeros carries the value 0: never written.

use base::BLOCK;

const MAGIC: u64 = u64::from_le_bytes(*b"brickwrk");
const HEADER_BYTES: usize = 40;
/// The tag of a volume that is the only one of its test.
const ALONE: u64 = 0;

/// Why a block is not what it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// Neither zeros nor a block of ours.
    #[error("it holds foreign bytes")]
    Foreign,
    /// Parts of it come from different writes, or bits changed.
    #[error("it is torn or corrupt: its checksum does not match")]
    Torn,
    /// A block of ours, in the wrong place.
    #[error("it holds block {block} of volume tag {tag}")]
    Misplaced {
        /// The volume it was written to.
        tag: u64,
        /// The block it was written to.
        block: u64,
    },
}

/// Writes the content of `block` for `value` into `out`, 4096 bytes. `value` is not 0; `tag` names the volume.
pub fn fill(out: &mut [u8], tag: u64, block: u64, value: u64) {
    assert_eq!(out.len(), BLOCK, "a pattern fills one block");
    let mut state = (tag ^ block.rotate_left(24) ^ value.rotate_left(48)) | 1;
    for word in out[HEADER_BYTES..].chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    for (index, field) in [MAGIC, tag, block, value].into_iter().enumerate() {
        out[index * 8..index * 8 + 8].copy_from_slice(&field.to_le_bytes());
    }
    let checksum = u64::from(checksum(out));
    out[32..40].copy_from_slice(&checksum.to_le_bytes());
}

/// The value of a block read from `block` of the volume `tag`; 0 when it was never written.
pub fn value(content: &[u8], tag: u64, block: u64) -> Result<u64, Damage> {
    let field =
        |index: usize| u64::from_le_bytes(content[index * 8..index * 8 + 8].try_into().expect("8 bytes"));
    if field(0) != MAGIC {
        return if content.iter().all(|&byte| byte == 0) { Ok(0) } else { Err(Damage::Foreign) };
    }
    if field(4) != u64::from(checksum(content)) {
        return Err(Damage::Torn);
    }
    if (field(1), field(2)) != (tag, block) {
        return Err(Damage::Misplaced { tag: field(1), block: field(2) });
    }
    Ok(field(3))
}

/// What a block of a lone volume holds that was written with a value to a place; zeros are the value 0.
pub fn content(value: u64, place: u64) -> Vec<u8> {
    let mut content = vec![0; BLOCK];
    if value != 0 {
        fill(&mut content, ALONE, place, value);
    }
    content
}

/// The value that [`content`] wrote to a place.
pub fn value_at(content: &[u8], place: u64) -> Result<u64, Damage> {
    value(content, ALONE, place)
}

/// Over all but its own field.
fn checksum(content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&content[..32]), &content[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_change_is_seen(tag: u64, block: u64, value_in in 1u64.., at in 0usize..BLOCK, flip in 1u8..) {
            let mut content = vec![0; BLOCK];
            fill(&mut content, tag, block, value_in);
            prop_assert_eq!(value(&content, tag, block), Ok(value_in));
            prop_assert!(value(&content, tag, block.wrapping_add(1)).is_err());
            prop_assert!(value(&content, tag ^ 1, block).is_err());
            content[at] ^= flip;
            prop_assert!(value(&content, tag, block).is_err());
        }
    }

    #[test]
    fn two_writes_in_one_block_are_seen() {
        let (mut one, mut two) = (vec![0; BLOCK], vec![0; BLOCK]);
        fill(&mut one, 1, 7, 5);
        fill(&mut two, 1, 7, 6);
        one[512..1024].copy_from_slice(&two[512..1024]);
        assert_eq!(value(&one, 1, 7), Err(Damage::Torn));
        assert_eq!(value(&[0; BLOCK], 1, 7), Ok(0));
    }
}
