//! Character sets by their WHATWG or HL7 table 0211 names, strictly: no replacement, no guess.
//!
//! WHATWG labels mean windows-125x where ISO 8859 is written; here ISO 8859 is what it says,
//! since a peer that declares 8859/1 sends control characters at 0x80, not quotation marks.
//! `CNS 11643-1992` and `ISO IR159` are not offered: no two systems agree on their bytes.

use encoding_rs::{
    BIG5, DecoderResult, EUC_KR, EncoderResult, Encoding, GB18030, ISO_2022_JP, ISO_8859_2, ISO_8859_3,
    ISO_8859_4, ISO_8859_5, ISO_8859_6, ISO_8859_7, ISO_8859_8, ISO_8859_10, ISO_8859_13, ISO_8859_14,
    ISO_8859_15, ISO_8859_16, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_874, WINDOWS_1252,
    WINDOWS_1254,
};

/// A character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Ascii,
    /// As `encoding_rs` has it.
    Table(&'static Encoding),
    /// The upper half of a windows set above 0xA0, control characters below: true ISO 8859.
    Iso(&'static Encoding),
    /// JIS X 0201: Roman with yen and overline, half-width katakana.
    JisX0201,
    Utf16(Ends),
    Utf32(Ends),
}

/// The order of bytes in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Big,
    Little,
    /// By the mark at the start; without one, big.
    Marked,
}

/// The offset of what cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub usize);

impl Charset {
    /// By any of its names; case, blanks and dashes do not count.
    pub fn named(name: &str) -> Option<Charset> {
        let plain: String = name
            .chars()
            .filter(|c| !matches!(c, ' ' | '-' | '_' | '/' | '\t'))
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let number = plain.strip_prefix("iso8859").or_else(|| plain.strip_prefix("8859"));
        if let Some(charset) = number.and_then(iso_8859) {
            return Some(charset);
        }
        Some(match plain.as_str() {
            "ascii" | "usascii" | "isoir6" | "ansix3.41968" | "iso646us" | "us" => Charset::Ascii,
            "latin1" | "l1" | "cp819" | "ibm819" | "isoir100" => Charset::Iso(WINDOWS_1252),
            "latin5" | "l5" | "isoir148" => Charset::Iso(WINDOWS_1254),
            "tis620" => Charset::Iso(WINDOWS_874),
            "isoir14" | "jisx0201" => Charset::JisX0201,
            "isoir87" => Charset::Table(ISO_2022_JP),
            "gb180302000" => Charset::Table(GB18030),
            "ksx1001" => Charset::Table(EUC_KR),
            "big5" => Charset::Table(BIG5),
            "unicodeutf8" => Charset::Table(UTF_8),
            "unicode" | "unicodeutf16" | "utf16" => Charset::Utf16(Ends::Marked),
            "unicodeutf32" | "utf32" => Charset::Utf32(Ends::Marked),
            "utf32be" => Charset::Utf32(Ends::Big),
            "utf32le" => Charset::Utf32(Ends::Little),
            _ => return by_label(name),
        })
    }

    /// Bytes to text.
    pub fn decode(self, bytes: &[u8]) -> Result<String, Malformed> {
        match self {
            Charset::Ascii => decode_single(bytes, |byte| byte.is_ascii().then_some(char::from(byte))),
            Charset::JisX0201 => decode_single(bytes, jis_x0201),
            Charset::Iso(encoding) => decode_iso(encoding, bytes),
            Charset::Table(encoding) => decode_table(encoding, bytes),
            Charset::Utf16(ends) => decode_units::<2>(bytes, ends),
            Charset::Utf32(ends) => decode_units::<4>(bytes, ends),
        }
    }

