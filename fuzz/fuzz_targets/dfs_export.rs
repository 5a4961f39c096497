//! Any bytes as an export of a DFS namespace; one that is read is rewritten, and a text as referrals is
//! judged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tune::dfsn::{Export, Gate, Names, Referrals, ServerName, rewrite};

fuzz_target!(|bytes: &[u8]| {
    let name = |text| ServerName::new(text).expect("a name");
    if let Ok(export) = Export::read(bytes) {
        let names = Names {
            map: vec![(name("a"), name("b.example"))],
            suffix: Some(name("corp.example")),
        };
        // What is written can be read again, whatever it is.
        rewrite(&export, &names).expect("only names differ");
    }
    if let Ok(referrals) = Referrals::read(&String::from_utf8_lossy(bytes)) {
        let _ = Gate::OldGone.judge(&referrals, r"\\a\b", &[name("a")], &[name("b.example")]);
    }
});
