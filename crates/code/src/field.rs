//! Arithmetic in GF(256): bytes as polynomials over GF(2), modulo x^8 + x^4 + x^3 + x^2 + 1. Addition is exclusive or.

/// The modulus without its x^8. The element 2 generates all others.
pub(crate) const MODULUS: u8 = 0x1d;

/// The logarithm to base 2 of each element but zero; its powers, twice over, so that sums need no modulo.
static TABLES: Tables = Tables::new();

struct Tables {
    log: [u8; 256],
    power: [u8; 510],
}

impl Tables {
    const fn new() -> Tables {
        let mut tables = Tables { log: [0; 256], power: [0; 510] };
        let (mut exponent, mut element) = (0, 1);
        while exponent < 255 {
            tables.log[element as usize] = exponent as u8;
            tables.power[exponent] = element;
            tables.power[exponent + 255] = element;
            element = double(element);
            exponent += 1;
        }
        tables
    }
}

/// `2 * a`.
pub(crate) const fn double(a: u8) -> u8 {
    let carry = (a >> 7) * MODULUS;
    (a << 1) ^ carry
}

/// `a * b` without tables, to make tables of and to test by.
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) const fn slow_product(a: u8, b: u8) -> u8 {
    let (mut sum, mut a, mut b) = (0, a, b);
    while b != 0 {
        sum ^= a * (b & 1);
        a = double(a);
        b >>= 1;
    }
    sum
}

/// `a * b`.
pub(crate) fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    TABLES.power[usize::from(TABLES.log[usize::from(a)]) + usize::from(TABLES.log[usize::from(b)])]
}

/// `a / b`. Panics when `b` is zero.
pub(crate) fn quotient(a: u8, b: u8) -> u8 {
    assert!(b != 0, "division of {a} by zero in GF(256)");
    if a == 0 {
        return 0;
    }
    TABLES.power[255 + usize::from(TABLES.log[usize::from(a)]) - usize::from(TABLES.log[usize::from(b)])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_long_multiplication() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(product(a, b), slow_product(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn division_undoes_multiplication() {
        for a in 0..=255 {
            for b in 1..=255 {
                assert_eq!(quotient(product(a, b), b), a, "{a} * {b} / {b}");
            }
        }
    }
}
