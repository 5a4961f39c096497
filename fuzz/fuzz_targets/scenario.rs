//! Parses any text as a scenario, alone and as an extension of a shipped scenario. If a scenario is valid,
//! runs it for a short time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::{Override, Scenario, shipped};

fuzz_target!(|text: &str| {
    let named = |name: &str| shipped::text(name).map(str::to_owned);
    let (text, setting) = text.split_once('\0').unwrap_or((text, "seed=2"));
    let settings: Vec<Override> = Override::parse(setting).into_iter().collect();
    let Ok(scenario) = Scenario::read("fuzz.toml", text, &named, &settings) else {
        return;
    };
    // The model calls `go_on` after every few thousand of its events.
    let mut looks = 0;
    let go_on = |_| {
        looks += 1;
        looks < 4
    };
    let _ = sim::simulate(&scenario, None, std::io::Cursor::new(Vec::new()), go_on);
});
