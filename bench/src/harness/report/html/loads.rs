//! Load by load: curves where a load varies something, a bar for every peer, tables of what is exact.

use std::io::{self, Write};

use super::bars::bars;
use super::curves::{curves, Titles};
use super::svg::Escaped;
use crate::harness::report::document::{About, Document};
use crate::harness::report::{is_ours, number, Row};

/// A picture against what its load varies.
struct Picture {
    load: &'static str,
    metric: &'static str,
    y: &'static str,
    /// What even the best must take.
    less: f64,
    caption: &'static str,
}

const PICTURES: [Picture; 4] = [
    Picture {
        load: "park_cancel",
        metric: "park + drop",
        y: "park + drop one send (ns)",
        less: 0.0,
        caption: "What one send costs that parks and is dropped, against how many are parked already. Flat is what it should be.",
    },
    Picture {
        load: "head_of_line",
        metric: "canary",
        y: "canary late (ms)",
        // Its sleep.
        less: 100.0,
        caption: "How late a timer of 100 ms is on a thread on which 4,096 operations expire, against how many are parked ahead of them.",
    },
    Picture {
        load: "sizes",
        metric: "send",
        y: "size of a send (B)",
        less: 0.0,
        caption: "The size of a send's future against its payload.",
    },
    Picture {
        load: "sizes",
        metric: "+both",
        y: "size of a send with limit and token (B)",
        less: 0.0,
        caption: "The size of a send with a limit and a cancel token against its payload.",
    },
];

/// The pictures of whatever this run has measured of them.
pub(super) fn write_curves(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let drawn: Vec<String> = PICTURES.iter().flat_map(|picture| figures(document, picture)).collect();
    if drawn.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section>\n<h2>Against what grows</h2>")?;
    writeln!(
        out,
        "<p class=\"legend\">Both axes are logarithmic; each line has its name at its end, ours is the thick one.</p>"
    )?;
    writeln!(out, "<div class=\"figures\">\n{}</div>\n</section>", drawn.concat())
}

fn figures(document: &Document, picture: &Picture) -> Vec<String> {
    let rows = || document.results.iter().filter(|row| row.load == picture.load && row.metric == picture.metric);
    let mut names: Vec<&str> = Vec::new();
    for name in rows().filter_map(|row| row.curve.as_ref()).map(|curve| curve.name.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let figure = |name: &str| {
        let rows: Vec<&Row> = rows().filter(|row| row.curve.as_ref().is_some_and(|curve| curve.name == name)).collect();
        let svg = curves(Titles { x: name, y: picture.y }, &rows, picture.less);
        let title = format!("{}: {} against {name}", picture.load, picture.y);
        format!(
            "<figure>\n<figcaption><b>{}</b> {}</figcaption>\n{svg}\n</figure>\n",
            Escaped(&title),
            Escaped(picture.caption)
        )
    };
    names.into_iter().map(figure).collect()
}

/// Every figure of every peer.
pub(super) fn write(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(out, "<section>\n<h2>Every peer</h2>")?;
    writeln!(
        out,
        "<p class=\"legend\"><span class=\"swatch ours\"></span> tidegate <span class=\"swatch variant\"></span> a variant of ours \
         <span class=\"swatch best\"></span> the best peer <span class=\"swatch peer\"></span> other peers</p>\n\
         <p class=\"legend\">Shorter is better. The thin line is the 95 % interval of the median; a bar with a gap goes on \
         beyond its scale. Under the pointer: minimum, p99, processor time.</p>"
    )?;
    for about in &document.loads {
        load(out, about, &document.cases(&about.name))?;
    }
    writeln!(out, "</section>")
}

/// What stands between backticks is code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(place, part)| match place % 2 {
        1 => format!("<code>{}</code>", Escaped(part)),
        _ => Escaped(part).to_string(),
    });
    parts.collect()
}

fn load(out: &mut dyn Write, about: &About, cases: &[&[Row]]) -> io::Result<()> {
    writeln!(out, "<details open>\n<summary>{}</summary>", Escaped(&about.name))?;
    writeln!(out, "<p>Shows: {}</p>", prose(&about.shows))?;
    writeln!(out, "<p class=\"quiet\">Does not show: {}</p>", prose(&about.does_not_show))?;
    writeln!(out, "<div class=\"figures\">")?;
    for rows in cases {
        match rows.iter().all(Row::is_exact) {
            true => exact(out, rows)?,
            false => timed(out, rows)?,
        }
    }
    writeln!(out, "</div>\n</details>")
}

/// A picture for each metric that is compared; what is only counted stands in a table.
fn timed(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    let (compared, counted): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.unit.is_compared());
    caption(out, &rows[0])?;
    for metric in metrics(&compared) {
        let rows: Vec<&Row> = compared.iter().copied().filter(|row| row.metric == metric).collect();
        writeln!(out, "{}", bars(&rows))?;
    }
    if !counted.is_empty() {
        writeln!(out, "<details>\n<summary>{}</summary>", Escaped(&metrics(&counted).join(", ")))?;
        table(out, &counted)?;
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</figure>")
}

fn exact(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    caption(out, &rows[0])?;
    table(out, &rows.iter().collect::<Vec<_>>())?;
    writeln!(out, "</figure>")
}

fn caption(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let noise = match (row.is_exact(), row.noisy_rounds) {
        (false, noisy @ 1..) => format!(", {noisy} noisy"),
        _ => String::new(),
    };
    let rounds = match row.is_exact() {
        true => String::new(),
        false => format!(" <span class=\"quiet\">{} rounds{noise}</span>", row.rounds),
    };
    writeln!(out, "<figure>\n<figcaption><b>{}</b>{rounds}</figcaption>", Escaped(&row.case))
}

/// A line a peer, a column a metric.
fn table(out: &mut dyn Write, rows: &[&Row]) -> io::Result<()> {
    let metrics = metrics(rows);
    write!(out, "<table class=\"exact\">\n<thead><tr><th>peer</th>")?;
    for metric in &metrics {
        let unit = rows.iter().find(|row| row.metric == *metric).map_or("", |row| row.unit.symbol());
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        write!(out, "<th class=\"n\">{}{unit}</th>", Escaped(metric))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    let mut peers: Vec<&str> = Vec::new();
    for row in rows {
        if !peers.contains(&row.peer.as_str()) {
            peers.push(&row.peer);
        }
    }
    for peer in peers {
        let class = if is_ours(peer) { " class=\"our-row\"" } else { "" };
        write!(out, "<tr{class}><th scope=\"row\">{}</th>", Escaped(peer))?;
        for metric in &metrics {
            let row = rows.iter().find(|row| row.peer == peer && row.metric == *metric);
            write!(out, "<td class=\"n\">{}</td>", row.map_or("–".into(), |row| number(row.median)))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>")
}

fn metrics<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut metrics: Vec<&str> = Vec::new();
    for row in rows {
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
    }
    metrics
}
