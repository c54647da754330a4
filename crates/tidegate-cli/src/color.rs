//! Colors, on a terminal only.

use std::io::IsTerminal as _;

const RED: &str = "\u{1b}[1;31m";
const BLUE: &str = "\u{1b}[34m";
const RESET: &str = "\u{1b}[0m";

/// An error report for stderr: its heads red, its line numbers blue, if stderr is a terminal and
/// `NO_COLOR` is not set.
pub(crate) fn errors(report: &str) -> String {
    let wanted = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if !wanted {
        return report.to_owned();
    }
    let lines: Vec<String> = report.lines().map(paint).collect();
    lines.join("\n")
}

fn paint(line: &str) -> String {
    if line == "SOME PROOFS FAIL" || line == "Error:" {
        return format!("{RED}{line}{RESET}");
    }
    let Some((margin, rest)) = line.split_once("| ") else {
        return line.to_owned();
    };
    let is_margin = !margin.is_empty() && margin.bytes().all(|byte| byte.is_ascii_digit() || b" >".contains(&byte));
    if !is_margin {
        return line.to_owned();
    }
    let is_marker = !rest.is_empty() && margin.trim().is_empty();
    let rest = if is_marker { format!("{RED}{rest}{RESET}") } else { rest.to_owned() };
    format!("{BLUE}{margin}|{RESET} {rest}")
}
