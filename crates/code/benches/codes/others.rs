//! The same work by others, on the same bytes.

use crate::{Out, best, gigabytes, random};
use base::Payload;
use code::Code;
use std::ffi::{c_int, c_uchar};

const SHARD: usize = 64 << 10;

pub(crate) fn erasure(out: &Out, data: usize, parity: usize) {
    let mut rng = base::Rng::with_seed(3);
    // Data of 16 MiB: one stripe after another.
    let stripes: Vec<Vec<Vec<u8>>> = (0..(16 << 20) / SHARD / data)
        .map(|_| (0..data).map(|_| random(SHARD, &mut rng)).collect())
        .collect();
    let whole = stripes.len() * data * SHARD;
    let (encoded, decoded) = ours(&stripes, data as u8, parity as u8);
    out.line(&format!("brickwork {data}+{parity}"), &figures(whole, encoded, decoded));
    if let Some((encoded, decoded)) = isal(&stripes, data, parity) {
        out.line(&format!("ISA-L {data}+{parity}"), &figures(whole, encoded, decoded));
    } else {
        out.line("ISA-L is not installed (libisal2)", &[]);
    }
    let encoded =
        best(|| stripes.iter().for_each(|stripe| drop(reed_solomon_simd::encode(data, parity, stripe))));
    let coded: Vec<Vec<Vec<u8>>> = stripes
        .iter()
        .map(|stripe| reed_solomon_simd::encode(data, parity, stripe).expect("shards of one length"))
        .collect();
    let lost = parity.min(data);
    let decoded = best(|| {
        for (stripe, coded) in stripes.iter().zip(&coded) {
            let original = stripe.iter().enumerate().skip(lost);
            let recovery = coded.iter().enumerate().take(lost);
            reed_solomon_simd::decode(data, parity, original, recovery).expect("enough shards");
        }
    });
    out.line(&format!("reed-solomon-simd {data}+{parity}"), &figures(whole, encoded, decoded));
}

