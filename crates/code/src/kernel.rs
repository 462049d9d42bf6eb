//! Whole shards: `target ^= c * source`. All codes are made of this; the same bytes come out on every processor.

use crate::field;
use crate::simd;
use base::Payload;

/// `target ^= coefficient * source`, byte by byte. Panics when the lengths differ.
pub fn multiply_add(target: &mut [u8], coefficient: u8, source: &[u8]) {
    assert_eq!(target.len(), source.len(), "multiply-add of two lengths");
    if coefficient != 0 {
        let done = simd::multiply_add(target, coefficient, source);
        portable(&mut target[done..], coefficient, &source[done..]);
    }
}

/// `target ^= coefficient * source`, over all parts of `source`. Panics when the lengths differ.
pub fn accumulate(target: &mut [u8], coefficient: u8, source: &Payload) {
    assert_eq!(target.len(), source.len(), "multiply-add of two lengths");
    let mut at = 0;
    for part in source.parts() {
        multiply_add(&mut target[at..at + part.len()], coefficient, part);
        at += part.len();
    }
}

/// `coefficient * source`. Copies nothing when the coefficient is one.
pub fn multiply(source: &Payload, coefficient: u8) -> Payload {
    match coefficient {
        0 => Payload::zeros(source.len()),
        1 => source.clone(),
        _ => {
            let mut product = vec![0; source.len()];
            accumulate(&mut product, coefficient, source);
            Payload::from(product)
        }
    }
}

/// Multiply-add eight bytes at a time, for processors without a kernel in `simd`, and for the tails of those with one.
pub(crate) fn portable(target: &mut [u8], coefficient: u8, source: &[u8]) {
    if coefficient == 1 {
        return target.iter_mut().zip(source).for_each(|(t, s)| *t ^= s);
    }
    let (targets, target_tail) = target.as_chunks_mut::<8>();
    let (sources, source_tail) = source.as_chunks::<8>();
    for (target, source) in targets.iter_mut().zip(sources) {
        let product = word_product(coefficient, u64::from_le_bytes(*source));
        *target = (u64::from_le_bytes(*target) ^ product).to_le_bytes();
    }
    for (target, source) in target_tail.iter_mut().zip(source_tail) {
        *target ^= field::product(coefficient, *source);
    }
}

/// Eight products at once: the sum of the word's doublings at the coefficient's one bits.
fn word_product(coefficient: u8, word: u64) -> u64 {
    (0..8)
        .fold((0, word), |(sum, power), bit| {
            let chosen = u64::from(coefficient >> bit & 1).wrapping_neg();
            (sum ^ (power & chosen), word_double(power))
        })
        .0
}

/// [`field::double`] of each of eight bytes.
fn word_double(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let carries = word >> 7 & ONES;
    ((word & !(ONES << 7)) << 1) ^ (carries * u64::from(field::MODULUS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What every kernel must compute, by definition.
    fn by_definition(target: &[u8], coefficient: u8, source: &[u8]) -> Vec<u8> {
        target.iter().zip(source).map(|(t, s)| t ^ field::slow_product(coefficient, *s)).collect()
    }

    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut rng = base::Rng::with_seed(seed);
        (0..len).map(|_| rng.u8(..)).collect()
    }

    #[test]
    fn every_kernel_knows_every_product() {
        let source: Vec<u8> = (0..=255).collect();
        for coefficient in 0..=255 {
            let mut target = vec![0x5a; 256];
            let expected = by_definition(&target, coefficient, &source);
            portable(&mut target, coefficient, &source);
            assert_eq!(target, expected, "portable, coefficient {coefficient}");
            for kernel in simd::Kernel::ALL {
                let mut target = vec![0x5a; 256];
                let done = kernel.run(&mut target, coefficient, &source);
                assert_eq!(target[..done], expected[..done], "{kernel:?}, coefficient {coefficient}");
                assert!(target[done..].iter().all(|byte| *byte == 0x5a), "{kernel:?} wrote beyond its end");
            }
        }
    }

    proptest! {
        #[test]
        fn any_length_and_alignment(seed: u64, coefficient: u8, len in 0..700_usize, from in 0..64_usize, to in 0..64_usize) {
            let source = bytes(seed, from + len);
            let mut target = bytes(!seed, to + len);
            let expected = by_definition(&target[to..], coefficient, &source[from..]);
            multiply_add(&mut target[to..], coefficient, &source[from..]);
            prop_assert_eq!(&target[to..], &expected[..]);
        }

        #[test]
        fn parts_make_no_difference(seed: u64, coefficient: u8, len in 1..300_usize, cut in 0..300_usize) {
            let whole = Payload::from(bytes(seed, len));
            let cut = cut % len;
            let mut parts = whole.slice(0, cut);
            parts.append(&whole.slice(cut, len - cut));
            prop_assert_eq!(multiply(&parts, coefficient), multiply(&whole, coefficient));
            let expected = by_definition(&vec![0; len], coefficient, &whole.to_vec());
            prop_assert_eq!(multiply(&parts, coefficient).to_vec(), expected);
        }
    }
}
