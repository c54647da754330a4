//! What a line of output must look like.
//!
//! Text stands for itself, but for these:
//!
//! | written | stands for |
//! | --- | --- |
//! | `<*>` | any text, none included |
//! | `<5..>`, `<5..9>` | a number of at least 5, from 5 to 9 |
//! | `a<or>b` | a line like `a` or a line like `b` |
//! | `...` alone | any number of lines |

/// The pattern that stands for any number of lines.
pub(crate) const ANY_LINES: &str = "...";

/// A part of a line.
#[derive(Debug, PartialEq, Eq)]
enum Part<'p> {
    Text(&'p str),
    Anything,
    Number { least: u64, most: u64 },
}

/// Does the line look like that?
pub(crate) fn line_matches(pattern: &str, line: &str) -> bool {
    pattern.split("<or>").any(|pattern| parts_match(&parts(pattern), line))
}

/// The first part of a pattern with a special meaning: where it starts, where it ends, what it is.
fn special(pattern: &str) -> Option<(usize, usize, Part<'_>)> {
    pattern.match_indices('<').find_map(|(start, _)| {
        let length = pattern[start..].find('>')?;
        let part = match &pattern[start + 1..start + length] {
            "*" => Part::Anything,
            inner => {
                let (least, most) = inner.split_once("..")?;
                let most = if most.is_empty() { u64::MAX } else { most.parse().ok()? };
                Part::Number { least: least.parse().ok()?, most }
            }
        };
        Some((start, start + length + 1, part))
    })
}

fn parts(mut pattern: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while let Some((start, end, part)) = special(pattern) {
        parts.push(Part::Text(&pattern[..start]));
        parts.push(part);
        pattern = &pattern[end..];
    }
    parts.push(Part::Text(pattern));
    parts
}

fn parts_match(parts: &[Part<'_>], line: &str) -> bool {
    match parts {
        [] => line.is_empty(),
        [Part::Text(text), rest @ ..] => line.strip_prefix(text).is_some_and(|line| parts_match(rest, line)),
        [Part::Number { least, most }, rest @ ..] => {
            let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
            let (number, line) = line.split_at(digits);
            number.parse().is_ok_and(|number: u64| (*least..=*most).contains(&number)) && parts_match(rest, line)
        }
        [Part::Anything, rest @ ..] => {
            line.char_indices().map(|(at, _)| at).chain([line.len()]).any(|at| parts_match(rest, &line[at..]))
        }
    }
}

/// Do the lines look like the patterns, one by one?
pub(crate) fn lines_match(patterns: &[&str], lines: &[&str]) -> bool {
    // reachable[n]: the patterns so far fit the first n lines.
    let mut reachable = vec![false; lines.len() + 1];
    reachable[0] = true;
    for pattern in patterns {
        if *pattern == ANY_LINES {
            let first = reachable.iter().position(|fits| *fits).unwrap_or(reachable.len());
            reachable[first..].fill(true);
        } else {
            for n in (0..lines.len()).rev() {
                reachable[n + 1] = reachable[n] && line_matches(pattern, lines[n]);
            }
            reachable[0] = false;
        }
    }
    reachable[lines.len()]
}

/// What was wanted (`-`) and what came (`+`), the common lines once.
pub(crate) fn difference(patterns: &[&str], lines: &[&str]) -> String {
    const SHOWN: usize = 200;
    let (patterns, lines) = (&patterns[..patterns.len().min(SHOWN)], &lines[..lines.len().min(SHOWN)]);
    // common[p][l]: how many lines the rests from p and l have in common at most.
    let mut common = vec![vec![0; lines.len() + 1]; patterns.len() + 1];
    for p in (0..patterns.len()).rev() {
        for l in (0..lines.len()).rev() {
            common[p][l] = if line_matches(patterns[p], lines[l]) {
                common[p + 1][l + 1] + 1
            } else {
                common[p + 1][l].max(common[p][l + 1])
            };
        }
    }
    let (mut text, mut p, mut l) = (Vec::new(), 0, 0);
    while p < patterns.len() || l < lines.len() {
        let both = p < patterns.len() && l < lines.len();
        if both && line_matches(patterns[p], lines[l]) {
            text.push(format!("    {}\n", shortened(lines[l])));
            (p, l) = (p + 1, l + 1);
        } else if p < patterns.len() && (l == lines.len() || common[p + 1][l] >= common[p][l + 1]) {
            text.push(format!("  - {}\n", patterns[p]));
            p += 1;
        } else {
            text.push(format!("  + {}\n", shortened(lines[l])));
            l += 1;
        }
    }
    text.concat()
}

/// A line of a size that can be read.
fn shortened(line: &str) -> String {
    let mut short: String = line.chars().take(300).collect();
    if short.len() < line.len() {
        short += " [..]";
    }
    short
}

#[test]
fn text_matches_itself() {
    assert!(line_matches("True{}", "True{}"));
    assert!(line_matches("", ""));
    assert!(!line_matches("True{}", "True{} "));
    assert!(!line_matches("True{}", ""));
    assert!(!line_matches("", "x"));
    assert!(line_matches("Maybe<&1, U32> < 3", "Maybe<&1, U32> < 3"));
}

#[test]
fn numbers_have_bounds() {
    assert!(line_matches("ms=<100..>", "ms=100"));
    assert!(!line_matches("ms=<100..>", "ms=99"));
    assert!(!line_matches("ms=<100..>", "ms="));
    assert!(!line_matches("ms=<100..>", "ms=100x"));
    assert!(line_matches("ms=<100..200> b=<0..>", "ms=200 b=7"));
    assert!(!line_matches("ms=<100..200>", "ms=201"));
    assert!(!line_matches("ms=<100..>", "ms=<100..>"));
}

#[test]
fn wildcards_and_alternatives() {
    assert!(line_matches("<*>b<*>", "aabaa"));
    assert!(line_matches("<*>", ""));
    assert!(!line_matches("<*>b", "aabaa"));
    assert!(line_matches("a<or>b<1..>", "b2"));
    assert!(!line_matches("a<or>b", "ab"));
}

#[test]
fn lines_match_in_order() {
    assert!(lines_match(&[], &[]));
    assert!(lines_match(&["a", "b"], &["a", "b"]));
    assert!(!lines_match(&["a", "b"], &["b", "a"]));
    assert!(!lines_match(&["a"], &["a", "a"]));
    assert!(!lines_match(&["a", "a"], &["a"]));
    assert!(!lines_match(&[], &["a"]));
    assert!(lines_match(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(lines_match(&["a", "..."], &["a"]));
    assert!(!lines_match(&["a", "...", "d"], &["a", "b"]));
    assert!(!lines_match(&["...", "d"], &["d", "e"]));
}

#[test]
fn a_difference_names_both_sides() {
    let text = difference(&["a", "b", "c"], &["a", "x", "c"]);
    assert_eq!(text, "    a\n  - b\n  + x\n    c\n");
    assert_eq!(difference(&["a"], &[]), "  - a\n");
    assert_eq!(difference(&[], &["a"]), "  + a\n");
}
