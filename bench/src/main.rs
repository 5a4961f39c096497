//! Scratch.
use etl::*;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "gen" {
        generate(&args[2]);
        return;
    }
    let path = &args[1];
    let len = std::fs::metadata(path).unwrap().len() as f64;
    for _ in 0..3 {
        let t = Instant::now();
        let f = std::fs::File::open(path).unwrap();
        #[allow(unsafe_code)]
        let m = unsafe { memmap2::Mmap::map(&f).unwrap() };
        let mut sum = 0u64;
        for c in m.chunks_exact(8) {
            sum = sum.wrapping_add(u64::from_le_bytes(c.try_into().unwrap()));
        }
        std::hint::black_box(sum);
        drop(m);
        let unit = t.elapsed().as_secs_f64();
        let t = Instant::now();
        let trace =
            Trace::from_sources(vec![("x".into(), Box::new(FileSource::new(f).unwrap()))]).unwrap();
        let open = t.elapsed().as_secs_f64();
        let t = Instant::now();
        let mut r = BufferReader::new(&trace);
        let mut n = 0u64;
        let mut s = 0i64;
        for b in trace.buffers() {
            for e in r.read(b) {
                n += 1;
                s = s.wrapping_add(e.raw_time());
            }
        }
        std::hint::black_box(s);
        let walk = t.elapsed().as_secs_f64();
        let t = Instant::now();
        let mut w = trace.events();
        let mut m2 = 0u64;
        while let Some(e) = w.next() {
            m2 += 1;
            s = s.wrapping_add(e.raw_time());
        }
        std::hint::black_box(s);
        let merge = t.elapsed().as_secs_f64();
        println!(
            "unit {:.1} GB/s; open {:.2}u; walk {:.2}u ({:.1} GB/s, {:.1} Mev/s); merge {:.2}u ({:.1} GB/s {:.1} Mev/s) n={n} {m2}",
            len / unit / 1e9,
            open / unit,
            walk / unit,
            len / walk / 1e9,
            n as f64 / walk / 1e6,
            merge / unit,
            len / merge / 1e9,
            m2 as f64 / merge / 1e6
        );
    }
}
fn generate(path: &str) {
    use etl::write::*;
    let f = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .unwrap();
    let mut w = Writer::new(
        std::io::BufWriter::new(f),
        Session {
            processors: 16,
            start: 133_000_000_000_000_000,
            ..Session::default()
        },
    )
    .unwrap();
    let mut x = 1u64;
    let t = Instant::now();
    for i in 0..12_500_000i64 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let cpu = (x % 16) as u16;
        let n = [28usize, 16, 16, 24, 200][(x >> 8) as usize % 5];
        let p = [x as u8; 200];
        w.kernel(
            cpu,
            KernelEvent {
                hook: 0x0524,
                version: 5,
                time: i * 10,
                thread: if n == 200 { Some((1, 2)) } else { None },
            },
            &p[..n],
        )
        .unwrap();
    }
    w.finish().unwrap();
    println!("wrote in {:?}", t.elapsed());
}
