//! The directory whose peers lie: it keeps its invariants, whatever well-formed messages say.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::hostile::{self, Victim};

fuzz_target!(|input: &[u8]| hostile::run(Victim::Directory, input));
