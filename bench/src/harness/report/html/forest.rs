//! Ratios with their intervals, on one logarithmic axis on which less is better: left of 1 we are faster.

use super::axis::{self, Axis};
use super::svg::{Anchor, Svg};
use crate::harness::report::standing::Verdict;
use crate::harness::statistics::Ratio;

const WIDTH: f64 = 170.0;
const HEIGHT: f64 = 20.0;
const MIDDLE: f64 = HEIGHT / 2.0;

/// The axis of all ratios of a page, so that they can be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forest(Axis);

/// The ends that the axis never goes beyond; a ratio beyond has an arrow, and its figure beside it.
const FARTHEST: (f64, f64) = (1.0 / 8.0, 4.0);

impl Forest {
    pub(super) fn over(ratios: impl Iterator<Item = Ratio>) -> Forest {
        let (mut low, mut high) = (0.7, 1.4);
        for ratio in ratios {
            low = ratio.low.min(low).max(FARTHEST.0);
            high = ratio.high.max(high).min(FARTHEST.1);
        }
        Forest(Axis::logarithmic(low, high, 12.0, WIDTH - 12.0))
    }

    /// The head of a column.
    pub(super) fn head(&self) -> String {
        let mut svg = Svg::new("ratio", WIDTH, 30.0, "axis: ours by the best peer's, logarithmic; left of 1 is better");
        svg.text("tick", Anchor::Start, (2.0, 10.0), "◂ ours is faster");
        for figure in self.0.ticks(6) {
            let x = self.0.place(figure);
            svg.line("base", (x, 26.0), (x, 30.0));
            svg.text("tick", Anchor::Middle, (x, 24.0), &tick(figure));
        }
        svg.finish()
    }

    pub(super) fn mark(&self, ratio: Ratio, verdict: Verdict) -> String {
        let label = format!("{:.2}, from {:.2} to {:.2}: {}", ratio.value, ratio.low, ratio.high, verdict.word());
        let mut svg = Svg::new("ratio", WIDTH, HEIGHT, &label);
        for figure in self.0.ticks(6) {
            let x = self.0.place(figure);
            svg.line(if figure == 1.0 { "one" } else { "grid" }, (x, 0.0), (x, HEIGHT));
        }
        let class = class(verdict);
        let (low, value, high) = (self.0.place(ratio.low), self.0.place(ratio.value), self.0.place(ratio.high));
        svg.line(&format!("span {class}"), (low, MIDDLE), (high, MIDDLE));
        match self.0.is_beyond(ratio.value) {
            true => arrow(&mut svg, class, value, ratio.value < 1.0),
            // The shape says what the color says.
            false => match verdict {
                Verdict::Ahead => svg.circle(class, (value, MIDDLE), 4.5),
                Verdict::Behind => svg.rectangle(class, (value - 4.0, MIDDLE - 4.0), 8.0, 8.0),
                Verdict::Dear => svg
                    .polygon(class, &[(value - 5.0, MIDDLE + 4.0), (value + 5.0, MIDDLE + 4.0), (value, MIDDLE - 5.0)]),
                Verdict::Even => svg.polygon(
                    class,
                    &[(value - 5.0, MIDDLE), (value, MIDDLE - 5.0), (value + 5.0, MIDDLE), (value, MIDDLE + 5.0)],
                ),
            },
        }
        svg.finish()
    }
}

/// Short names for the fractions that stand on this axis.
fn tick(ratio: f64) -> String {
    let fractions = [(0.125, "⅛"), (0.25, "¼"), (0.5, "½")];
    fractions
        .into_iter()
        .find(|(fraction, _)| *fraction == ratio)
        .map_or_else(|| axis::tick(ratio), |(_, name)| name.into())
}

fn arrow(svg: &mut Svg, class: &str, x: f64, to_the_left: bool) {
    let tip = if to_the_left { -9.0 } else { 9.0 };
    svg.polygon(class, &[(x, MIDDLE - 5.0), (x + tip, MIDDLE), (x, MIDDLE + 5.0)]);
}

pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ahead => "ahead",
        Verdict::Dear => "dear",
        Verdict::Even => "even",
        Verdict::Behind => "behind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, value: f64, high: f64) -> Ratio {
        Ratio { value, low, high }
    }

    #[test]
    fn the_axis_holds_what_it_can() {
        let forest = Forest::over([ratio(0.5, 0.6, 0.9), ratio(0.9, 1.1, 2.0)].into_iter());
        assert!(!forest.0.is_beyond(0.5) && !forest.0.is_beyond(2.0) && forest.0.is_beyond(0.4));
        let forest = Forest::over([ratio(0.001, 0.002, 90.0)].into_iter());
        assert!(!forest.0.is_beyond(0.125) && forest.0.is_beyond(0.1) && forest.0.is_beyond(5.0));
    }

    #[test]
    fn every_verdict_has_a_shape_of_its_own() {
        let forest = Forest::over([].into_iter());
        let shapes = [Verdict::Ahead, Verdict::Dear, Verdict::Even, Verdict::Behind].map(|verdict| {
            let svg = forest.mark(ratio(0.9, 1.0, 1.1), verdict);
            assert!(svg.contains(verdict.word()), "{svg}");
            let shape = svg
                .split(&format!("class=\"{}\"", class(verdict)))
                .next()
                .unwrap()
                .rsplit('<')
                .next()
                .unwrap()
                .to_owned();
            (
                shape,
                svg.split("points=\"").nth(1).map_or(0, |points| points.split('"').next().unwrap().split(' ').count()),
            )
        });
        for (rank, shape) in shapes.iter().enumerate() {
            assert!(!shapes[..rank].contains(shape), "{shapes:?}");
        }
    }

    #[test]
    fn what_is_beyond_has_an_arrow_in_its_direction() {
        let forest = Forest::over([].into_iter());
        let svg = forest.mark(ratio(0.01, 0.02, 0.03), Verdict::Ahead);
        assert!(svg.contains("points=\"12,5 3,10 12,15\""), "{svg}");
        let svg = forest.mark(ratio(10.0, 20.0, 30.0), Verdict::Behind);
        assert!(svg.contains("points=\"158,5 167,10 158,15\""), "{svg}");
    }
}
