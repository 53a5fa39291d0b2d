//! A short digest of what a name is made of.

/// FNV-1a of 64 bits: the same for ever and on every machine, and easy to collide with for whoever
/// wants to.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    bytes.into_iter().fold(0xCBF2_9CE4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_published_function() {
        assert_eq!(super::fnv1a(*b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(super::fnv1a(*b"foobar"), 0x8594_4171_F739_67E8);
    }
}
