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

#[cfg(test)]
mod tests {
    #[test]
    fn known_answer() {
        // RFC 3720, appendix B.4: 32 bytes of zeros.
        assert_eq!(super::checksum(&[0; 32]), 0x8a91_36aa);
    }
}
