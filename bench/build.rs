//! Tells the program what it was built with.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../Cargo.toml");
    println!("cargo::rustc-env=BENCH_RUSTC={}", rustc_version());
    println!("cargo::rustc-env=BENCH_FLAGS={}", flags());
}

fn rustc_version() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("cargo's rustc answers --version");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Profile, target and rustc flags; of the workspace's profile what cargo does not tell.
fn flags() -> String {
    let var = |name: &str| env::var(name).unwrap_or_default();
    let profile = var("PROFILE");
    let mut flags = vec![
        format!("profile={profile}"),
        format!("opt-level={}", var("OPT_LEVEL")),
        format!("debug={}", var("DEBUG")),
        format!("target={}", var("TARGET")),
        format!("target-features={}", var("CARGO_CFG_TARGET_FEATURE")),
    ];
    for setting in profile_settings(&profile) {
        // An environment variable of this name overrides the manifest.
        let name = setting.split('=').next().unwrap_or_default().replace('-', "_").to_uppercase();
        let variable = format!("CARGO_PROFILE_{}_{name}", profile.to_uppercase());
        println!("cargo::rerun-if-env-changed={variable}");
        flags.push(match env::var(&variable) {
            Ok(value) => format!("{}={value}", name.to_lowercase().replace('_', "-")),
            Err(_) => setting,
        });
    }
    let rustflags = var("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    if !rustflags.is_empty() {
        flags.push(format!("rustflags={rustflags}"));
    }
    flags.join(" ")
}

/// The lines of the workspace's `[profile.…]` section, without blanks and quotes.
fn profile_settings(profile: &str) -> Vec<String> {
    let manifest = std::fs::read_to_string("../Cargo.toml").unwrap_or_default();
    let header = format!("[profile.{profile}]");
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != header).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| line.contains('=') && !line.starts_with('#'))
        .map(|line| line.replace([' ', '"'], ""))
        .collect()
}
