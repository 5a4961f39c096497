//! Reads any text as a file for `laglab tune`: output of programs of Windows, reports, and templates of policies.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Starts of the formats, which the fuzzer finds only slowly.
const STARTS: [&str; 5] = [
    "",
    "<policyDefinitions>",
    "<policyDefinitionResources>",
    "[Unicode]\r\n",
    "Power Scheme GUID: ",
];

fuzz_target!(|text: &str| {
    for start in STARTS {
        let _ = tune::inputs::read("a", [start, text].concat().as_bytes());
    }
});