fn figures(whole: usize, encoded: f64, decoded: f64) -> [(&'static str, f64); 2] {
    [("encode", gigabytes(whole, encoded)), ("decode", gigabytes(whole, decoded))]
}

fn ours(stripes: &[Vec<Vec<u8>>], data: u8, parity: u8) -> (f64, f64) {
    let code = Code::new(data, parity);
    let stripes: Vec<Vec<Payload>> = stripes
        .iter()
        .map(|stripe| stripe.iter().map(|shard| Payload::from(shard.clone())).collect())
        .collect();
    let encoded = best(|| stripes.iter().for_each(|stripe| drop(std::hint::black_box(code.encode(stripe)))));
    let lost = parity.min(data);
    let left: Vec<Vec<(u8, Payload)>> = stripes
        .iter()
        .map(|stripe| {
            let parities = (data..).zip(code.encode(stripe)).take(usize::from(lost));
            (0..).zip(stripe.iter().cloned()).skip(usize::from(lost)).chain(parities).collect()
        })
        .collect();
    let decoded = best(|| {
        for shards in &left {
            (0..lost).for_each(|wanted| drop(std::hint::black_box(code.reconstruct(shards, wanted))));
        }
    });
    (encoded, decoded)
}

type GenerateMatrix = unsafe extern "C" fn(*mut c_uchar, c_int, c_int);
type InvertMatrix = unsafe extern "C" fn(*mut c_uchar, *mut c_uchar, c_int) -> c_int;
type InitTables = unsafe extern "C" fn(c_int, c_int, *mut c_uchar, *mut c_uchar);
type EncodeData =
    unsafe extern "C" fn(c_int, c_int, c_int, *mut c_uchar, *const *const c_uchar, *const *mut c_uchar);

/// Parity made, and the first data shards made again from the others and parity.
fn isal(stripes: &[Vec<Vec<u8>>], data: usize, parity: usize) -> Option<(f64, f64)> {
    // SAFETY: the names and types are those of ISA-L's erasure_code.h, and every buffer has the size that it states.
    unsafe {
        let library = libloading::Library::new("libisal.so.2").ok()?;
        let generate = library.get::<GenerateMatrix>(b"gf_gen_cauchy1_matrix").ok()?;
        let invert = library.get::<InvertMatrix>(b"gf_invert_matrix").ok()?;
        let init = library.get::<InitTables>(b"ec_init_tables").ok()?;
        let encode = library.get::<EncodeData>(b"ec_encode_data").ok()?;
        let all = data + parity;
        let mut matrix = vec![0_u8; all * data];
        generate(matrix.as_mut_ptr(), all as c_int, data as c_int);
        let mut coded = vec![vec![vec![0_u8; SHARD]; parity]; stripes.len()];
        let mut tables = vec![0_u8; 32 * data * parity];
        let encoded = best(|| {
            init(data as c_int, parity as c_int, matrix[data * data..].as_mut_ptr(), tables.as_mut_ptr());
            for (stripe, coded) in stripes.iter().zip(&mut coded) {
                let sources: Vec<*const u8> = stripe.iter().map(|shard| shard.as_ptr()).collect();
                let targets: Vec<*mut u8> = coded.iter_mut().map(|shard| shard.as_mut_ptr()).collect();
                encode(
                    SHARD as c_int,
                    data as c_int,
                    parity as c_int,
                    tables.as_mut_ptr(),
                    sources.as_ptr(),
                    targets.as_ptr(),
                );
            }
        });
        let lost = parity.min(data);
        let mut outputs = vec![vec![0_u8; SHARD]; lost];
        let decoded = best(|| {
            // The rows of the shards that are left; the first rows of the inverse make the lost ones.
            let mut left = matrix[lost * data..][..data * data].to_vec();
            let mut inverse = vec![0_u8; data * data];
            assert_eq!(
                invert(left.as_mut_ptr(), inverse.as_mut_ptr(), data as c_int),
                0,
                "a Cauchy matrix is invertible"
            );
            init(data as c_int, lost as c_int, inverse.as_mut_ptr(), tables.as_mut_ptr());
            for (stripe, coded) in stripes.iter().zip(&coded) {
                let shards = stripe.iter().skip(lost).chain(coded.iter().take(lost));
                let sources: Vec<*const u8> = shards.map(|shard| shard.as_ptr()).collect();
                let targets: Vec<*mut u8> = outputs.iter_mut().map(|shard| shard.as_mut_ptr()).collect();
                encode(
                    SHARD as c_int,
                    data as c_int,
                    lost as c_int,
                    tables.as_mut_ptr(),
                    sources.as_ptr(),
                    targets.as_ptr(),
                );
            }
        });
        let last = stripes.last().expect("some stripes");
        assert!(outputs.iter().zip(last).all(|(made, shard)| made == shard), "ISA-L decoded wrongly");
        Some((encoded, decoded))
    }
}

/// RaptorQ from repair symbols alone; its symbols have at most 65,535 bytes.
pub(crate) fn raptorq(out: &Out, blocks: usize) {
    const SYMBOL: u16 = 65_528;
    let content = random(blocks * usize::from(SYMBOL), &mut base::Rng::with_seed(4));
    let config = raptorq::ObjectTransmissionInformation::new(content.len() as u64, SYMBOL, 1, 1, 8);
    let once = |work: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    let mut packets = Vec::new();
    let encoded = once(&mut || {
        let encoder = raptorq::SourceBlockEncoder::new(0, &config, &content);
        packets = encoder.repair_packets(0, blocks as u32 + 2);
    });
    let mut decoder = raptorq::SourceBlockDecoder::new(0, &config, content.len() as u64);
    let mut result = None;
    let decoded = once(&mut || result = decoder.decode(packets.drain(..)));
    assert!(result.is_some_and(|result| result == content), "RaptorQ decoded wrongly");
    out.line(&format!("raptorq K={blocks} 64 KiB, no source"), &figures(content.len(), encoded, decoded));
}