    /// Text to bytes; the offset of an error counts the text's bytes.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, Malformed> {
        match self {
            Charset::Ascii => encode_single(text, |c| c.is_ascii().then_some(c as u8)),
            Charset::JisX0201 => encode_single(text, jis_x0201_byte),
            Charset::Iso(encoding) => encode_iso(encoding, text),
            Charset::Table(encoding) => encode_table(encoding, text),
            Charset::Utf16(ends) => {
                let units = text.encode_utf16();
                Ok(units
                    .flat_map(
                        |unit| if ends == Ends::Little { unit.to_le_bytes() } else { unit.to_be_bytes() },
                    )
                    .collect())
            }
            Charset::Utf32(ends) => {
                let units = text.chars().map(u32::from);
                Ok(units
                    .flat_map(
                        |unit| if ends == Ends::Little { unit.to_le_bytes() } else { unit.to_be_bytes() },
                    )
                    .collect())
            }
        }
    }
}

fn iso_8859(number: &str) -> Option<Charset> {
    Some(match number {
        "1" => Charset::Iso(WINDOWS_1252),
        "2" => Charset::Table(ISO_8859_2),
        "3" => Charset::Table(ISO_8859_3),
        "4" => Charset::Table(ISO_8859_4),
        "5" => Charset::Table(ISO_8859_5),
        "6" => Charset::Table(ISO_8859_6),
        "7" => Charset::Table(ISO_8859_7),
        "8" => Charset::Table(ISO_8859_8),
        "9" => Charset::Iso(WINDOWS_1254),
        "10" => Charset::Table(ISO_8859_10),
        "11" => Charset::Iso(WINDOWS_874),
        "13" => Charset::Table(ISO_8859_13),
        "14" => Charset::Table(ISO_8859_14),
        "15" => Charset::Table(ISO_8859_15),
        "16" => Charset::Table(ISO_8859_16),
        _ => return None,
    })
}

fn by_label(name: &str) -> Option<Charset> {
    let encoding = Encoding::for_label(name.as_bytes())?;
    if encoding == UTF_16LE {
        return Some(Charset::Utf16(Ends::Little));
    }
    if encoding == UTF_16BE {
        return Some(Charset::Utf16(Ends::Big));
    }
    // Labels of the windows sets that do not say windows were taken above; what is left of them
    // would be a guess.
    let guessed = [WINDOWS_1252, WINDOWS_1254, WINDOWS_874].contains(&encoding) && !says_windows(name);
    (encoding != REPLACEMENT && !guessed).then_some(Charset::Table(encoding))
}

fn says_windows(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    ["windows-", "cp1", "x-cp1", "dos-874"].iter().any(|start| name.starts_with(start))
}

fn decode_single(bytes: &[u8], one: impl Fn(u8) -> Option<char>) -> Result<String, Malformed> {
    let mut text = String::with_capacity(bytes.len());
    for (offset, byte) in bytes.iter().enumerate() {
        text.push(one(*byte).ok_or(Malformed(offset))?);
    }
    Ok(text)
}

fn encode_single(text: &str, one: impl Fn(char) -> Option<u8>) -> Result<Vec<u8>, Malformed> {
    text.char_indices().map(|(offset, c)| one(c).ok_or(Malformed(offset))).collect()
}

/// Below 0xA0 a byte is its own code point; above, the windows set agrees with ISO 8859.
fn decode_iso(encoding: &'static Encoding, bytes: &[u8]) -> Result<String, Malformed> {
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    let mut rest = bytes;
    while let Some(byte) = rest.first() {
        let control = (0x80..0xa0).contains(byte);
        let run = rest.iter().take_while(|byte| (0x80..0xa0).contains(*byte) == control).count();
        let (head, tail) = rest.split_at(run);
        if control {
            text.extend(head.iter().map(|byte| char::from(*byte)));
        } else {
            let start = bytes.len() - rest.len();
            text.push_str(&decode_table(encoding, head).map_err(|at| Malformed(start + at.0))?);
        }
        rest = tail;
    }
    Ok(text)
}

