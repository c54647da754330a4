//! The import lines at the head of a file.
//!
//! A path is not made of tokens (`../a-b/c.bend`), so the head is read line by line.

use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::{Import, Interner};

/// Reads the imports of `text` and gives the byte after them.
///
/// # Errors
/// The first line that starts with `import` and is none.
pub fn split_imports(text: &str, file: u32, names: &mut Interner) -> Result<(Vec<Import>, usize), Box<Diagnostic>> {
    let mut imports: Vec<Import> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.split('#').next().unwrap_or("").trim();
        let mut words = content.split_whitespace();
        match words.next() {
            None => {}
            Some("import") => {
                let import = read_import(content, words, text, start, file, names)?;
                reject_repeated_alias(&imports, &import, names)?;
                imports.push(import);
            }
            Some(_) => break,
        }
        start += line.len();
    }
    Ok((imports, start))
}

fn read_import<'a>(
    content: &str,
    mut words: impl Iterator<Item = &'a str>,
    text: &str,
    line_start: usize,
    file: u32,
    names: &mut Interner,
) -> Result<Import, Box<Diagnostic>> {
    let offset = line_start + text[line_start..].find(content).unwrap_or(0);
    let place = |part: &str| {
        let start = offset + content.rfind(part).unwrap_or(0);
        Span { file, start: start as u32, end: (start + part.len()) as u32 }
    };
    let found: Vec<&str> = words.by_ref().collect();
    match found[..] {
        ["Base"] => Ok(Import { module: None, span: place("Base") }),
        [path, "as", alias] if is_alias(alias) => {
            let span = Span {
                end: (offset + content.find(path).unwrap_or(0) + path.len()) as u32,
                start: (offset + content.find(path).unwrap_or(0)) as u32,
                file,
            };
            if !path.ends_with(".bend") {
                let observed = format!("'{path}'");
                return Err(Diagnostic::mismatch("an import of a .bend file", observed, Some(span)).into());
            }
            Ok(Import { module: Some((path.to_owned(), names.intern(alias))), span })
        }
        _ => Err(Box::new(Diagnostic::mismatch(
            "an import ('import Base', or 'import path.bend as Name')",
            format!("'{content}'"),
            Some(place(content)),
        ))),
    }
}

/// An alias is one word.
fn is_alias(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn reject_repeated_alias(imports: &[Import], import: &Import, names: &Interner) -> Result<(), Box<Diagnostic>> {
    let alias = |import: &Import| import.module.as_ref().map(|(_, alias)| *alias);
    let Some(new) = alias(import) else {
        return Ok(());
    };
    if imports.iter().any(|earlier| alias(earlier) == Some(new)) {
        let message = format!("a fresh alias ({} names an earlier import)", names.text(new));
        return Err(Diagnostic::message(message, Some(import.span)).into());
    }
    Ok(())
}
