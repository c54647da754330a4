//! What a program says about itself in the comments at its head.
//!
//! | comment | says |
//! | --- | --- |
//! | `# quotes: ..` | the sentence of the contract it tests; it stands in `README.md` too |
//! | `# status: 1` | the exit status; `any` for every one but 0; 0 if not told |
//! | `# stdout: ..` | a line of stdout, as [`super::pattern`] reads it; a `\` at the end: the line has no end |
//! | `# stderr: ..` | a line of stderr; whether the last one has an end is left open |
//! | `# stderr-has: ..` | a pattern that some line of stderr fits; without a `# stderr: ..`, the others are left open |
//! | `# args: ..` | the program's own arguments; `<tmp>` is an empty folder |
//! | `# env: NAME=value` | a variable of the environment |
//! | `# threads: 1 2` | it runs with each number of threads |
//! | `# least-ms: 100` | it may not end earlier |
//! | `# limit-s: 60` | it may not end later (see [`USUAL_LIMIT`]) |

use std::time::Duration;

/// What a program may take that says nothing of it. Far more than any needs, for machines under load.
pub(crate) const USUAL_LIMIT: Duration = Duration::from_secs(30);

/// The exit status.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Is(i32),
    AnyFailure,
}

/// What must come of a program.
#[derive(Debug)]
pub(crate) struct Expectation {
    pub(crate) quotes: Vec<String>,
    pub(crate) status: Status,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
    pub(crate) stderr_has: Vec<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// What follows `--threads`; empty: it is not given.
    pub(crate) threads: Vec<String>,
    pub(crate) least: Duration,
    pub(crate) limit: Duration,
}

impl Expectation {
    /// Reads the comments before the first line of code.
    ///
    /// # Errors
    /// A comment `# word: ..` whose word means nothing here, or a value that cannot be read.
    pub(crate) fn read(program: &str) -> Result<Expectation, String> {
        let mut it = Expectation {
            quotes: Vec::new(),
            status: Status::Is(0),
            stdout: Vec::new(),
            stderr: Vec::new(),
            stderr_has: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            threads: Vec::new(),
            least: Duration::ZERO,
            limit: USUAL_LIMIT,
        };
        for comment in program.lines().map_while(|line| line.strip_prefix('#')) {
            if let Some((key, value)) = directive(comment) {
                it.set(key, value).map_err(|error| format!("#{comment}: {error}"))?;
            }
        }
        Ok(it)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || value.parse().map_err(|_| "not a number".to_owned());
        match key {
            "quotes" => self.quotes.push(value.to_owned()),
            "status" if value == "any" => self.status = Status::AnyFailure,
            "status" => self.status = Status::Is(value.parse().map_err(|_| "not a status")?),
            "stdout" => self.stdout.push(value.to_owned()),
            "stderr" => self.stderr.push(value.to_owned()),
            "stderr-has" => self.stderr_has.push(value.to_owned()),
            "args" => self.args.extend(value.split_whitespace().map(str::to_owned)),
            "env" => {
                let (name, value) = value.split_once('=').ok_or("no = in it")?;
                self.env.push((name.to_owned(), value.to_owned()));
            }
            "threads" => self.threads.extend(value.split_whitespace().map(str::to_owned)),
            "least-ms" => self.least = Duration::from_millis(number()?),
            "limit-s" => self.limit = Duration::from_secs(number()?),
            _ => return Err("unknown word".to_owned()),
        }
        Ok(())
    }

    /// The lines of stdout, and whether the last one has an end.
    pub(crate) fn stdout_lines(&self) -> (Vec<&str>, bool) {
        let mut lines: Vec<&str> = self.stdout.iter().map(String::as_str).collect();
        let open = lines.last().and_then(|last| last.strip_suffix('\\'));
        if let (Some(last), Some(open)) = (lines.last_mut(), open) {
            *last = open;
            return (lines, false);
        }
        (lines, true)
    }
}

/// `word` and the rest of ` word: rest`; other comments are prose.
fn directive(comment: &str) -> Option<(&str, &str)> {
    let (key, value) = comment.strip_prefix(' ')?.split_once(':')?;
    let word = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    word.then(|| (key, value.strip_prefix(' ').unwrap_or(value)))
}

#[test]
fn the_defaults_are_strict() {
    let it = Expectation::read("# A program.\nimport Base\n# status: 7\n").expect("a header");
    assert_eq!(it.status, Status::Is(0));
    assert_eq!((it.stdout.len(), it.stderr.len(), it.limit), (0, 0, USUAL_LIMIT));
}

#[test]
fn directives_are_read() {
    let text = "# status: 3\n# Prose: with a colon.\n# stdout: a\n# stdout:  b\n# args: x <tmp>\n# threads: 1 2\n# env: A=b=c\n# limit-s: 9\n# least-ms: 5\n# stderr:\n";
    let it = Expectation::read(text).expect("a header");
    assert_eq!(it.status, Status::Is(3));
    assert_eq!(it.stdout, ["a", " b"]);
    assert_eq!(it.stderr, [""]);
    assert_eq!(it.args, ["x", "<tmp>"]);
    assert_eq!(it.threads, ["1", "2"]);
    assert_eq!(it.env, [("A".to_owned(), "b=c".to_owned())]);
    assert_eq!((it.limit, it.least), (Duration::from_secs(9), Duration::from_millis(5)));
}

#[test]
fn mistakes_are_told() {
    assert!(Expectation::read("# stdot: a\n").is_err());
    assert!(Expectation::read("# status: x\n").is_err());
    assert!(Expectation::read("# limit-s: soon\n").is_err());
    assert!(Expectation::read("# env: A\n").is_err());
}

#[test]
fn the_last_line_may_have_no_end() {
    let it = Expectation::read("# stdout: a\n# stdout: b\\\n").expect("a header");
    assert_eq!(it.stdout_lines(), (vec!["a", "b"], false));
    let it = Expectation::read("# stdout: a\n").expect("a header");
    assert_eq!(it.stdout_lines(), (vec!["a"], true));
}
