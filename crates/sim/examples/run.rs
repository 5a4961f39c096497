use std::io::BufWriter;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&a[1]).unwrap();
    let named = |n: &str| std::fs::read_to_string(format!("scenarios/{n}.toml")).ok();
    let over: Vec<_> = a[3..]
        .iter()
        .map(|s| sim::scenario::Override::parse(s).unwrap())
        .collect();
    let s = match sim::scenario::Scenario::read(&a[1], &text, &named, &over) {
        Ok(s) => s,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2)
        }
    };
    let t = std::time::Instant::now();
    let f = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&a[2])
        .unwrap();
    let (_, truth) =
        sim::simulate(&s, None, BufWriter::with_capacity(1 << 20, f), |_| true).unwrap();
    eprintln!(
        "{} events in {:?}: {:.2} M/s",
        truth.events,
        t.elapsed(),
        truth.events as f64 / t.elapsed().as_secs_f64() / 1e6
    );
    println!("{}", serde_json::to_string_pretty(&truth).unwrap());
}
