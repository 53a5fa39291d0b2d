//! Finding bytes eight at a time.
//!
//! The tricks are the classic ones on a word of eight bytes: a byte is found where a subtraction
//! borrows. A borrow can spill into the bytes above a hit, never below, so the lowest hit is exact.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Where the first byte below 0x20 is: segment ends, frame bytes, everything that is no text.
#[inline]
pub fn find_control(bytes: &[u8]) -> Option<usize> {
    find(bytes, |word| word.wrapping_sub(ONES * 0x20) & !word & HIGHS, |byte| byte < 0x20)
}

/// Where `wanted` is first.
#[inline]
pub fn find_byte(bytes: &[u8], wanted: u8) -> Option<usize> {
    find(bytes, |word| hits(word, wanted), |byte| byte == wanted)
}

/// Where one of two is first.
#[inline]
pub fn find_either(bytes: &[u8], one: u8, other: u8) -> Option<usize> {
    find(bytes, |word| hits(word, one) | hits(word, other), |byte| byte == one || byte == other)
}

/// Where the first byte is that is not ASCII.
#[inline]
pub fn find_non_ascii(bytes: &[u8]) -> Option<usize> {
    find(bytes, |word| word & HIGHS, |byte| byte >= 0x80)
}

/// A high bit where the word holds `wanted`.
#[inline]
fn hits(word: u64, wanted: u8) -> u64 {
    let zeroed = word ^ (ONES * u64::from(wanted));
    zeroed.wrapping_sub(ONES) & !zeroed & HIGHS
}

#[inline]
fn find(bytes: &[u8], in_word: impl Fn(u64) -> u64, is_hit: impl Fn(u8) -> bool) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = in_word(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let tail = rest.iter().position(|&byte| is_hit(byte))?;
    Some(words.len() * 8 + tail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_a_plain_loop_finds(bytes in proptest::collection::vec(any::<u8>(), 0..64), a: u8, b: u8) {
            prop_assert_eq!(find_byte(&bytes, a), bytes.iter().position(|&x| x == a));
            prop_assert_eq!(find_either(&bytes, a, b), bytes.iter().position(|&x| x == a || x == b));
            prop_assert_eq!(find_control(&bytes), bytes.iter().position(|&x| x < 0x20));
            prop_assert_eq!(find_non_ascii(&bytes), bytes.iter().position(|&x| x >= 0x80));
        }

        #[test]
        fn finds_among_near_misses(bytes in proptest::collection::vec(0x1e_u8..0x23, 0..64)) {
            prop_assert_eq!(find_byte(&bytes, 0x21), bytes.iter().position(|&x| x == 0x21));
            prop_assert_eq!(find_control(&bytes), bytes.iter().position(|&x| x < 0x20));
        }
    }
}