fn encode_iso(encoding: &'static Encoding, text: &str) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::with_capacity(text.len());
    for (offset, c) in text.char_indices() {
        let code = u32::from(c);
        if code < 0xa0 {
            bytes.push(code as u8);
            continue;
        }
        let mut buffer = [0; 4];
        match encode_table(encoding, c.encode_utf8(&mut buffer))?.as_slice() {
            // Below 0xA0 stands what only the windows set has.
            [byte] if *byte >= 0xa0 => bytes.push(*byte),
            _ => return Err(Malformed(offset)),
        }
    }
    Ok(bytes)
}

fn decode_table(encoding: &'static Encoding, bytes: &[u8]) -> Result<String, Malformed> {
    if encoding == UTF_8 {
        let text = std::str::from_utf8(bytes).map_err(|error| Malformed(error.valid_up_to()))?;
        return Ok(text.to_owned());
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len()).unwrap_or(bytes.len());
    let mut text = String::with_capacity(room);
    let (result, read) = decoder.decode_to_string_without_replacement(bytes, &mut text, true);
    match result {
        DecoderResult::InputEmpty => Ok(text),
        DecoderResult::Malformed(bad, after) => {
            Err(Malformed(read.saturating_sub(usize::from(bad) + usize::from(after))))
        }
        DecoderResult::OutputFull => Err(Malformed(read)),
    }
}

fn encode_table(encoding: &'static Encoding, text: &str) -> Result<Vec<u8>, Malformed> {
    if encoding == UTF_8 {
        return Ok(text.as_bytes().to_vec());
    }
    let mut encoder = encoding.new_encoder();
    let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len());
    let mut bytes = Vec::with_capacity(room);
    let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true);
    match result {
        EncoderResult::InputEmpty => Ok(bytes),
        EncoderResult::Unmappable(c) => Err(Malformed(read.saturating_sub(c.len_utf8()))),
        EncoderResult::OutputFull => Err(Malformed(read)),
    }
}

/// UTF-16 (two bytes a unit) and UTF-32 (four).
fn decode_units<const SIZE: usize>(bytes: &[u8], ends: Ends) -> Result<String, Malformed> {
    let marked = |ends: Ends| {
        let unit = bytes.first_chunk::<SIZE>()?;
        (unit_of(unit, ends) == 0xfeff).then_some(ends)
    };
    let (little, skip) = match ends {
        Ends::Big => (false, 0),
        Ends::Little => (true, 0),
        Ends::Marked => match marked(Ends::Big).or(marked(Ends::Little)) {
            Some(ends) => (ends == Ends::Little, SIZE),
            None => (false, 0),
        },
    };
    let ends = if little { Ends::Little } else { Ends::Big };
    let body = bytes.get(skip..).unwrap_or_default();
    let (units, rest) = body.as_chunks::<SIZE>();
    let mut text = String::with_capacity(body.len());
    let mut offset = skip;
    if SIZE == 2 {
        let units = units.iter().map(|unit| unit_of(unit, ends) as u16);
        for c in char::decode_utf16(units) {
            let c = c.map_err(|_| Malformed(offset))?;
            offset += c.len_utf16() * SIZE;
            text.push(c);
        }
    } else {
        for unit in units {
            text.push(char::from_u32(unit_of(unit, ends)).ok_or(Malformed(offset))?);
            offset += SIZE;
        }
    }
    if rest.is_empty() { Ok(text) } else { Err(Malformed(offset)) }
}

fn unit_of<const SIZE: usize>(unit: &[u8; SIZE], ends: Ends) -> u32 {
    let add = |value: u32, byte: &u8| (value << 8) | u32::from(*byte);
    if ends == Ends::Little { unit.iter().rev().fold(0, add) } else { unit.iter().fold(0, add) }
}

fn jis_x0201(byte: u8) -> Option<char> {
    match byte {
        0x5c => Some('¥'),
        0x7e => Some('‾'),
        0..=0x7f => Some(char::from(byte)),
        0xa1..=0xdf => char::from_u32(0xff61 + u32::from(byte - 0xa1)),
        _ => None,
    }
}

