//! Where the documents of a run go.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::cli::Documents;
use crate::harness::report::{in_markdown, write_csv, write_html, Document};

/// The documents that were asked for.
#[derive(Debug)]
pub(crate) struct Outputs {
    json: Option<Target>,
    csv: Option<Target>,
    html: Option<Target>,
    markdown: Option<PathBuf>,
}

impl Outputs {
    /// Tries every place before anything is measured, so that a wrong path costs no time.
    ///
    /// # Errors
    /// A file cannot be written, or two documents would go to standard output.
    pub(crate) fn open(documents: Documents) -> Result<Outputs, String> {
        let Documents { json, csv, html, markdown } = documents;
        let open = |path: Option<PathBuf>| path.map(Target::open).transpose();
        let outputs = Outputs { json: open(json)?, csv: open(csv)?, html: open(html)?, markdown };
        if outputs.on_stdout() > 1 {
            return Err("standard output takes one document".into());
        }
        if let Some(path) = &outputs.markdown {
            touch(path)?;
        }
        Ok(outputs)
    }

    fn on_stdout(&self) -> usize {
        let targets = [&self.json, &self.csv, &self.html].into_iter().flatten();
        targets.filter(|target| matches!(target, Target::Stdout)).count()
    }

    /// Does a document go where the tables would?
    pub(crate) fn takes_stdout(&self) -> bool {
        self.on_stdout() > 0
    }

    pub(crate) fn write(&self, document: &Document) -> Result<(), String> {
        if let Some(target) = &self.json {
            target.write(|out| document.write(out))?;
        }
        if let Some(target) = &self.csv {
            target.write(|out| write_csv(out, &document.results).map_err(io::Error::from))?;
        }
        if let Some(target) = &self.html {
            target.write(|out| write_html(out, document))?;
        }
        match &self.markdown {
            Some(path) => write_markdown(path, document).map_err(|error| named(path, &error)),
            None => Ok(()),
        }
    }
}

fn write_markdown(path: &Path, document: &Document) -> io::Result<()> {
    let old = std::fs::read_to_string(path)?;
    std::fs::write(path, in_markdown(document, &old))
}

/// Where a document goes.
#[derive(Debug)]
enum Target {
    Stdout,
    File(PathBuf),
}

impl Target {
    fn open(path: PathBuf) -> Result<Target, String> {
        if path.as_os_str() == "-" {
            return Ok(Target::Stdout);
        }
        touch(&path)?;
        Ok(Target::File(path))
    }

    /// Hands `write` the place to write to; an error comes back with the place's name.
    fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
        match self {
            Target::Stdout => write(&mut io::stdout().lock()).map_err(|error| format!("standard output: {error}")),
            Target::File(path) => {
                let written = File::create(path).and_then(|file| {
                    let mut out = BufWriter::new(file);
                    write(&mut out)?;
                    out.flush()
                });
                written.map_err(|error| named(path, &error))
            }
        }
    }
}

/// Can the file be written? What it holds stays, until there is something to write: a run that fails loses no older one.
fn touch(path: &Path) -> Result<(), String> {
    match OpenOptions::new().append(true).create(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(named(path, &error)),
    }
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Documents {
        Documents { json: None, csv: None, html: None, markdown: None }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tidegate-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        folder
    }

    #[test]
    fn a_wrong_path_is_told_before_the_run() {
        for place in
            [|path| Documents { json: path, ..documents() }, |path| Documents { markdown: path, ..documents() }]
        {
            let error = Outputs::open(place(Some("no/such/folder/run".into()))).unwrap_err();
            assert!(error.starts_with("no/such/folder/run: "), "{error}");
        }
    }

    #[test]
    fn standard_output_takes_one() {
        let dash = || Some(PathBuf::from("-"));
        assert!(Outputs::open(Documents { json: dash(), csv: dash(), ..documents() }).is_err());
        assert!(Outputs::open(Documents { html: dash(), ..documents() }).unwrap().takes_stdout());
        assert!(!Outputs::open(documents()).unwrap().takes_stdout());
    }

    #[test]
    fn what_is_there_stays_until_it_is_replaced() {
        let folder = folder("replaced");
        let path = folder.join("run.json");
        std::fs::write(&path, "an older run").expect("the file can be written");
        let target = Target::open(path.clone()).expect("the file is there");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "an older run");
        target.write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        std::fs::remove_dir_all(folder).expect("the folder can be removed");
    }
}
