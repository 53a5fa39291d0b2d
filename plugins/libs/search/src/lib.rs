//! Finding bytes eight or sixteen at a time.
//!
//! What parsers of plugins spend their fuel on. The crate knows bytes and no format.
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

/// Sixteen bytes that are looked at together; the answers have a bit for each, the lowest for the first.
///
/// Where the target has 128-bit vectors these are a few instructions, elsewhere they do the same.
#[derive(Clone, Copy)]
pub struct Block(Vector);

/// Bytes in a block.
pub const BLOCK_BYTES: usize = 16;

impl Block {
    #[inline]
    pub fn new(bytes: &[u8; BLOCK_BYTES]) -> Block {
        Block(load(bytes))
    }

    /// The bytes that are `wanted`.
    #[inline]
    pub fn equal(self, wanted: u8) -> u32 {
        equal(self.0, wanted)
    }

    /// The bytes below 0x20.
    #[inline]
    pub fn controls(self) -> u32 {
        controls(self.0)
    }
}

/// Stands behind the end of what is looked at: no text in UTF-8 holds it.
const NO_BYTE: u8 = 0xFF;

/// Where the first hit is, looked for a block at a time. Bytes behind the end are 0xFF, which must be
/// no hit.
#[inline]
pub fn find_in_blocks(bytes: &[u8], hits: impl Fn(Block) -> u32) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(place) = first_bit(hits(Block::new(block))) {
            return Some(index * BLOCK_BYTES + place);
        }
    }
    // The end is looked at as the last whole block, part of it again, which costs less than a copy.
    match bytes.last_chunk::<BLOCK_BYTES>() {
        _ if rest.is_empty() => None,
        Some(last) => first_bit(hits(Block::new(last))).map(|place| bytes.len() - BLOCK_BYTES + place),
        None => find_in_few(bytes, hits),
    }
}

/// The same in less than a block: as its first and its last bytes side by side.
#[inline]
fn find_in_few(bytes: &[u8], hits: impl Fn(Block) -> u32) -> Option<usize> {
    let mut block = [NO_BYTE; BLOCK_BYTES];
    let half = if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        put(&mut block, first, last);
        8
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        put(&mut block, first, last);
        4
    } else {
        block.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
        bytes.len()
    };
    let place = first_bit(hits(Block::new(&block)))?;
    Some(if place < half { place } else { bytes.len() + place - 2 * half })
}

#[inline]
fn put<const SIZE: usize>(block: &mut [u8; BLOCK_BYTES], first: &[u8; SIZE], last: &[u8; SIZE]) {
    for (slot, bytes) in block.chunks_exact_mut(SIZE).zip([first, last]) {
        slot.copy_from_slice(bytes);
    }
}

#[inline]
fn first_bit(bits: u32) -> Option<usize> {
    if bits == 0 { None } else { Some(bits.trailing_zeros() as usize) }
}

#[cfg(target_feature = "simd128")]
use vectors::{Vector, controls, equal, load};
#[cfg(not(target_feature = "simd128"))]
use words::{Vector, controls, equal, load};

#[cfg(target_feature = "simd128")]
mod vectors {
    use core::arch::wasm32::{u8x16_bitmask, u8x16_eq, u8x16_lt, u8x16_splat, u64x2, v128};

    pub(super) type Vector = v128;

    #[inline]
    pub(super) fn load(bytes: &[u8; 16]) -> Vector {
        // Becomes one load.
        let (halves, _) = bytes.as_chunks::<8>();
        let word = |half: usize| halves.get(half).map_or(0, |half| u64::from_le_bytes(*half));
        u64x2(word(0), word(1))
    }

    #[inline]
    pub(super) fn equal(vector: Vector, wanted: u8) -> u32 {
        u32::from(u8x16_bitmask(u8x16_eq(vector, u8x16_splat(wanted))))
    }

    #[inline]
    pub(super) fn controls(vector: Vector) -> u32 {
        u32::from(u8x16_bitmask(u8x16_lt(vector, u8x16_splat(0x20))))
    }
}

#[cfg(not(target_feature = "simd128"))]
mod words {
    use super::{HIGHS, ONES};

    const LOWS: u64 = !HIGHS;

    pub(super) type Vector = u128;

    #[inline]
    pub(super) fn load(bytes: &[u8; 16]) -> Vector {
        u128::from_le_bytes(*bytes)
    }

    #[inline]
    pub(super) fn equal(vector: Vector, wanted: u8) -> u32 {
        bits(vector, |word| zero_bytes(word ^ (ONES * u64::from(wanted))))
    }

    #[inline]
    pub(super) fn controls(vector: Vector) -> u32 {
        bits(vector, |word| zero_bytes(word & (ONES * 0xE0)))
    }

    /// A high bit for each byte that is zero, exactly.
    #[inline]
    fn zero_bytes(word: u64) -> u64 {
        !(((word & LOWS) + LOWS) | word | LOWS)
    }

    /// From a high bit a byte to a bit a byte.
    #[inline]
    fn bits(vector: Vector, hits: impl Fn(u64) -> u64) -> u32 {
        let gather = |word: u64| ((hits(word) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
        gather(vector as u64) | (gather((vector >> 64) as u64) << 8)
    }
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
        fn a_block_tells_each_byte(bytes: [u8; 16], wanted in 0x1e_u8..0x23, near in proptest::collection::vec(0x1e_u8..0x23, 16)) {
            for bytes in [bytes, near.try_into().unwrap()] {
                let block = Block::new(&bytes);
                for (place, byte) in bytes.into_iter().enumerate() {
                    prop_assert_eq!(block.equal(wanted) >> place & 1 == 1, byte == wanted);
                    prop_assert_eq!(block.controls() >> place & 1 == 1, byte < 0x20);
                }
            }
        }

        #[test]
        fn finds_among_near_misses(bytes in proptest::collection::vec(0x1e_u8..0x23, 0..64)) {
            prop_assert_eq!(find_byte(&bytes, 0x21), bytes.iter().position(|&x| x == 0x21));
            prop_assert_eq!(find_control(&bytes), bytes.iter().position(|&x| x < 0x20));
        }

        #[test]
        fn blocks_find_the_first_hit(mut bytes in proptest::collection::vec(0x21_u8..0x23, 0..50), at in 0..50_usize) {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = 0x1f;
            }
            let expected = bytes.iter().position(|&x| x == 0x21 || x < 0x20);
            prop_assert_eq!(find_in_blocks(&bytes, |block| block.equal(0x21) | block.controls()), expected);
            prop_assert_eq!(find_in_blocks(&bytes, Block::controls), bytes.iter().position(|&x| x < 0x20));
        }
    }
}
