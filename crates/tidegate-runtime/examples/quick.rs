use std::time::Instant;
use tidegate_runtime::*;
fn main() {
    let rt = Runtime::new().unwrap();
    for _ in 0..3 {
    rt.block_on(async {
        let n = 1_000_000u32;
        let t = Instant::now();
        for _ in 0..n { spawn(async {}).await.unwrap(); }
        println!("spawn+join {:.1}", t.elapsed().as_nanos() as f64 / n as f64);
        let n = 100_000u32;
        let t = Instant::now();
        let v: Vec<_> = (0..n).map(|_| spawn(async {})).collect();
        for h in v { h.await.unwrap(); }
        println!("spawn all join all {:.1}", t.elapsed().as_nanos() as f64 / n as f64);
        let n = 1000u32;
        let k = 1000u32;
        let t = Instant::now();
        let v: Vec<_> = (0..n).map(|_| spawn(async move { for _ in 0..k { yield_now().await } })).collect();
        for h in v { h.await.unwrap(); }
        println!("yield 1000 {:.1}", t.elapsed().as_nanos() as f64 / n as f64/k as f64);
        let n = 1000000u32;
        let t = Instant::now();
        for _ in 0..n { yield_now().await }
        println!("yield 1 {:.1}", t.elapsed().as_nanos() as f64 / n as f64);
    }).unwrap();
    }
}
