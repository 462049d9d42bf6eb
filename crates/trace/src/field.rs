//! Fields of a line as numbers, straight from bytes. Each knows its name, for the error.

use crate::error::Fault;

/// What stands between two fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// Any number of blanks and tabs.
    Blank,
    /// One comma; blanks around a field do not count.
    Comma,
}

/// The fields of one line, from left to right.
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: Separator,
}

#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn blank(line: &'a [u8]) -> Fields<'a> {
        let line = line.trim_ascii();
        Fields { rest: (!line.is_empty()).then_some(line), separator: Separator::Blank }
    }

    #[inline]
    pub(crate) fn comma(line: &'a [u8]) -> Fields<'a> {
        Fields { rest: Some(line), separator: Separator::Comma }
    }

    /// The next field, which has to be there.
    #[inline]
    pub(crate) fn next(&mut self, name: &'static str) -> Result<Field<'a>, Fault> {
        self.optional(name).ok_or(Fault::Missing { field: name })
    }

    /// The next field, if there is one.
    #[inline]
    pub(crate) fn optional(&mut self, name: &'static str) -> Option<Field<'a>> {
        let rest = self.rest?;
        let bytes = match self.separator {
            Separator::Blank => {
                let end = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                let after = after.trim_ascii_start();
                self.rest = (!after.is_empty()).then_some(after);
                field
            }
            // Fields are short: a plain loop beats a vector search here.
            Separator::Comma => match rest.iter().position(|byte| *byte == b',') {
                Some(end) => {
                    self.rest = Some(&rest[end + 1..]);
                    rest[..end].trim_ascii()
                }
                None => {
                    self.rest = None;
                    rest.trim_ascii()
                }
            },
        };
        Some(Field { name, bytes })
    }

    /// Whether no field is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_none()
    }

    /// Leaves out `count` fields, of which the first that is missing is called `name`.
    pub(crate) fn skip(&mut self, count: usize, name: &'static str) -> Result<(), Fault> {
        (0..count).try_for_each(|_| self.next(name).map(drop))
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

impl Field<'_> {
    /// A decimal whole number.
    #[inline]
    pub(crate) fn integer(&self) -> Result<u64, Fault> {
        digits(self.bytes).ok_or_else(|| self.no_integer())
    }

    /// A decimal whole number that fits `u32`.
    #[inline]
    pub(crate) fn small(&self) -> Result<u32, Fault> {
        self.integer()?.try_into().map_err(|_| self.fault("a number below 4294967296 is expected"))
    }

    /// A hexadecimal number, with or without `0x`.
    #[inline]
    pub(crate) fn hexadecimal(&self) -> Result<u64, Fault> {
        let digits = self.bytes.strip_prefix(b"0x").or(self.bytes.strip_prefix(b"0X")).unwrap_or(self.bytes);
        let mut value = 0_u64;
        for byte in digits {
            let digit = char::from(*byte).to_digit(16).filter(|_| value >> 60 == 0);
            value =
                value << 4 | u64::from(digit.ok_or_else(|| self.fault("a hexadecimal number is expected"))?);
        }
        if digits.is_empty() { Err(self.fault("a hexadecimal number is expected")) } else { Ok(value) }
    }

    /// A time, in nanoseconds, from a decimal number of units of `unit_ns` (a power of ten). A negative one is an
    /// error, or zero when it `may_be_negative`.
    #[inline]
    pub(crate) fn time_ns(&self, unit_ns: u64, may_be_negative: bool) -> Result<u64, Fault> {
        if let Some(ns) = fixed_point(self.bytes, unit_ns) {
            return Ok(ns);
        }
        self.odd_time_ns(unit_ns, may_be_negative)
    }

    /// Times that are written otherwise: negative, with an exponent, or not at all.
    #[cold]
    fn odd_time_ns(&self, unit_ns: u64, may_be_negative: bool) -> Result<u64, Fault> {
        let text = std::str::from_utf8(self.bytes).map_err(|_| self.fault("a time is expected"))?;
        let number: f64 = text.parse().map_err(|_| self.fault("a time is expected, a decimal number"))?;
        if !number.is_finite() {
            return Err(self.fault("a time is expected that is finite"));
        }
        if number < 0.0 && !may_be_negative {
            return Err(self.fault("a time is negative; --allow-negative makes it zero"));
        }
        let ns = number * unit_ns as f64;
        if ns < u64::MAX as f64 { Ok(ns.max(0.0) as u64) } else { Err(self.too_late()) }
    }

    /// Whether it writes, from the first letter: `w`, or `r`.
    #[inline]
    pub(crate) fn is_write(&self) -> Result<bool, Fault> {
        match self.bytes.first() {
            Some(b'r' | b'R') => Ok(false),
            Some(b'w' | b'W') => Ok(true),
            _ => Err(self.fault("a read or a write is expected")),
        }
    }

    #[cold]
    pub(crate) fn fault(&self, why: &'static str) -> Fault {
        Fault::field(self.name, self.bytes, why)
    }

    #[cold]
    fn no_integer(&self) -> Fault {
        match self.bytes {
            [b'-', ..] => self.fault("a number is negative"),
            _ => self.fault("a whole number is expected"),
        }
    }

    #[cold]
    fn too_late(&self) -> Fault {
        self.fault("a time is later than 584 years; is the unit right? See --time-unit")
    }
}

#[inline]
fn digits(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// `12.345` in units of `unit_ns`, exactly; what is below a nanosecond is cut off.
#[inline]
fn fixed_point(bytes: &[u8], unit_ns: u64) -> Option<u64> {
    let Some(point) = bytes.iter().position(|byte| *byte == b'.') else {
        return digits(bytes)?.checked_mul(unit_ns);
    };
    let whole = if point == 0 { 0 } else { digits(&bytes[..point])? };
    let (mut scale, mut part) = (unit_ns, 0);
    for byte in &bytes[point + 1..] {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        scale /= 10;
        part += u64::from(digit) * scale;
    }
    (bytes.len() > 1).then_some(())?;
    whole.checked_mul(unit_ns)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(bytes: &[u8]) -> Field<'_> {
        Field { name: "x", bytes }
    }

    #[test]
    fn times_are_exact() {
        let cases: &[(&[u8], u64, u64)] = &[
            (b"13.191135", 1_000_000, 13_191_135),
            (b"0.000001", 1_000_000_000, 1_000),
            (b".5", 1_000, 500),
            (b"7", 1_000_000, 7_000_000),
            (b"1e-3", 1_000_000_000, 1_000_000),
            (b"1.23456789", 1_000, 1_234),
        ];
        for (text, unit_ns, ns) in cases {
            assert_eq!(field(text).time_ns(*unit_ns, false).unwrap(), *ns, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn nonsense_is_refused_and_named() {
        for text in [
            &b""[..],
            b".",
            b"-",
            b"nan",
            b"inf",
            b"1.2.3",
            b"\xff\xfe",
            b"-1",
            b"1e30",
            b"99999999999999999999",
        ] {
            let error = field(text).time_ns(1, false).expect_err(&text.escape_ascii().to_string());
            assert!(error.to_string().contains("field `x`"), "{error}");
        }
        assert_eq!(field(b"-1").time_ns(1, true).unwrap(), 0);
        for text in [&b""[..], b"-1", b"1x", b"18446744073709551616"] {
            assert!(field(text).integer().is_err());
        }
        for text in [&b""[..], b"0x", b"g", b"11112222333344445"] {
            assert!(field(text).hexadecimal().is_err());
        }
        assert_eq!(field(b"0xfFfF").hexadecimal().unwrap(), 65_535);
    }
}
