//! JSON: checks that bytes are one well-formed value, as they come, and finds its end.
//!
//! No tree is built and nothing is copied: a scanner is a few numbers. Text must be
//! UTF-8. Names may repeat and halves of surrogate pairs may stand alone in escapes, as
//! the grammar allows.

/// How deep values may be nested at all.
pub const DEPTH_MAX: u8 = 128;

/// Why the bytes are no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How many bytes of the piece were right.
    pub used: usize,
    pub what: &'static str,
}

/// Scans one value.
#[derive(Clone, Debug)]
pub struct Scanner {
    state: State,
    /// What is open, the innermost as the lowest bit: 1 is an object.
    open: u128,
    depth: u8,
    depth_max: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    FirstElement,
    FirstName,
    Name,
    Colon,
    AfterElement,
    AfterMember,
    Text(Text, Part),
    Number(Number),
    Literal(&'static [u8]),
    Done,
}

/// What a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Name,
    Value,
}

/// Where in a string the scanner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Plain,
    Escape,
    /// So many hexadecimal digits are to come.
    Hex(u8),
    /// So many bytes of a character are to come, the next one in this range.
    Utf8(u8, u8, u8),
}

/// Where in a number the scanner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Scanner {
    /// In front of a value. Deeper nesting than `depth_max` is a fault.
    pub fn new(depth_max: u8) -> Scanner {
        Scanner { state: State::Value, open: 0, depth: 0, depth_max: depth_max.min(DEPTH_MAX) }
    }

    /// The value has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Goes on to the value's end or the piece's; says how many bytes are the value's. The
    /// value's first byte is the first that is not a blank.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut used = 0;
        while let Some(&byte) = bytes.get(used) {
            let step = match self.state {
                State::Done => break,
                State::Text(text, part) => self.in_text(text, part, bytes.get(used..).unwrap_or_default()),
                State::Number(number) => self.in_number(number, byte),
                State::Literal(rest) => self.in_literal(rest, byte),
                _ if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') => Ok(1),
                _ => self.between(byte).map(|()| 1),
            };
            used += step.map_err(|what| Fault { used, what })?;
        }
        Ok(used)
    }

    /// No more bytes follow. A number only ends where something else begins.
    pub fn finish(&mut self) -> Result<(), &'static str> {
        if let State::Number(number) = self.state
            && number.may_end()
            && self.depth == 0
        {
            self.state = State::Done;
        }
        if self.is_done() { Ok(()) } else { Err("the value is not complete") }
    }

    /// A byte of structure.
    fn between(&mut self, byte: u8) -> Result<(), &'static str> {
        match (self.state, byte) {
            (State::FirstElement, b']') | (State::AfterElement, b']') => self.close(),
            (State::FirstName, b'}') | (State::AfterMember, b'}') => self.close(),
            (State::Value | State::FirstElement, _) => return self.begin_value(byte),
            (State::FirstName | State::Name, b'"') => self.state = State::Text(Text::Name, Part::Plain),
            (State::Colon, b':') => self.state = State::Value,
            (State::AfterElement, b',') => self.state = State::Value,
            (State::AfterMember, b',') => self.state = State::Name,
            (State::FirstName, _) => return Err("expected a name or `}`"),
            (State::Name, _) => return Err("expected a name"),
            (State::Colon, _) => return Err("expected `:`"),
            (State::AfterElement, _) => return Err("expected `,` or `]`"),
            (State::AfterMember, _) => return Err("expected `,` or `}`"),
            (State::Text(..) | State::Number(_) | State::Literal(_) | State::Done, _) => {}
        }
        Ok(())
    }

    fn begin_value(&mut self, byte: u8) -> Result<(), &'static str> {
        self.state = match byte {
            b'{' => return self.open(State::FirstName, 1),
            b'[' => return self.open(State::FirstElement, 0),
            b'"' => State::Text(Text::Value, Part::Plain),
            b'-' => State::Number(Number::Minus),
            b'0' => State::Number(Number::Zero),
            b'1'..=b'9' => State::Number(Number::Integer),
            b't' => State::Literal(b"rue"),
            b'f' => State::Literal(b"alse"),
            b'n' => State::Literal(b"ull"),
            _ if self.state == State::FirstElement => return Err("expected a value or `]`"),
            _ => return Err("expected a value"),
        };
        Ok(())
    }

    fn open(&mut self, state: State, is_object: u128) -> Result<(), &'static str> {
        if self.depth >= self.depth_max {
            return Err("values are nested too deep");
        }
        self.depth += 1;
        self.open = self.open << 1 | is_object;
        self.state = state;
        Ok(())
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.open >>= 1;
        self.end_value();
    }

    fn end_value(&mut self) {
        self.state = match (self.depth, self.open & 1) {
            (0, _) => State::Done,
            (_, 0) => State::AfterElement,
            _ => State::AfterMember,
        };
    }

    fn in_text(&mut self, text: Text, part: Part, rest: &[u8]) -> Result<usize, &'static str> {
        if part == Part::Plain {
            let plain = rest.iter().take_while(|byte| PLAIN[usize::from(**byte)]).count();
            if plain > 0 {
                return Ok(plain);
            }
        }
        let byte = rest.first().copied().unwrap_or_default();
        let next = match part {
            Part::Plain => match byte {
                b'"' => {
                    match text {
                        Text::Name => self.state = State::Colon,
                        Text::Value => self.end_value(),
                    }
                    return Ok(1);
                }
                b'\\' => Part::Escape,
                ..=0x1F => return Err("a control character stands in a string"),
                _ => lead(byte)?,
            },
            Part::Escape => match byte {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Part::Plain,
                b'u' => Part::Hex(4),
                _ => return Err("no such escape"),
            },
            Part::Hex(left) if byte.is_ascii_hexdigit() => {
                if left > 1 {
                    Part::Hex(left - 1)
                } else {
                    Part::Plain
                }
            }
            Part::Hex(_) => return Err("expected four hexadecimal digits"),
            Part::Utf8(left, low, high) if (low..=high).contains(&byte) => {
                if left > 1 {
                    Part::Utf8(left - 1, 0x80, 0xBF)
                } else {
                    Part::Plain
                }
            }
            Part::Utf8(..) => return Err("the text is not UTF-8"),
        };
        self.state = State::Text(text, next);
        Ok(1)
    }

    fn in_number(&mut self, number: Number, byte: u8) -> Result<usize, &'static str> {
        let next = match (number, byte) {
            (Number::Minus, b'0') => Number::Zero,
            (Number::Minus, b'1'..=b'9') | (Number::Integer, b'0'..=b'9') => Number::Integer,
            (Number::Zero | Number::Integer, b'.') => Number::Point,
            (Number::Zero | Number::Integer | Number::Fraction, b'e' | b'E') => Number::Exponent,
            (Number::Point | Number::Fraction, b'0'..=b'9') => Number::Fraction,
            (Number::Exponent, b'+' | b'-') => Number::ExponentSign,
            (Number::Exponent | Number::ExponentSign | Number::ExponentDigits, b'0'..=b'9') => {
                Number::ExponentDigits
            }
            (Number::Zero, b'0'..=b'9') => return Err("a number begins with 0"),
            _ if number.may_end() => {
                self.end_value();
                return Ok(0);
            }
            _ => return Err("a number is not complete"),
        };
        self.state = State::Number(next);
        Ok(1)
    }

    fn in_literal(&mut self, rest: &'static [u8], byte: u8) -> Result<usize, &'static str> {
        match rest.split_first() {
            Some((expected, rest)) if *expected == byte => {
                if rest.is_empty() {
                    self.end_value();
                } else {
                    self.state = State::Literal(rest);
                }
                Ok(1)
            }
            _ => Err("expected `true`, `false` or `null`"),
        }
    }
}

