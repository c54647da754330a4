//! Which loads and peers to run.

use std::fmt;

use crate::harness::{Load, Scale};

/// `LOAD` or `LOAD/PEER`, any number of them; none is everything.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    wanted: Vec<(String, Option<String>)>,
}

impl Filter {
    /// # Errors
    /// A word names no load, or no peer of its load.
    pub(crate) fn new(words: &[String], loads: &[Load]) -> Result<Filter, UnknownFilter> {
        let mut wanted = Vec::new();
        for word in words {
            let (load, peer) = match word.split_once('/') {
                Some((load, peer)) => (load, Some(peer)),
                None => (word.as_str(), None),
            };
            let known = loads.iter().find(|known| known.name == load);
            let is_known = known.is_some_and(|known| peer.is_none_or(|peer| peers(known).contains(&peer)));
            if !is_known {
                return Err(UnknownFilter { word: word.clone(), listing: Listing::of(loads) });
            }
            wanted.push((load.to_owned(), peer.map(str::to_owned)));
        }
        Ok(Filter { wanted })
    }

    pub(crate) fn has_load(&self, load: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|(wanted, _)| wanted == load)
    }

    pub(crate) fn has(&self, load: &str, peer: &str) -> bool {
        let is_peer = |wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| wanted == peer);
        self.wanted.is_empty() || self.wanted.iter().any(|(wanted, peer)| wanted == load && is_peer(peer))
    }
}

/// The peers of a load, each once.
fn peers(load: &Load) -> Vec<&'static str> {
    let mut peers = Vec::new();
    for cell in (load.cells)(Scale::Quick) {
        if !peers.contains(&cell.peer) {
            peers.push(cell.peer);
        }
    }
    peers
}

/// What there is to run.
#[derive(Debug)]
pub(crate) struct Listing(Vec<(&'static str, Vec<&'static str>)>);

impl Listing {
    pub(crate) fn of(loads: &[Load]) -> Listing {
        Listing(loads.iter().map(|load| (load.name, peers(load))).collect())
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (load, peers) in &self.0 {
            writeln!(f, "{load:<14} {}", peers.join(" "))?;
        }
        Ok(())
    }
}

/// A filter that selects nothing.
#[derive(Debug)]
pub(crate) struct UnknownFilter {
    word: String,
    listing: Listing,
}

impl fmt::Display for UnknownFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no load or peer is called `{}`; say LOAD or LOAD/PEER, of these:", self.word)?;
        write!(f, "{}", self.listing)
    }
}

impl std::error::Error for UnknownFilter {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Cell;

    fn cells(_: Scale) -> Vec<Cell> {
        ["a", "b", "a"].map(|peer| Cell::new("case", peer, || Ok(Vec::new()))).into()
    }

    fn loads() -> Vec<Load> {
        ["one", "two"].map(|name| Load { name, shows: "", hides: "", max_rounds: 1, cells }).into()
    }

    fn filter(words: &[&str]) -> Result<Filter, UnknownFilter> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Filter::new(&words, &loads())
    }

    #[test]
    fn no_word_is_everything() {
        let filter = filter(&[]).unwrap();
        assert!(filter.has_load("one") && filter.has("two", "b"));
    }

    #[test]
    fn a_load_has_all_its_peers_and_no_other_load() {
        let filter = filter(&["one"]).unwrap();
        assert!(filter.has("one", "a") && filter.has("one", "b"));
        assert!(!filter.has_load("two") && !filter.has("two", "a"));
    }

    #[test]
    fn words_add_up() {
        let filter = filter(&["one/a", "two/b"]).unwrap();
        assert!(filter.has("one", "a") && filter.has("two", "b"));
        assert!(!filter.has("one", "b") && !filter.has("two", "a"));
    }

    #[test]
    fn a_wrong_word_is_told_what_there_is() {
        for word in ["three", "one/c", "one/", "", "/a", "one/a/b", "ONE"] {
            let error = filter(&[word]).unwrap_err().to_string();
            assert!(error.contains(&format!("`{word}`")), "{error}");
            assert!(error.contains("one            a b\n") && error.contains("two            a b\n"), "{error}");
        }
    }
}
