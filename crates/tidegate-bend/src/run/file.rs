//! Files: each operation is a job of the blocking pool, and hands its handle back beside the answer.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

use super::array::list;
use super::text;
use super::value::Value;
use crate::core::Known;

/// An open file, or what is left of a closed one.
#[derive(Debug)]
pub(crate) struct FileHandle(Mutex<Option<File>>);

/// What is to be done.
#[derive(Debug)]
pub(super) enum FileJob {
    Open { path: String, mode: String },
    Read(Value, u32),
    ReadBytes(Value, u32),
    ReadAt(Value, u32, u32),
    Size(Value),
    Write(Value, Vec<u8>),
    Close(Value),
}

/// `EBADF` and `EINVAL`, as the systems that have these numbers agree.
const BAD_FILE: i32 = 9;
const INVALID: i32 = 22;

/// How much is read at once, at first.
const CHUNK: usize = 1 << 16;

impl FileJob {
    /// Does it, on a thread that may block.
    pub(super) fn run(self, known: &Known) -> Value {
        match self {
            FileJob::Open { path, mode } => {
                let opened =
                    open(&path, &mode).map(|file| Value::File(std::sync::Arc::new(FileHandle(Mutex::new(Some(file))))));
                answer(known, opened)
            }
            FileJob::Read(handle, max) => on_file(known, handle, |file| read_text(file, max as usize)),
            FileJob::ReadBytes(handle, max) => {
                on_file(known, handle, |file| Ok(bytes(known, read_up_to(file, max as usize)?)))
            }
            FileJob::ReadAt(handle, offset, max) => on_file(known, handle, |file| {
                // The place of the next plain read stays.
                let before = file.stream_position()?;
                file.seek(SeekFrom::Start(u64::from(offset)))?;
                let read = read_up_to(file, max as usize);
                file.seek(SeekFrom::Start(before))?;
                Ok(bytes(known, read?))
            }),
            FileJob::Size(handle) => on_file(known, handle, |file| {
                let size = file.metadata()?.len();
                u32::try_from(size).map(Value::U32).map_err(|_| io::Error::other(format!("{size} bytes: not a U32")))
            }),
            FileJob::Write(handle, content) => {
                on_file(known, handle, |file| file.write_all(&content).map(|()| Value::Plain(known.unit)))
            }
            FileJob::Close(handle) => {
                if let Value::File(handle) = handle {
                    drop(handle.0.lock().unwrap_or_else(PoisonError::into_inner).take());
                }
                Value::Plain(known.unit)
            }
        }
    }
}

/// `Done{value}`, or `Fail{(code, message)}`.
fn answer(known: &Known, result: io::Result<Value>) -> Value {
    match result {
        Ok(value) => Value::one(known.done, value),
        Err(error) => fail(known, error.raw_os_error().unwrap_or(1) as u32, &describe(&error)),
    }
}

/// `Fail{(code, message)}`
pub(super) fn fail(known: &Known, code: u32, message: &str) -> Value {
    Value::one(known.fail, Value::two(known.tuple, Value::U32(code), text::text(message)))
}

/// The system's text without the number, which stands beside it.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}

fn on_file(known: &Known, handle: Value, f: impl FnOnce(&mut File) -> io::Result<Value>) -> Value {
    let Value::File(file) = &handle else {
        return fail(known, BAD_FILE as u32, "not a file");
    };
    let result = {
        let mut file = file.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_mut().map_or_else(|| Err(io::Error::from_raw_os_error(BAD_FILE)), f)
    };
    let result = answer(known, result);
    Value::two(known.tuple, handle, result)
}

/// The modes are those of the C library, with or without `b`.
fn open(path: &str, mode: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match mode.replace('b', "").as_str() {
        "r" => options.read(true),
        "r+" | "rw" => options.read(true).write(true),
        "w" => options.write(true).create(true).truncate(true),
        "w+" => options.read(true).write(true).create(true).truncate(true),
        "a" => options.append(true).create(true),
        "a+" => options.read(true).append(true).create(true),
        "x" | "wx" => options.write(true).create_new(true),
        _ => return Err(io::Error::from_raw_os_error(INVALID)),
    };
    options.open(path)
}

/// Up to so many bytes: fewer at the end of the file, and where a pipe or a terminal has no more for now.
fn read_up_to(file: &mut File, max: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    while content.len() < max {
        let start = content.len();
        let wanted = (max - start).min(CHUNK.max(start));
        content.resize(start + wanted, 0);
        let read = match file.read(&mut content[start..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                content.truncate(start);
                continue;
            }
            Err(error) => return Err(error),
        };
        content.truncate(start + read);
        if read < wanted {
            break;
        }
    }
    Ok(content)
}

/// The same as text. A character that the limit would cut is read as a whole.
fn read_text(file: &mut File, max: usize) -> io::Result<Value> {
    let mut content = read_up_to(file, max)?;
    while content.len() >= max && ends_inside(&content) {
        let mut next = [0];
        if file.read(&mut next)? == 0 {
            break;
        }
        content.push(next[0]);
    }
    Ok(text::from_bytes(content))
}

/// Does it end inside of a character?
fn ends_inside(content: &[u8]) -> bool {
    let tail = &content[content.len().saturating_sub(3)..];
    let Some(lead) = tail.iter().rposition(|byte| byte & 0xC0 != 0x80) else { return false };
    let needed = match tail[lead] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    };
    tail.len() - lead < needed
}

fn bytes(known: &Known, content: Vec<u8>) -> Value {
    list(known, content.into_iter().map(|byte| Value::U32(u32::from(byte))))
}

#[cfg(test)]
mod tests {
    use super::ends_inside;

    #[test]
    fn cut_characters_are_seen() {
        for text in ["é", "€", "𝄞"] {
            let bytes = text.as_bytes();
            for end in 1..bytes.len() {
                assert!(ends_inside(&bytes[..end]), "{text} {end}");
            }
            assert!(!ends_inside(bytes));
        }
        assert!(!ends_inside(b""));
        assert!(!ends_inside(b"abc"));
        assert!(!ends_inside(&[0x80, 0x80, 0x80]));
    }
}
