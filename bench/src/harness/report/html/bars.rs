//! One metric of one case: a bar a peer, the shortest first, with the interval of its median.

use super::axis::{tick, Axis};
use super::svg::{Anchor, Svg};
use crate::harness::report::{is_ours, number, Row};
use crate::harness::statistics::median_interval;

const WIDTH: f64 = 380.0;
const LEFT: f64 = 136.0;
const RIGHT: f64 = 318.0;
const ROW: f64 = 16.0;
const TOP: f64 = 4.0;

/// How far beyond the slower of ours and the best peer the scale goes: one peer that is a thousand times slower must not
/// make dots of all others.
const REACH: f64 = 4.0;

/// Draws the rows of one metric.
pub(super) fn bars(rows: &[&Row]) -> String {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| a.median.total_cmp(&b.median));
    let bottom = TOP + ROW * rows.len() as f64;
    let axis = Axis::linear(end_of_scale(&rows), LEFT, RIGHT);
    let mut svg = Svg::new("bars", WIDTH, bottom + 32.0, &label(&rows));
    for figure in axis.ticks(4) {
        let x = axis.place(figure);
        svg.line("grid", (x, TOP), (x, bottom));
        svg.text("tick", Anchor::Middle, (x, bottom + 13.0), &tick(figure));
    }
    if let Some(first) = rows.first() {
        let title = format!("{} ({}), median", first.metric, first.unit.symbol());
        svg.text("axis", Anchor::Middle, ((LEFT + RIGHT) / 2.0, bottom + 28.0), &title);
    }
    let best = rows.iter().position(|row| !is_ours(&row.peer));
    for (place, row) in rows.iter().enumerate() {
        let y = TOP + ROW * place as f64;
        svg.titled(&spoken(row), |svg| bar(svg, &axis, y, row, best == Some(place)));
    }
    svg.finish()
}

fn end_of_scale(rows: &[&Row]) -> f64 {
    let shortest = |ours: bool| rows.iter().find(|row| is_ours(&row.peer) == ours).map_or(0.0, |row| row.median);
    let reach = REACH * shortest(true).max(shortest(false));
    let longest = rows.iter().map(|row| median_interval(&row.runs).high.max(row.median)).fold(0.0, f64::max);
    if reach > 0.0 {
        longest.min(reach)
    } else {
        longest
    }
}

fn bar(svg: &mut Svg, axis: &Axis, y: f64, row: &Row, is_best: bool) {
    let (class, name) = match (row.peer.as_str(), is_best) {
        ("tidegate", _) => ("ours", "name our-name"),
        (peer, _) if is_ours(peer) => ("variant", "name our-name"),
        (_, true) => ("best", "name"),
        _ => ("peer", "name"),
    };
    let middle = y + ROW / 2.0;
    svg.text(name, Anchor::End, (LEFT - 6.0, middle + 4.0), &row.peer);
    let end = axis.place(row.median);
    svg.rectangle(class, (LEFT, y + 3.0), end - LEFT, ROW - 6.0);
    if axis.is_beyond(row.median) {
        // A gap in the bar: it goes on.
        svg.polygon(
            "gap",
            &[(end - 16.0, y + 1.0), (end - 11.0, y + 1.0), (end - 15.0, y + 15.0), (end - 20.0, y + 15.0)],
        );
    }
    let interval = median_interval(&row.runs);
    if interval.high > interval.low && !axis.is_beyond(interval.low) {
        let (low, high) = (axis.place(interval.low), axis.place(interval.high));
        svg.line("interval", (low, middle), (high, middle));
        for (x, figure) in [(low, interval.low), (high, interval.high)] {
            if !axis.is_beyond(figure) {
                svg.line("interval", (x, middle - 3.0), (x, middle + 3.0));
            }
        }
    }
    svg.text("figure", Anchor::End, (WIDTH - 2.0, middle + 4.0), &number(row.median));
}

/// A bar in words.
fn spoken(row: &Row) -> String {
    let (unit, interval) = (row.unit.symbol(), median_interval(&row.runs));
    let (low, high) = (number(interval.low), number(interval.high));
    let mut text =
        format!("{}: median {} {unit} [{low}, {high}], minimum {}", row.peer, number(row.median), number(row.minimum));
    for (name, figure) in [("p99", row.p99), ("processor time", row.cpu)] {
        if let Some(figure) = figure {
            text += &format!(", {name} {}", number(figure));
        }
    }
    text
}

/// All bars in words.
fn label(rows: &[&Row]) -> String {
    let said = rows.iter().map(|row| format!("{} {}", row.peer, number(row.median)));
    let unit = rows.first().map_or("", |row| row.unit.symbol());
    format!("Bars, median in {unit}: {}", said.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::report::document::tests::case;
    use crate::harness::Unit;

    fn drawn(peers: &[(&'static str, &[f64])]) -> String {
        let rows = case("load", "case", Unit::Nanoseconds, peers);
        bars(&rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_shortest_stands_first_and_every_peer_is_there() {
        let svg = drawn(&[("b", &[3.0; 3]), ("tidegate", &[2.0; 3]), ("a", &[1.0; 3])]);
        let place = |name: &str| svg.find(&format!(">{name}</text>")).unwrap();
        assert!(place("a") < place("tidegate") && place("tidegate") < place("b"), "{svg}");
        assert_eq!(svg.matches("class=\"best\"").count(), 1);
        assert_eq!(svg.matches("class=\"ours\"").count(), 1);
    }

    #[test]
    fn one_slow_peer_does_not_shrink_the_others() {
        let svg = drawn(&[("tidegate", &[10.0; 3]), ("a", &[20.0; 3]), ("slow", &[90_000.0; 3])]);
        assert_eq!(svg.matches("class=\"gap\"").count(), 1, "{svg}");
        assert!(svg.contains(">90000</text>"), "its figure is written: {svg}");
        assert!(svg.contains(r#"<rect class="best" x="136" y="23" width="45.5" height="10"/>"#), "{svg}");
    }

    #[test]
    fn a_spread_has_an_interval_and_none_has_none() {
        assert!(!drawn(&[("tidegate", &[10.0; 5])]).contains("class=\"interval\""));
        assert!(drawn(&[("tidegate", &[8.0, 9.0, 10.0, 11.0, 12.0])]).contains("class=\"interval\""));
    }
}
