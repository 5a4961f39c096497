//! Parses any bytes as an export of a DFS namespace, and as the referrals of a client. If the export is
//! readable, rewrites it. If the referrals are readable, checks them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use dfsn::{Export, Gate, Names, Referrals, ServerName, rewrite};

fuzz_target!(|bytes: &[u8]| {
    let name = |text| ServerName::new(text).expect("a name");
    if let Ok(export) = Export::read(bytes) {
        let names = Names {
            map: vec![(name("a"), name("b.example"))],
            suffix: Some(name("corp.example")),
        };
        // The output must always be readable.
        rewrite(&export, &names).expect("only names differ");
    }
    if let Ok(referrals) = Referrals::read(&String::from_utf8_lossy(bytes)) {
        let _ = Gate::OldGone.judge(&referrals, r"\\a\b", &[name("a")], &[name("b.example")]);
    }
});
