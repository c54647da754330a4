//! Who is there, and what each waits for: the list below the line of a deadlock.

use std::collections::BTreeMap;
use std::fmt;

use super::code::{Code, Site};

/// More lines than that are counted by what they say.
const LINES: usize = 100;

/// What a computation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Send { room: u32, site: u32 },
    Recv { room: u32, site: u32 },
    Time,
    File,
}

/// A computation.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// In the order of spawning.
    serial: u64,
    /// Where it was spawned.
    site: u32,
    wait: Option<Wait>,
}

/// All computations that have not ended.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    spawned: u64,
    parked: u64,
    peak: u64,
}

impl Table {
    /// A new computation: its number.
    pub(super) fn add(&mut self, site: u32) -> usize {
        let entry = Some(Entry { serial: self.spawned, site, wait: None });
        self.spawned += 1;
        match self.free.pop() {
            Some(number) => {
                self.entries[number] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }

    pub(super) fn remove(&mut self, number: usize) {
        self.entries[number] = None;
        self.free.push(number);
    }

    pub(super) fn park(&mut self, number: usize, wait: Wait) {
        if let Some(entry) = &mut self.entries[number] {
            entry.wait = Some(wait);
        }
        self.parked += 1;
        self.peak = self.peak.max(self.parked);
    }

    pub(super) fn wake(&mut self, number: usize) {
        if let Some(entry) = &mut self.entries[number] {
            entry.wait = None;
        }
        self.parked -= 1;
    }

    /// The most that waited at one time.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// All that wait, in the order of their spawning.
    pub(super) fn waiting(&self, code: &Code) -> Deadlock {
        let mut waiting: Vec<&Entry> = self.entries.iter().flatten().filter(|entry| entry.wait.is_some()).collect();
        waiting.sort_by_key(|entry| entry.serial);
        Deadlock { waiting: waiting.into_iter().map(|entry| line(code, entry)).collect() }
    }
}

fn line(code: &Code, entry: &Entry) -> Waiting {
    let site = |number: u32| code.sites.get(number as usize).filter(|_| number != Site::NONE);
    let spawned = match (entry.serial, site(entry.site)) {
        (0, _) => String::from("main"),
        (_, Some(Site { definition, place })) => format!("spawned at {place} in {definition}"),
        (_, None) => String::from("spawned in Base"),
    };
    let on = |operation: &str, room: u32, made: u32| {
        let made =
            site(made).map_or_else(String::new, |site| format!(", made at {} in {}", site.place, site.definition));
        format!("{operation} on a channel of room {room}{made}")
    };
    let waits_on = match entry.wait {
        Some(Wait::Send { room, site }) => on("send", room, site),
        Some(Wait::Recv { room, site }) => on("recv", room, site),
        Some(Wait::Time) => String::from("a timer"),
        Some(Wait::File) => String::from("a file"),
        None => String::from("nothing"),
    };
    Waiting { spawned, waits_on }
}

/// A computation that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// Where it was spawned.
    pub spawned: String,
    /// What it waits on.
    pub waits_on: String,
}

/// All computations of a run that cannot go on, in the order of their spawning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// They.
    pub waiting: Vec<Waiting>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.spawned, self.waits_on)
    }
}

/// The line, and below it one for each computation; if there are very many, one for each kind, and how many; and if there
/// are very many kinds, how many more.
impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bend: deadlock: every computation waits on a channel")?;
        if self.waiting.len() <= LINES {
            return self.waiting.iter().try_for_each(|waiting| write!(f, "\n  {waiting}"));
        }
        let mut kinds: BTreeMap<&Waiting, (usize, usize)> = BTreeMap::new();
        for (at, waiting) in self.waiting.iter().enumerate() {
            kinds.entry(waiting).or_insert((at, 0)).1 += 1;
        }
        let mut kinds: Vec<(&Waiting, (usize, usize))> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, (first, _))| *first);
        for (waiting, (_, count)) in kinds.iter().take(LINES) {
            match count {
                1 => write!(f, "\n  {waiting}")?,
                count => write!(f, "\n  {count} computations {waiting}")?,
            }
        }
        match kinds.iter().skip(LINES).map(|(_, (_, count))| count).sum::<usize>() {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more computations, of {} other kinds", kinds.len() - LINES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_many_kinds_are_counted() {
        let kind = |n: usize| Waiting { spawned: format!("spawned at {n}"), waits_on: String::from("recv") };
        let deadlock = Deadlock { waiting: (0..600).map(|n| kind(n % 300)).collect() };
        let text = deadlock.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + LINES + 1);
        assert_eq!(lines[1], "  2 computations spawned at 0: recv");
        assert_eq!(lines[LINES + 1], "  and 400 more computations, of 200 other kinds");
    }
}
