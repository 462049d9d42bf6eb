//! Blocks that say what they are: each 4 KiB repeats a value and the block's place, sixteen bytes at a time; zeroes are the
//! value 0.

use anyhow::{Result, ensure};

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 4096;

/// What a block holds that was written with a value to a place.
pub fn content(value: u64, place: u64) -> Vec<u8> {
    if value == 0 {
        return vec![0; BLOCK_BYTES as usize];
    }
    let mut pair = [0; 16];
    pair[..8].copy_from_slice(&value.to_le_bytes());
    pair[8..].copy_from_slice(&place.to_le_bytes());
    pair.repeat(BLOCK_BYTES as usize / 16)
}

/// The value that a block holds. An error if it is no block of ours, another place's, or a mixture.
pub fn value(data: &[u8], place: u64) -> Result<u64> {
    let value = first_word(data);
    ensure!(
        data == content(value, place),
        "block {place} holds a mixture, another block or foreign bytes; it begins with {value}"
    );
    Ok(value)
}

fn first_word(data: &[u8]) -> u64 {
    data.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_from_its_place_only() -> Result<()> {
        let mut block = content(7, 3);
        assert_eq!(value(&block, 3)?, 7);
        assert_eq!(value(&content(0, 3), 3)?, 0);
        assert!(value(&block, 4).is_err(), "another place's");
        block[2048..].copy_from_slice(&content(8, 3)[2048..]);
        assert!(value(&block, 3).is_err(), "a mixture");
        Ok(())
    }
}