impl Number {
    fn may_end(self) -> bool {
        matches!(self, Number::Zero | Number::Integer | Number::Fraction | Number::ExponentDigits)
    }
}

/// The first byte of a character beyond ASCII.
fn lead(byte: u8) -> Result<Part, &'static str> {
    Ok(match byte {
        0xC2..=0xDF => Part::Utf8(1, 0x80, 0xBF),
        0xE0 => Part::Utf8(2, 0xA0, 0xBF),
        0xED => Part::Utf8(2, 0x80, 0x9F),
        0xE1..=0xEF => Part::Utf8(2, 0x80, 0xBF),
        0xF0 => Part::Utf8(3, 0x90, 0xBF),
        0xF1..=0xF3 => Part::Utf8(3, 0x80, 0xBF),
        0xF4 => Part::Utf8(3, 0x80, 0x8F),
        _ => return Err("the text is not UTF-8"),
    })
}

/// Bytes that stand for themselves in a string.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0x20;
    while byte < 0x80 {
        plain[byte] = byte != b'"' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    plain
};

/// Checks that a whole input is one value with blanks around it.
#[derive(Clone, Debug)]
pub struct Document {
    scanner: Scanner,
    at: u64,
}

impl Document {
    /// At the start of the input.
    pub fn new(depth_max: u8) -> Document {
        Document { scanner: Scanner::new(depth_max), at: 0 }
    }

    /// The next piece; a fault's place is counted from the start of the input.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), (u64, &'static str)> {
        let used = self.scanner.scan(bytes).map_err(|fault| (self.at + fault.used as u64, fault.what))?;
        let behind = bytes.get(used..).unwrap_or_default();
        if let Some(other) = behind.iter().position(|byte| !is_blank(*byte)) {
            return Err((self.at + (used + other) as u64, "expected nothing behind the value"));
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// No more bytes follow.
    pub fn finish(&mut self) -> Result<(), (u64, &'static str)> {
        self.scanner.finish().map_err(|what| (self.at, what))
    }
}

pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
