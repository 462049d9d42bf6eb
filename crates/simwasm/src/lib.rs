//! The simulator behind one plain function, for `wasm32-unknown-unknown`: a seed's trace hash, to be compared with the
//! native one.

use sim::Options;

/// The trace hash of a seed's run of `simulated_s` seconds, or of as long as the seed draws when that is 0.
#[unsafe(no_mangle)]
pub extern "C" fn torture_hash(seed: u64, simulated_s: u64) -> u64 {
    let simulated_s = (simulated_s > 0).then_some(simulated_s);
    sim::run_seed(seed, &Options { simulated_s, ..Options::default() }).trace_hash
}
