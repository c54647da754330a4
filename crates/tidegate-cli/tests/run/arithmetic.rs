//! Numbers on the borders of their types, with every operator; what must come out is computed here.

use super::expectation::Expectation;
use super::process::run;
use super::programs::{compare, empty_folder, tidegate_run};

const U32S: [u32; 12] = [0, 1, 2, 3, 7, 31, 32, 65_535, 65_536, 0x7fff_ffff, 0x8000_0000, u32::MAX];
const LARGEST_NAT: u64 = (1 << 48) - 1;
const NATS: [u64; 10] = [0, 1, 2, 3, 10, 4_294_967_295, 4_294_967_296, 16_777_215, LARGEST_NAT - 1, LARGEST_NAT];

/// A program that prints these terms, one a line, must print those texts.
fn check(name: &str, terms: &[(String, String)]) {
    let header: String = terms.iter().flat_map(|(_, value)| ["# stdout: ", value, "\n"]).collect();
    let lines: String = terms.iter().flat_map(|(term, _)| ["    IO.print(", term, ")\n"]).collect();
    let text = format!("{header}import Base\n\ndef main() -> IO(Unit):\n  do IO<Unit>:\n{lines}");
    let path = empty_folder(name).join(format!("{name}.bend"));
    std::fs::write(&path, text).expect("the file can be written");
    let expectation = Expectation::read(&header).expect("a header");
    let ended = run(tidegate_run(&path), expectation.limit);
    if let Err(failure) = compare(&expectation, &ended) {
        let stdout = ended.stdout();
        let wrong = terms.iter().zip(stdout.lines()).filter(|((_, value), line)| value != line);
        let shown = wrong.take(10).map(|((term, value), line)| format!("{term}: {line}, not {value}"));
        let shown: Vec<String> = shown.collect();
        panic!("{name}: {}\n{failure}", shown.join("\n"));
    }
}

#[test]
fn u32_operators() {
    let mut terms = Vec::new();
    let mut add = |term: String, value: u32| terms.push((format!("U32.show({term})"), value.to_string()));
    for a in U32S {
        for b in U32S {
            add(format!("({a} + {b} : U32)"), a.wrapping_add(b));
            add(format!("({a} - {b} : U32)"), a.wrapping_sub(b));
            add(format!("({a} * {b} : U32)"), a.wrapping_mul(b));
            add(format!("({a} / {b} : U32)"), a.checked_div(b).unwrap_or(0));
            add(format!("({a} % {b} : U32)"), a.checked_rem(b).unwrap_or(a));
            add(format!("U32.and({a}, {b})"), a & b);
            add(format!("U32.or({a}, {b})"), a | b);
            add(format!("U32.xor({a}, {b})"), a ^ b);
            add(format!("U32.shln({a}, {b}n)"), a.checked_shl(b).unwrap_or(0));
            add(format!("U32.shrn({a}, {b}n)"), a.checked_shr(b).unwrap_or(0));
        }
        add(format!("U32.not({a})"), !a);
        add(format!("U32.inc({a})"), a.wrapping_add(1));
    }
    check("u32-operators", &terms);
}

#[test]
fn u32_comparisons() {
    let mut terms = Vec::new();
    let mut add = |term: String, value: bool| {
        let value = if value { "True" } else { "False" };
        terms.push((format!("Bool.show({term})"), value.to_owned()));
    };
    for a in U32S {
        for b in U32S {
            add(format!("({a} < {b} : U32)"), a < b);
            add(format!("({a} <= {b} : U32)"), a <= b);
            add(format!("({a} > {b} : U32)"), a > b);
            add(format!("({a} >= {b} : U32)"), a >= b);
            add(format!("U32.is_eq({a}, {b})"), a == b);
            add(format!("U32.is_ne({a}, {b})"), a != b);
        }
    }
    check("u32-comparisons", &terms);
}

#[test]
fn nat_operators() {
    let mut terms = Vec::new();
    let mut add = |term: String, value: u64| terms.push((format!("Nat.show({term})"), value.to_string()));
    for a in NATS {
        for b in NATS {
            if a + b <= LARGEST_NAT {
                add(format!("({a}n + {b}n : Nat)"), a + b);
            }
            if a.checked_mul(b).is_some_and(|product| product <= LARGEST_NAT) {
                add(format!("({a}n * {b}n : Nat)"), a * b);
            }
            add(format!("({a}n - {b}n : Nat)"), a.saturating_sub(b));
            add(format!("({a}n / {b}n : Nat)"), a.checked_div(b).unwrap_or(0));
            add(format!("({a}n % {b}n : Nat)"), a.checked_rem(b).unwrap_or(a));
            add(format!("Nat.min({a}n, {b}n)"), a.min(b));
            add(format!("Nat.max({a}n, {b}n)"), a.max(b));
        }
    }
    check("nat-operators", &terms);
}

#[test]
fn nat_comparisons_and_conversions() {
    let mut terms = Vec::new();
    for a in NATS {
        for b in NATS {
            let mut add = |term: String, value: bool| {
                let value = if value { "True" } else { "False" };
                terms.push((format!("Bool.show({term})"), value.to_owned()));
            };
            add(format!("({a}n < {b}n : Nat)"), a < b);
            add(format!("({a}n <= {b}n : Nat)"), a <= b);
            add(format!("({a}n > {b}n : Nat)"), a > b);
            add(format!("({a}n >= {b}n : Nat)"), a >= b);
            add(format!("Nat.is_eq({a}n, {b}n)"), a == b);
        }
        let low = u32::try_from(a & 0xffff_ffff).expect("32 bits");
        terms.push((format!("U32.show(U32.from_nat({a}n))"), low.to_string()));
    }
    for a in U32S {
        terms.push((format!("Nat.show(U32.to_nat({a}))"), a.to_string()));
    }
    check("nat-comparisons", &terms);
}

/// Each sum and product that is too large ends the program.
#[test]
fn nat_overflows() {
    for term in [
        "281474976710655n + 1n",
        "281474976710655n + 281474976710655n",
        "281474976710655n * 2n",
        "281474976710655n * 281474976710655n",
        "16777216n * 16777216n",
        "4294967296n * 4294967296n",
    ] {
        let text = format!("import Base\n\ndef main() -> Nat:\n  ({term} : Nat)\n");
        let path = empty_folder("nat-overflow").join("overflow.bend");
        std::fs::write(&path, text).expect("the file can be written");
        let expectation = Expectation::read("# status: 1\n# stderr: bend: <*>\n").expect("a header");
        if let Err(failure) = compare(&expectation, &run(tidegate_run(&path), expectation.limit)) {
            panic!("{term}: {failure}");
        }
    }
}
