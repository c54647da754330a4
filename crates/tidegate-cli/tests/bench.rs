//! `tidegate bench` starts the benchmark of the workspace it is called in. What is measured is the benchmark's own matter:
//! these tests put a script in cargo's place.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that is in no workspace, removed with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tidegate-bench-front-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder can be made");
        Folder(folder.canonicalize().expect("the folder is there"))
    }

    /// Makes it a workspace whose folder `bench` has that package.
    fn with_package(self, name: &str) -> Folder {
        fs::create_dir_all(self.0.join("bench/src")).expect("the folder can be made");
        fs::write(self.0.join("Cargo.toml"), "[workspace]\nmembers = [\"bench\"]\n").expect("a manifest");
        let package = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        fs::write(self.0.join("bench/Cargo.toml"), package).expect("a manifest");
        self
    }

    /// A cargo that says where it was called and with what, a word a line, and ends with `status`.
    fn cargo(&self, status: i32) -> PathBuf {
        let path = self.0.join("cargo.sh");
        fs::write(&path, format!("#!/bin/sh\npwd\nprintf '%s\\n' \"$@\"\nexit {status}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the script may run");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the system's folder for such things.
        let _removed = fs::remove_dir_all(&self.0);
    }
}

fn bench(folder: &Path, cargo: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("bench").args(arguments).current_dir(folder).env("CARGO", cargo);
    command.output().expect("the command starts")
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

#[test]
fn the_arguments_reach_the_benchmark() {
    let workspace = Folder::new("arguments").with_package("tidegate-bench");
    let output = bench(&workspace.0, &workspace.cargo(0), &["--quick", "--filter", "ready", "--json", "a file.json"]);
    let here = workspace.0.to_str().expect("a plain path");
    let manifest = format!("{here}/Cargo.toml");
    let said = [here, "run", "--release", "--package", "tidegate-bench", "--manifest-path", &manifest, "--"];
    let given = ["--quick", "--filter", "ready", "--json", "a file.json"];
    assert_eq!(lines(&output.stdout), [&said[..], &given].concat());
    assert!(output.status.success());
}

#[test]
fn the_workspace_is_found_from_inside_and_the_folder_stays() {
    let workspace = Folder::new("inside").with_package("tidegate-bench");
    let inside = workspace.0.join("bench/src");
    let said = lines(&bench(&inside, &workspace.cargo(0), &[]).stdout);
    assert_eq!(said[0], inside.to_str().expect("a plain path"), "files named in arguments are those of the caller");
    assert!(said.contains(&format!("{}/Cargo.toml", workspace.0.display())), "{said:?}");
}

#[test]
fn the_status_is_the_benchmarks() {
    let workspace = Folder::new("status").with_package("tidegate-bench");
    for status in [0, 1, 2, 101] {
        assert_eq!(bench(&workspace.0, &workspace.cargo(status), &["--list"]).status.code(), Some(status));
    }
}

#[test]
fn outside_of_the_workspace_it_says_so() {
    for folder in [Folder::new("none"), Folder::new("another").with_package("other-bench")] {
        let output = bench(&folder.0, &folder.cargo(0), &["--quick"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(lines(&output.stdout).is_empty(), "nothing was started");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(folder.0.to_str().expect("a plain path")) && error.contains("clone"), "{error}");
    }
}

#[test]
fn a_cargo_that_is_missing_is_named() {
    let workspace = Folder::new("cargo").with_package("tidegate-bench");
    let output = bench(&workspace.0, Path::new("/no/such/cargo"), &["--quick"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.starts_with("tidegate: cannot start /no/such/cargo: "), "{error}");
}

/// This repository's own.
#[test]
fn it_is_there() {
    let folder = Folder::new("script");
    let output = bench(Path::new(env!("CARGO_MANIFEST_DIR")), &folder.cargo(0), &["--list"]);
    let said = lines(&output.stdout);
    let manifest = said.iter().find(|line| line.ends_with("Cargo.toml")).expect("a workspace is found");
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path", manifest])
        .output()
        .expect("cargo starts");
    assert!(String::from_utf8_lossy(&metadata.stdout).contains("\"name\":\"tidegate-bench\""));
}
