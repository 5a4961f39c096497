//! Any text as a scenario, alone and over one that ships.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::scenario::{Override, Scenario};
use sim::shipped;

fuzz_target!(|text: &str| {
    let named = |name: &str| shipped::text(name).map(str::to_owned);
    let (text, setting) = text.split_once('\0').unwrap_or((text, "seed=2"));
    let settings: Vec<Override> = Override::parse(setting).into_iter().collect();
    let _ = Scenario::read("fuzz.toml", text, &named, &settings);
});
