//! The whole check: no panic, no hang, bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_bend::{check_text, Options};

fuzz_target!(|text: &str| {
    // The fuzzer's texts name no files: what an import finds is not its business.
    if text.contains(".bend") {
        return;
    }
    let _ = check_text("fuzz.bend", text, Options { library: true });
    let program = format!("import Base\n{text}");
    let _ = check_text("fuzz.bend", &program, Options { library: true });
});
