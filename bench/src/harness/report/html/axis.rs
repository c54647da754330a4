//! From figures to places, and the round figures to write beside an axis.

/// Maps figures to places in a picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Logarithmic,
}

impl Axis {
    /// From 0 to `high`.
    pub(super) fn linear(high: f64, from: f64, to: f64) -> Axis {
        Axis { kind: Kind::Linear, low: 0.0, high: if high > 0.0 { high } else { 1.0 }, from, to }
    }

    /// Both ends are above zero.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Axis {
        let low = low.max(f64::MIN_POSITIVE);
        Axis { kind: Kind::Logarithmic, low, high: high.max(low * 1.01), from, to }
    }

    /// Where `figure` stands; what is beyond an end stands at that end.
    pub(super) fn place(&self, figure: f64) -> f64 {
        let figure = figure.clamp(self.low, self.high);
        let share = match self.kind {
            Kind::Linear => (figure - self.low) / (self.high - self.low),
            Kind::Logarithmic => (figure / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share * (self.to - self.from)
    }

    pub(super) fn is_beyond(&self, figure: f64) -> bool {
        figure > self.high || figure < self.low
    }

    /// Round figures along the axis, `most` or fewer but two.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => self.linear_ticks(most),
            Kind::Logarithmic => self.powers(most),
        }
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let least = self.high / most.max(1) as f64;
        let size = 10.0_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * size).into_iter().find(|step| *step >= least * 0.999);
        let step = step.unwrap_or(10.0 * size);
        (0..=most).map(|n| n as f64 * step).filter(|tick| *tick <= self.high * 1.001).collect()
    }

    /// Powers of ten where there are enough of them, else of two.
    fn powers(&self, most: usize) -> Vec<f64> {
        let within = |base: f64, step: i32| -> Vec<f64> {
            let first = (self.low.log(base) - 1e-9).ceil() as i32;
            let last = (self.high.log(base) + 1e-9).floor() as i32;
            (first..=last).filter(|power| power % step == 0).map(|power| base.powi(power)).collect()
        };
        let tens = (1..).map(|step| within(10.0, step)).find(|ticks| ticks.len() <= most).unwrap_or_default();
        if tens.len() >= 3 {
            return tens;
        }
        (1..).map(|step| within(2.0, step)).find(|ticks| ticks.len() <= most).unwrap_or_default()
    }
}

/// A figure as short as it may be on an axis: `0.25`, `20`, `4k`, `1M`.
pub(super) fn tick(figure: f64) -> String {
    let (scaled, suffix) = match figure.abs() {
        size if size >= 999_500.0 => (figure / 1e6, "M"),
        size if size >= 9_995.0 => (figure / 1e3, "k"),
        _ => (figure, ""),
    };
    let digits = match scaled.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_places() {
        let linear = Axis::linear(50.0, 100.0, 200.0);
        assert_eq!(
            [0.0, 25.0, 50.0, 99.0, -1.0].map(|figure| linear.place(figure)),
            [100.0, 150.0, 200.0, 200.0, 100.0]
        );
        assert!(linear.is_beyond(50.1) && !linear.is_beyond(50.0));
        let upwards = Axis::logarithmic(1.0, 100.0, 90.0, 10.0);
        assert_eq!([1.0, 10.0, 100.0].map(|figure| upwards.place(figure)), [90.0, 50.0, 10.0]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Axis::linear(50.0, 0.0, 1.0).ticks(4), [0.0, 20.0, 40.0]);
        assert_eq!(Axis::linear(0.9, 0.0, 1.0).ticks(3), [0.0, 0.5]);
        assert_eq!(Axis::logarithmic(8.0, 1024.0, 0.0, 1.0).ticks(8), [10.0, 100.0, 1000.0]);
        assert_eq!(Axis::logarithmic(8.0, 90.0, 0.0, 1.0).ticks(4), [8.0, 16.0, 32.0, 64.0]);
        assert_eq!(Axis::logarithmic(0.5, 3e5, 0.0, 1.0).ticks(7), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!(Axis::logarithmic(0.2, 5.0, 0.0, 1.0).ticks(5), [0.25, 0.5, 1.0, 2.0, 4.0]);
        for high in [1e-3, 0.07, 1.0, 3.3, 12.0, 999.0, 1e7] {
            let ticks = Axis::linear(high, 0.0, 1.0).ticks(4);
            assert!((2..=5).contains(&ticks.len()), "{high}: {ticks:?}");
        }
    }

    #[test]
    fn an_axis_of_nothing_has_an_end() {
        assert_eq!(Axis::linear(0.0, 0.0, 10.0).place(0.0), 0.0);
        assert!(Axis::logarithmic(0.0, 0.0, 0.0, 1.0).place(1.0).is_finite());
    }

    #[test]
    fn ticks_are_short() {
        let said = [0.0, 0.25, 0.015625, 1.0, 2.5, 20.0, 128.0, 1024.0, 10_000.0, 32_768.0, 1e6].map(tick);
        assert_eq!(said, ["0", "0.25", "0.0156", "1", "2.5", "20", "128", "1024", "10k", "32.8k", "1M"]);
    }
}
