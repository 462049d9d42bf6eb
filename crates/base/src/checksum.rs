//! The checksum of a block.

/// CRC-32C (Castagnoli), as computed by the processor where it can.
pub type Checksum = u32;

/// The checksum of `bytes`.
pub fn checksum(bytes: &[u8]) -> Checksum {
    crc32c::crc32c(bytes)
}

/// The checksum of bytes that come in pieces.
pub fn checksum_append(sum: Checksum, bytes: &[u8]) -> Checksum {
    crc32c::crc32c_append(sum, bytes)
}

/// The checksum of what `first` is the checksum of, followed by `bytes` bytes of which `second` is that.
pub fn checksum_joined(first: Checksum, second: Checksum, bytes: usize) -> Checksum {
    crc32c::crc32c_combine(first, second, bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn known_answer() {
        // RFC 3720, appendix B.4: 32 bytes of zeros.
        assert_eq!(super::checksum(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn checksums_of_parts_give_that_of_the_whole() {
        let all = b"a patch changes some of an object";
        for cut in 0..=all.len() {
            let (first, second) = all.split_at(cut);
            let joined =
                super::checksum_joined(super::checksum(first), super::checksum(second), second.len());
            assert_eq!(joined, super::checksum(all));
        }
    }
}
