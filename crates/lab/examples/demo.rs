use lab::plot::*;
fn main() {
    let s = |name: &str, f: &dyn Fn(f64) -> f64, ci: Option<f64>| Series { name: name.into(), spots: (2..=8).map(|n| Spot { x: n as f64, y: f(n as f64), ci95: ci }).collect() };
    let c = Chart::lines("dsptf.fig5", "Throughput of a brick by number of replicas", Axis::new("replicas", ""), Axis::new("throughput of a brick", "IO/s"),
      vec![s("Central SPTF", &|n| 150.0+n, None), s("D-SPTF", &|n| 149.5+n, Some(3.0)), s("Hashing", &|n| 150.0-3.0*n, None), s("LARD", &|n| 151.0-3.0*n, None)]).marked("D-SPTF", 2.0, 160.0).marked("D-SPTF", 8.0, 170.0);
    let svg_text = svg(&c); std::fs::write("/tmp/fontwork/a.svg", &svg_text).unwrap(); std::fs::write("/tmp/fontwork/a.png", png::png("a", &svg_text).unwrap()).unwrap();
    let b = |name: &str, v: [f64; 3]| Series { name: name.into(), spots: v.iter().enumerate().map(|(i, y)| Spot { x: i as f64, y: *y, ci95: None }).collect() };
    let c = Chart::bars("dsptf.table1", "Throughput of a brick", Axis::new("throughput", "IO/s"), vec!["nvram".into(), "half".into(), "all".into()],
      vec![b("Central SPTF", [210.0, 188.0, 166.0]), b("D-SPTF", [209.0, 187.0, 166.0]), b("Hashing", [140.0, 133.0, 130.0]), b("LARD", [140.0, 133.0, 130.0])]).marked("D-SPTF", 1.0, 187.0).marked("LARD", 1.0, 134.0);
    let svg_text = svg(&c); std::fs::write("/tmp/fontwork/b.svg", &svg_text).unwrap(); std::fs::write("/tmp/fontwork/b.png", png::png("b", &svg_text).unwrap()).unwrap();
}
