//! The report: one HTML file without scripts and without anything from elsewhere, opened from disk.
//!
//! From the whole to the single figure: how many cells are ahead, even, behind; each load in one line; each cell with its
//! interval; the cells behind; curves; then, load by load, a bar for every peer. What is in the pictures stands in tables or labels
//! as text too.

mod axis;
mod bars;
mod curves;
mod forest;
mod loads;
mod summary;
mod svg;

use std::io::{self, Write};

use super::document::Document;
use super::standing::standings;
use svg::Escaped;

const STYLE: &str = include_str!("style.css");

/// Writes the page.
pub(crate) fn write_html(mut out: impl Write, document: &Document) -> io::Result<()> {
    let standings = standings(document);
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<meta name=\"color-scheme\" content=\"light dark\">")?;
    writeln!(out, "<title>Tidegate and its peers, measured {}</title>", Escaped(&document.date))?;
    writeln!(out, "<style>\n{STYLE}</style>\n</head>\n<body>\n<main>")?;
    head(&mut out, document)?;
    summary::write(&mut out, document, &standings)?;
    loads::write_curves(&mut out, document)?;
    loads::write(&mut out, document)?;
    method(&mut out, document)?;
    writeln!(out, "</main>\n</body>\n</html>")?;
    out.flush()
}

fn head(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let Document { date, machine, method, .. } = document;
    writeln!(out, "<header>\n<h1>Tidegate and its peers</h1>")?;
    writeln!(
        out,
        "<p>Measured {} in {:.0} s: <code>{}</code></p>",
        Escaped(date),
        document.seconds,
        Escaped(&document.command())
    )?;
    writeln!(
        out,
        "<p class=\"quiet\">{}, {} cores, {}; {}</p>",
        Escaped(&machine.cpu),
        machine.cores,
        Escaped(&machine.os),
        Escaped(&machine.rustc)
    )?;
    if method.quick {
        writeln!(out, "<p class=\"warning\"><strong>A quick run:</strong> small loads and few rounds. It shows that all of it works; its figures decide nothing.</p>")?;
    }
    if let (noisy @ 1.., all) = document.noise() {
        writeln!(out, "<p class=\"warning\"><strong>Noisy:</strong> {noisy} of {all} rounds began while the machine was busy.</p>")?;
    }
    writeln!(out, "</header>")
}

fn method(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let Document { machine, method, .. } = document;
    writeln!(out, "<section>\n<h2>How it was measured</h2>")?;
    writeln!(
        out,
        "<p>The peers of a case run in turn, round by round, {} rounds at most, after {} that is not counted; each round waits \
         for a quiet machine, and begins with another peer. A run that lost or doubled a value fails. A ratio is the median of the ratios of each round, \
         its interval a 95 % bootstrap over rounds (seed {:#x}); intervals of bars are those of the median. \
         Ahead and behind mean that the interval is clear of 1, but a cell for which we take more than {} times the best \
         peer's processor time is not won. The best peer is the one with the lowest median of the case. Only the peer called \
         tidegate stands for us; tidegate+… are variants.</p>",
        method.rounds,
        method.warm_up_runs,
        method.seed,
        super::standing::CPU_LIMIT
    )?;
    writeln!(out, "<p class=\"quiet\">{}</p>", Escaped(&machine.flags))?;
    let crates: Vec<String> =
        machine.crates.iter().map(|version| format!("{} {}", version.name, version.version)).collect();
    writeln!(out, "<p class=\"quiet\">{}</p>\n</section>", Escaped(&crates.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::{case, run};
    use super::*;
    use crate::harness::Unit;

    fn page() -> String {
        let times: &[(&str, &[f64])] = &[("tidegate", &[1.0; 3]), ("a", &[2.0, 2.5, 3.0]), ("b<i>", &[0.5; 3])];
        let mut rows = case("one", "at 8", Unit::Nanoseconds, times);
        rows.extend(case("one", "at 64", Unit::Nanoseconds, times));
        rows.extend(case("two & more", "sizes", Unit::Bytes, &[("tidegate", &[0.0]), ("a", &[8.0])]));
        rows.extend(case("two & more", "counts", Unit::Count, &[("tidegate", &[3.0]), ("a", &[4.0])]));
        let mut page = Vec::new();
        write_html(&mut page, &run(rows)).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn nothing_comes_from_elsewhere_and_nothing_runs() {
        let page = page();
        for word in ["<script", "http:", "https:", "src=", "url(", "@import", "href=\"/", "onload"] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn what_is_opened_is_closed_in_order() {
        let page = page();
        let body = page.split("</style>").nth(1).unwrap();
        let mut open: Vec<&str> = Vec::new();
        for tag in body.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect("every tag ends");
            match tag.strip_prefix('/') {
                Some(name) => {
                    if !matches!(name, "head" | "html") {
                        assert_eq!(open.pop(), Some(name), "before {tag}");
                    }
                }
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().unwrap()),
            }
        }
        assert_eq!(open, [""; 0]);
    }

    #[test]
    fn every_peer_and_the_cell_behind_are_there() {
        let page = page();
        assert!(page.contains("b&lt;i&gt;") && !page.contains("b<i>"));
        assert!(page.contains("two &amp; more"));
        let behind = page.split("id=\"behind\"").nth(1).unwrap().split("</section>").next().unwrap();
        assert_eq!(behind.matches("<tr>").count(), 3, "a head and the two cells: {behind}");
        assert!(page.contains("A quick run"), "it says what it is worth");
    }

    #[test]
    fn every_picture_says_in_words_what_it_shows() {
        let page = page();
        let pictures = page.matches("<svg ").count();
        assert!(pictures > 5);
        assert_eq!(pictures, page.matches("role=\"img\" aria-label=\"").count());
    }
}