fn jis_x0201_byte(c: char) -> Option<u8> {
    match c {
        '¥' => Some(0x5c),
        '‾' => Some(0x7e),
        '\\' | '~' => None,
        '\0'..='\u{7f}' => Some(c as u8),
        '\u{ff61}'..='\u{ff9f}' => u8::try_from(u32::from(c) - 0xff61 + 0xa1).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(name: &str, bytes: &[u8], text: &str) {
        let charset = Charset::named(name).unwrap_or_else(|| panic!("`{name}` is not known"));
        assert_eq!(charset.decode(bytes).as_deref(), Ok(text), "{name}");
        assert_eq!(charset.encode(text).as_deref(), Ok(bytes), "{name}");
    }

    #[test]
    fn every_charset_of_the_table_reads_and_writes() {
        round("ASCII", b"abc", "abc");
        round("8859/1", b"\xe4\x80", "ä\u{80}");
        round("iso-8859-1", b"\x93", "\u{93}");
        round("windows-1252", b"\x93\xe4", "\u{201c}ä");
        round("8859/2", b"\xb1", "ą");
        round("8859/5", b"\xb0", "А");
        round("8859/9", b"\xfd\x85", "ı\u{85}");
        round("8859/11", b"\xa1\x85", "ก\u{85}");
        round("8859/15", b"\xa4", "€");
        round("UNICODE UTF-8", "ä€".as_bytes(), "ä€");
        round("GB 18030-2000", b"\xc4\xe3", "你");
        round("KS X 1001", b"\xb0\xa1", "가");
        round("BIG-5", b"\xa7\x41", "你");
        round("ISO IR14", b"\x5c\xb1", "¥ｱ");
        round("ISO IR87", b"\x1b$B\x24\x22\x1b(B", "あ");
        round("utf-16le", b"a\0", "a");
        round("UTF-16BE", b"\0a\xd8\x3d\xde\x00", "a😀");
        round("UNICODE UTF-32", b"\0\x01\xf6\0", "😀");
    }

    #[test]
    fn a_mark_decides_the_order_of_bytes() {
        let charset = Charset::named("UNICODE UTF-16").unwrap();
        assert_eq!(charset.decode(b"\xff\xfea\0").as_deref(), Ok("a"));
        assert_eq!(charset.decode(b"\xfe\xff\0a").as_deref(), Ok("a"));
        assert_eq!(charset.decode(b"\0a").as_deref(), Ok("a"));
    }

    #[test]
    fn what_cannot_be_converted_has_its_offset() {
        let malformed = |name: &str, bytes: &[u8]| Charset::named(name).unwrap().decode(bytes).unwrap_err().0;
        assert_eq!(malformed("ascii", b"ab\x80"), 2);
        assert_eq!(malformed("utf-8", b"ab\xff"), 2);
        assert_eq!(malformed("8859/11", b"\x85ab\xfc"), 3);
        assert_eq!(malformed("big5", b"a\xa7"), 1);
        assert_eq!(malformed("utf-16be", b"\0a\xd8\x3d\0a"), 2);
        assert_eq!(malformed("utf-16be", b"\0a\0"), 2);
        assert_eq!(malformed("utf-32be", b"\0\x11\0\0"), 0);
        let unmappable = |name: &str, text: &str| Charset::named(name).unwrap().encode(text).unwrap_err().0;
        assert_eq!(unmappable("8859/1", "ä\u{201c}"), 2);
        assert_eq!(unmappable("ascii", "aä"), 1);
        assert_eq!(unmappable("big5", "a😀"), 1);
        assert_eq!(unmappable("isoir14", "a\\"), 1);
    }

    #[test]
    fn a_charset_nobody_agrees_on_is_unknown() {
        for name in ["CNS 11643-1992", "ISO IR159", "klingon", "", "iso-2022-kr", "8859/12"] {
            assert_eq!(Charset::named(name), None, "{name}");
        }
    }
}
