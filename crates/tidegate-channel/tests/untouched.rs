//! G10: a big ring is not touched before it is used: its memory is the system's until then.
#![cfg(all(target_os = "linux", not(loom), not(miri)))]

use tidegate_channel::bounded;

/// Resident memory in pages.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_big_ring_is_not_touched() {
    // 268 MB in 65,536 pages of 4 KiB or more.
    let before = resident();
    let (tx, rx) = bounded::<[u64; 512]>(1 << 16);
    assert!(tx.try_send([7; 512]).is_ok());
    assert!(rx.try_recv() == Ok([7; 512]));
    let touched = resident().saturating_sub(before);
    assert!(touched < 1_024, "{touched} pages");
}
