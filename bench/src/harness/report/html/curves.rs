//! A metric against what a load varies: a line a peer, both axes logarithmic.

use super::axis::{tick, Axis};
use super::svg::{Anchor, Svg};
use crate::harness::report::{is_ours, number, Row};

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 218.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 284.0;
/// Where 0 stands, which a logarithm does not have: left of a break in the axis.
const ZERO: f64 = LEFT + 8.0;
const LINE_OF_TEXT: f64 = 12.5;
/// Lines that can be told apart: of more peers two share a look, and their names stand at their ends.
const LOOKS: usize = 8;

/// What the axes say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Titles<'t> {
    pub(super) x: &'t str,
    pub(super) y: &'t str,
}

/// One peer's points, by `x`.
#[derive(Debug)]
struct Line<'r> {
    peer: &'r str,
    points: Vec<(f64, f64)>,
}

/// Draws the rows of one metric, which stand on one curve. `less` is taken off each figure: what even the best must take.
pub(super) fn curves(titles: Titles<'_>, rows: &[&Row], less: f64) -> String {
    let lines = lines(rows, less);
    let figures = |of: fn(&(f64, f64)) -> f64| lines.iter().flat_map(move |line| line.points.iter().map(of));
    let above_zero = |figures: &mut dyn Iterator<Item = f64>| -> (f64, f64) {
        figures.filter(|figure| *figure > 0.0).fold((f64::INFINITY, 0.0), |(low, high), f| (low.min(f), high.max(f)))
    };
    let (low, high) = above_zero(&mut figures(|point| point.1));
    let y = Axis::logarithmic(low.min(high) * 0.8, high * 1.25, BOTTOM, TOP);
    let has_zero = figures(|point| point.0).any(|x| x == 0.0);
    let (first, last) = above_zero(&mut figures(|point| point.0));
    // One figure alone stands at the end.
    let first = if first < last { first } else { last / 10.0 };
    let x = Axis::logarithmic(first, last, if has_zero { LEFT + 40.0 } else { ZERO }, RIGHT);

    let mut svg = Svg::new("curves", WIDTH, HEIGHT, &label(titles, &lines));
    frame(&mut svg, titles, &y);
    let mut at: Vec<f64> = figures(|point| point.0).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    x_axis(&mut svg, &x, &at);
    let place = |&(at, figure): &(f64, f64)| (if at == 0.0 { ZERO } else { x.place(at) }, y.place(figure));
    // Ours last: above the others.
    let order = || lines.iter().enumerate().filter(|(_, line)| !is_ours(line.peer));
    let ours = || lines.iter().enumerate().filter(|(_, line)| is_ours(line.peer));
    for (look, line) in order().chain(ours()) {
        let class = look_of(line.peer, look);
        svg.titled(&spoken(line), |svg| {
            let places: Vec<_> = line.points.iter().map(place).collect();
            svg.polyline(&format!("curve {class}"), &places);
            for &point in &places {
                svg.circle(&format!("point {class}"), point, 2.6);
            }
        });
    }
    names(&mut svg, &lines, place);
    svg.finish()
}

