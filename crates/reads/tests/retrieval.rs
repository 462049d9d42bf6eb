//! The solver of continuous retrieval against the published way to the same last arrival, on requests too large for a brute force.

#[path = "../benches/retrieval/drawn.rs"]
mod drawn;
#[path = "../benches/retrieval/push_relabel.rs"]
mod push_relabel;

use base::Rng;
use drawn::Shape;
use push_relabel::PushRelabel;
use reads::distribute::retrieval::Solver;

#[test]
fn the_solver_equals_the_integrated_maximum_flow() {
    let (mut random, mut chosen) = (Rng::with_seed(1), Vec::new());
    let (mut solver, mut push_relabel) = (Solver::default(), PushRelabel::default());
    for case in 0..2_000 {
        let disks = random.u64(2..=100);
        let copies = random.u64(1..=disks.min(5));
        let shape = Shape {
            buckets: random.u64(..if case % 50 == 0 { 4_096 } else { 200 }) as u32,
            copies: copies as u32,
            needed: random.u64(1..=copies) as u32,
            disks: disks as u32,
            is_mixed: random.bool(),
            is_loaded: random.bool(),
        };
        let drawn::Instance { disks, request } = shape.draw(&mut random);
        let last_ns = solver.solve(&disks, &request, &mut chosen);
        assert!(request.is_possible(&chosen), "case {case}: {shape:?}");
        assert_eq!(request.finish_ns(&disks, &chosen), last_ns, "case {case}: {shape:?}");
        let published_ns = push_relabel.solve(&disks, &request, &mut chosen);
        assert!(request.is_possible(&chosen), "case {case}: {shape:?}");
        assert_eq!(request.finish_ns(&disks, &chosen), published_ns, "case {case}: {shape:?}");
        assert_eq!(last_ns, published_ns, "case {case}: {shape:?}");
    }
}
