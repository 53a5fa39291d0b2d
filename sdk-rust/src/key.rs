//! Keys: what decides a message's lane, and what it is recognised by when it comes again.

/// Bytes in a key, by the contract.
pub const KEY_BYTES_MAX: usize = 256;

/// A text as a key: none where it is empty; a long one is cut and ends in a digest, so that
/// it still tells messages apart.
pub fn key_of(text: impl Into<String>) -> Option<String> {
    let mut text = text.into();
    if text.len() > KEY_BYTES_MAX {
        let digest = fnv1a(text.as_bytes());
        text.truncate(text.floor_char_boundary(KEY_BYTES_MAX - 33));
        text.push_str(&format!("#{digest:032x}"));
    }
    (!text.is_empty()).then_some(text)
}

fn fnv1a(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_cut_but_still_tells_apart() {
        let key = |last: &str| key_of(format!("{}{last}", "ü".repeat(300))).unwrap();
        assert!(key("a").len() <= KEY_BYTES_MAX);
        assert_ne!(key("a"), key("b"));
        assert_eq!(key("a"), key("a"));
        assert_eq!((key_of("short").as_deref(), key_of("")), (Some("short"), None));
    }
}