fn lines<'r>(rows: &[&'r Row], less: f64) -> Vec<Line<'r>> {
    let mut lines: Vec<Line<'r>> = Vec::new();
    for row in rows {
        let Some(curve) = &row.curve else { continue };
        let point = (curve.x as f64, row.median - less);
        match lines.iter_mut().find(|line| line.peer == row.peer) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { peer: &row.peer, points: vec![point] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

fn look_of(peer: &str, number: usize) -> String {
    match peer {
        "tidegate" => "us".into(),
        peer if is_ours(peer) => "us-too".into(),
        _ => format!("look-{}", number % LOOKS),
    }
}

fn frame(svg: &mut Svg, titles: Titles<'_>, y: &Axis) {
    for figure in y.ticks(7) {
        let at = y.place(figure);
        svg.line("grid", (LEFT, at), (RIGHT, at));
        svg.text("tick", Anchor::End, (LEFT - 5.0, at + 4.0), &tick(figure));
    }
    svg.line("base", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    svg.line("base", (LEFT, TOP), (LEFT, BOTTOM));
    svg.text("axis", Anchor::Start, (2.0, 13.0), titles.y);
    svg.text("axis", Anchor::Middle, ((LEFT + RIGHT) / 2.0, BOTTOM + 36.0), titles.x);
}

/// A tick for each figure that was measured, as far as their texts have room.
fn x_axis(svg: &mut Svg, x: &Axis, at: &[f64]) {
    let mut free = f64::NEG_INFINITY;
    for &figure in at {
        let place = if figure == 0.0 { ZERO } else { x.place(figure) };
        svg.line("base", (place, BOTTOM), (place, BOTTOM + 4.0));
        let text = tick(figure);
        let half = 3.2 * text.chars().count() as f64;
        if place - half > free {
            svg.text("tick", Anchor::Middle, (place, BOTTOM + 17.0), &text);
            free = place + half + 4.0;
        }
        if figure == 0.0 {
            let middle = (ZERO + LEFT + 40.0) / 2.0;
            svg.polygon(
                "gap",
                &[
                    (middle - 3.0, BOTTOM - 4.0),
                    (middle + 4.0, BOTTOM - 4.0),
                    (middle + 2.0, BOTTOM + 4.0),
                    (middle - 5.0, BOTTOM + 4.0),
                ],
            );
        }
    }
}

/// Each line's name at its end, moved up or down until no two stand on each other.
fn names(svg: &mut Svg, lines: &[Line<'_>], place: impl Fn(&(f64, f64)) -> (f64, f64)) {
    let ends = lines.iter().enumerate().filter_map(|(look, line)| Some((look, line, place(line.points.last()?))));
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by(|a, b| a.2 .1.total_cmp(&b.2 .1));
    let wanted: Vec<f64> = ends.iter().map(|(_, _, (_, y))| *y).collect();
    for ((look, line, end), y) in ends.iter().zip(spread(&wanted, TOP + 2.0, BOTTOM + 4.0)) {
        let class = look_of(line.peer, *look);
        svg.line(&format!("leader {class}"), (end.0 + 3.0, end.1), (RIGHT + 16.0, y));
        svg.text(&format!("end {class}"), Anchor::Start, (RIGHT + 19.0, y + 3.5), line.peer);
    }
}

/// Places at least a line of text apart, as near to the wanted ones (which are in order) as can be, from `low` to `high` if
/// they have room there.
fn spread(wanted: &[f64], low: f64, high: f64) -> Vec<f64> {
    let gaps = wanted.len().saturating_sub(1) as f64;
    let gap = LINE_OF_TEXT.min((high - low) / gaps.max(1.0));
    let shift = |rank: usize| rank as f64 * gap;
    // With a gap off for each rank, "apart" is "in order"; names that are not in order stand around their mean.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (rank, y) in wanted.iter().enumerate() {
        blocks.push((y - shift(rank), 1));
        while let [.., (before, n), (last, m)] = blocks[..] {
            if before <= last {
                break;
            }
            blocks.truncate(blocks.len() - 2);
            blocks.push(((before * n as f64 + last * m as f64) / (n + m) as f64, n + m));
        }
    }
    let means = blocks.into_iter().flat_map(|(mean, size)| std::iter::repeat_n(mean, size));
    means.enumerate().map(|(rank, mean)| mean.clamp(low, high - gaps * gap) + shift(rank)).collect()
}

fn spoken(line: &Line<'_>) -> String {
    let said = line.points.iter().map(|(x, y)| format!("{} at {}", number(*y), number(*x)));
    format!("{}: {}", line.peer, said.collect::<Vec<_>>().join(", "))
}

fn label(titles: Titles<'_>, lines: &[Line<'_>]) -> String {
    let said: Vec<_> = lines.iter().map(spoken).collect();
    format!("{} against {}. {}", titles.y, titles.x, said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::report::document::tests::case;
    use crate::harness::Unit;

    const TITLES: Titles<'_> = Titles { x: "things", y: "a thing (ns)" };

    #[test]
    fn a_line_goes_through_all_its_points_in_order() {
        let mut rows = case("load", "at 100", Unit::Nanoseconds, &[("tidegate", &[10.0]), ("a", &[100.0])]);
        rows.extend(case("load", "at 1", Unit::Nanoseconds, &[("tidegate", &[10.0]), ("a", &[1.0])]));
        rows.extend(case("load", "at 0", Unit::Nanoseconds, &[("a", &[1.0])]));
        let rows: Vec<&Row> = rows.iter().collect();
        let lines = lines(&rows, 0.0);
        assert_eq!(lines[1].points, [(0.0, 1.0), (1.0, 1.0), (100.0, 100.0)]);
        let svg = curves(TITLES, &rows, 0.0);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("class=\"gap\""), "the axis is broken at zero: {svg}");
        assert!(svg.contains("a: 1 at 0, 1 at 1, 100 at 100"), "{svg}");
    }

    #[test]
    fn names_do_not_stand_on_each_other() {
        let apart = |places: &[f64]| places.windows(2).all(|pair| pair[1] - pair[0] >= LINE_OF_TEXT - 1e-9);
        for wanted in [vec![50.0; 10], vec![10.0; 10], vec![300.0; 10], vec![20.0, 21.0, 22.0, 200.0, 280.0, 281.0]] {
            let places = spread(&wanted, 10.0, 280.0);
            assert!(apart(&places), "{places:?}");
            assert!(places[0] >= 10.0 && *places.last().unwrap() <= 280.0, "{places:?}");
        }
        assert_eq!(spread(&[20.0, 200.0], 10.0, 280.0), [20.0, 200.0], "nothing is moved without need");
        assert_eq!(spread(&[], 10.0, 280.0), [0.0; 0]);
        assert_eq!(spread(&[100.0, 100.0, 100.0], 10.0, 280.0), [87.5, 100.0, 112.5], "around where they want to be");
    }
}
