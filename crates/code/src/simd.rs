//! Multiply-add by the processor's own instructions, chosen when it runs. The only unsafe code of this crate.
//!
//! A product by a constant is linear over GF(2). GFNI multiplies bytes by an 8 x 8 bit matrix; the older kernels look
//! up the products of the two halves of each byte in two tables of sixteen (Plank, Greenan and Miller, "Screaming
//! Fast Galois Field Arithmetic Using Intel SIMD Instructions", FAST 2013).

#[cfg(target_arch = "x86_64")]
use crate::field::slow_product;

/// `target ^= coefficient * source` for as many bytes from the start as there are kernels for; says how many.
pub(crate) fn multiply_add(target: &mut [u8], coefficient: u8, source: &[u8]) -> usize {
    Kernel::ALL
        .into_iter()
        .fold(0, |done, kernel| done + kernel.run(&mut target[done..], coefficient, &source[done..]))
}

/// A way to do it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// 64 bytes at a time by a bit matrix.
    #[cfg(target_arch = "x86_64")]
    Gfni,
    /// 32 bytes at a time by tables.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 16 bytes at a time by tables.
    #[cfg(target_arch = "x86_64")]
    Ssse3,
}

#[cfg(not(target_arch = "x86_64"))]
impl Kernel {
    pub(crate) const ALL: [Kernel; 0] = [];

    pub(crate) fn run(self, _target: &mut [u8], _coefficient: u8, _source: &[u8]) -> usize {
        match self {}
    }
}

#[cfg(target_arch = "x86_64")]
impl Kernel {
    /// The widest first: each takes what the one before it left.
    pub(crate) const ALL: [Kernel; 3] = [Kernel::Gfni, Kernel::Avx2, Kernel::Ssse3];

    /// Does the whole vectors at the start of two slices of one length, and says how many bytes that were: none when
    /// this processor lacks the instructions.
    pub(crate) fn run(self, target: &mut [u8], coefficient: u8, source: &[u8]) -> usize {
        match self {
            Kernel::Gfni if is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx512f") => {
                let (target, source) = (target.as_chunks_mut().0, source.as_chunks().0);
                // SAFETY: the processor has the instructions.
                unsafe { gfni(target, coefficient, source) };
                target.as_flattened().len()
            }
            Kernel::Avx2 if is_x86_feature_detected!("avx2") => {
                let (target, source) = (target.as_chunks_mut().0, source.as_chunks().0);
                // SAFETY: the processor has the instructions.
                unsafe { avx2(target, coefficient, source) };
                target.as_flattened().len()
            }
            Kernel::Ssse3 if is_x86_feature_detected!("ssse3") => {
                let (target, source) = (target.as_chunks_mut().0, source.as_chunks().0);
                // SAFETY: the processor has the instructions.
                unsafe { ssse3(target, coefficient, source) };
                target.as_flattened().len()
            }
            _ => 0,
        }
    }
}

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "gfni,avx512f")]
fn gfni(target: &mut [[u8; 64]], coefficient: u8, source: &[[u8; 64]]) {
    let matrix = _mm512_set1_epi64(MATRICES[usize::from(coefficient)].cast_signed());
    for (target, source) in target.iter_mut().zip(source) {
        let (to, from) = (target.as_mut_ptr().cast(), source.as_ptr().cast());
        // SAFETY: both are 64 bytes long, and these loads and stores take any alignment.
        unsafe {
            let product = _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_loadu_si512(from), matrix);
            _mm512_storeu_si512(to, _mm512_xor_si512(_mm512_loadu_si512(to), product));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(target: &mut [[u8; 32]], coefficient: u8, source: &[[u8; 32]]) {
    let [low, high] = &HALVES[usize::from(coefficient)];
    // SAFETY: both tables are 16 bytes long, and these loads take any alignment.
    let [low, high] =
        unsafe { [_mm_loadu_si128(low.as_ptr().cast()), _mm_loadu_si128(high.as_ptr().cast())] };
    let (low, high) = (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high));
    let half = _mm256_set1_epi8(0x0f);
    for (target, source) in target.iter_mut().zip(source) {
        let (to, from) = (target.as_mut_ptr().cast(), source.as_ptr().cast());
        // SAFETY: both are 32 bytes long, and these loads and stores take any alignment.
        unsafe {
            let bytes = _mm256_loadu_si256(from);
            let lower = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, half));
            let upper = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), half));
            let product = _mm256_xor_si256(lower, upper);
            _mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), product));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "ssse3")]
fn ssse3(target: &mut [[u8; 16]], coefficient: u8, source: &[[u8; 16]]) {
    let [low, high] = &HALVES[usize::from(coefficient)];
    // SAFETY: both tables are 16 bytes long, and these loads take any alignment.
    let [low, high] =
        unsafe { [_mm_loadu_si128(low.as_ptr().cast()), _mm_loadu_si128(high.as_ptr().cast())] };
    let half = _mm_set1_epi8(0x0f);
    for (target, source) in target.iter_mut().zip(source) {
        let (to, from) = (target.as_mut_ptr().cast(), source.as_ptr().cast());
        // SAFETY: both are 16 bytes long, and these loads and stores take any alignment.
        unsafe {
            let bytes = _mm_loadu_si128(from);
            let lower = _mm_shuffle_epi8(low, _mm_and_si128(bytes, half));
            let upper = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(bytes), half));
            let product = _mm_xor_si128(lower, upper);
            _mm_storeu_si128(to, _mm_xor_si128(_mm_loadu_si128(to), product));
        }
    }
}

/// For each coefficient, its products with the lower and with the upper half of a byte.
#[cfg(target_arch = "x86_64")]
static HALVES: [[[u8; 16]; 2]; 256] = {
    let mut tables = [[[0; 16]; 2]; 256];
    let mut at = 0;
    while at < 256 * 16 {
        let (coefficient, half) = (at / 16, at % 16);
        tables[coefficient][0][half] = slow_product(coefficient as u8, half as u8);
        tables[coefficient][1][half] = slow_product(coefficient as u8, (half << 4) as u8);
        at += 1;
    }
    tables
};

/// For each coefficient, the bit matrix of multiplying by it: the instruction takes the row of output bit `i` from byte
/// `7 - i`, and column `j` is the product with `1 << j`.
#[cfg(target_arch = "x86_64")]
static MATRICES: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut at = 0;
    while at < 256 * 64 {
        let (coefficient, row, column) = (at / 64, at / 8 % 8, at % 8);
        let bit = slow_product(coefficient as u8, 1 << column) >> row & 1;
        matrices[coefficient] |= (bit as u64) << ((7 - row) * 8 + column);
        at += 1;
    }
    matrices
};

/// Work in plain Rust that is worth being compiled for the widest registers of the processor that it runs on.
pub(crate) trait Work {
    /// Does it: `#[inline(always)]`, or it is compiled for the narrowest.
    fn run(self);
}

/// Does `work`, compiled for the widest registers that there are.
#[cfg(target_arch = "x86_64")]
pub(crate) fn widest(work: impl Work) {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
    {
        // SAFETY: the processor has the instructions.
        unsafe { avx512_work(work) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        unsafe { avx2_work(work) }
    } else {
        work.run();
    }
}

/// Does `work`.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn widest(work: impl Work) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2")]
fn avx512_work(work: impl Work) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2_work(work: impl Work) {
    work.run();
}

/// Says that these bytes will be read soon, so that they are in the second-level cache by then.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        // SAFETY: a prefetch has no effect that a program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) }
    }
}

/// Says that these bytes will be read soon.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch(_bytes: &[u8]) {}
