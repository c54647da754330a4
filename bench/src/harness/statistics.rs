//! Medians, percentiles, and ratios with an interval.

/// Resamples of a bootstrap, and where its random numbers start: the same figures give the same interval.
const RESAMPLES: usize = 2_000;
pub(crate) const SEED: u64 = 0x7469_6465_6761_7465;

/// The middle, or the mean of the two in the middle. NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

pub(crate) fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::min)
}

pub(crate) fn maximum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// The smallest value that `share` of all do not exceed (nearest rank). NaN of nothing.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A ratio (or another figure) and the interval that holds it with 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The median of the ratios round by round, with a percentile bootstrap over rounds. `None`: nothing to divide.
pub(crate) fn paired_ratio(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    if ratios.is_empty() || ratios.iter().any(|ratio| !ratio.is_finite()) {
        return None;
    }
    Some(median_interval(&ratios))
}

/// The median, with a percentile bootstrap.
pub(crate) fn median_interval(values: &[f64]) -> Ratio {
    within(median(values), &resampled_medians(values, SEED))
}

/// The geometric mean of the medians of several series of ratios, each above zero. The series are resampled apart: they
/// were measured at different times. `None` of nothing.
pub(crate) fn geometric_mean(series: &[Vec<f64>]) -> Option<Ratio> {
    let mean = |logarithms: f64| (logarithms / series.len() as f64).exp();
    let value = mean(series.iter().map(|ratios| median(ratios).ln()).sum());
    let mut sums = vec![0.0; RESAMPLES];
    for (ratios, seed) in series.iter().zip(SEED..) {
        for (sum, median) in sums.iter_mut().zip(resampled_medians(ratios, seed)) {
            *sum += median.ln();
        }
    }
    let means: Vec<f64> = sums.into_iter().map(mean).collect();
    (!series.is_empty()).then(|| within(value, &means))
}

fn within(value: f64, resampled: &[f64]) -> Ratio {
    Ratio { value, low: percentile(resampled, 0.025), high: percentile(resampled, 0.975) }
}

/// Medians of as many values, drawn with replacement. Those of equal values are known without drawing.
fn resampled_medians(values: &[f64], seed: u64) -> Vec<f64> {
    if values.iter().all(|value| *value == values[0]) {
        return vec![median(values); RESAMPLES];
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = vec![0.0; values.len()];
    let mut draw = || {
        resample.fill_with(|| values[random.usize(..values.len())]);
        median(&resample)
    };
    (0..RESAMPLES).map(|_| draw()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_one_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn minimum_and_maximum() {
        assert_eq!(minimum(&[3.0, 1.0, 2.0]), 1.0);
        assert_eq!(maximum(&[3.0, 1.0, 2.0]), 3.0);
        assert!(minimum(&[]).is_nan());
    }

    #[test]
    fn percentile_is_the_nearest_rank() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.99), 198.0);
        assert_eq!(percentile(&values, 1.0), 200.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert_eq!(percentile(&[5.0], 0.99), 5.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_constant_ratio_has_no_width() {
        let ratio = paired_ratio(&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0]).unwrap();
        assert_eq!(ratio, Ratio { value: 0.5, low: 0.5, high: 0.5 });
    }

    #[test]
    fn pairs_take_the_rounds_noise_out() {
        // The machine is three times slower in every other round, for both.
        let noise = [1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0];
        let ours: Vec<f64> = noise.iter().map(|noise| 10.0 * noise).collect();
        let theirs: Vec<f64> = noise.iter().map(|noise| 12.5 * noise).collect();
        let ratio = paired_ratio(&ours, &theirs).unwrap();
        assert!((ratio.value - 0.8).abs() < 1e-9 && ratio.high - ratio.low < 1e-9, "{ratio:?}");
    }

    #[test]
    fn the_interval_holds_the_median_and_comes_out_the_same_again() {
        let ours = [9.0, 10.0, 11.0, 9.5, 10.5, 14.0, 8.0];
        let theirs = [10.0; 7];
        let ratio = paired_ratio(&ours, &theirs).unwrap();
        assert_eq!(ratio.value, 1.0);
        assert!(ratio.low < 1.0 && 1.0 < ratio.high && ratio.low >= 0.8 && ratio.high <= 1.4, "{ratio:?}");
        assert_eq!(paired_ratio(&ours, &theirs), Some(ratio));
    }

    #[test]
    fn a_mean_of_ratios_is_geometric() {
        let mean = geometric_mean(&[vec![0.5; 3], vec![8.0; 3], vec![2.0; 3]]).unwrap();
        assert!([mean.value, mean.low, mean.high].iter().all(|value| (value - 2.0).abs() < 1e-9), "{mean:?}");
        let mean = geometric_mean(&[vec![0.8, 1.0, 1.25], vec![0.8, 1.0, 1.25]]).unwrap();
        assert!((mean.value - 1.0).abs() < 1e-9 && mean.low < 0.95 && mean.high > 1.05, "{mean:?}");
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn the_mean_of_many_is_known_better_than_one() {
        let one = vec![0.8, 0.9, 1.0, 1.1, 1.25];
        let width = |series: &[Vec<f64>]| geometric_mean(series).map(|mean| mean.high - mean.low).unwrap();
        assert!(width(&vec![one.clone(); 20]) < width(&[one]) / 2.0);
    }

    #[test]
    fn a_median_has_an_interval() {
        assert_eq!(median_interval(&[3.0; 4]), Ratio { value: 3.0, low: 3.0, high: 3.0 });
        let interval = median_interval(&[1.0, 2.0, 3.0, 4.0, 100.0]);
        assert!(interval.value == 3.0 && interval.low < 3.0 && interval.high > 3.0, "{interval:?}");
    }

    #[test]
    fn nothing_to_divide_is_no_ratio() {
        assert_eq!(paired_ratio(&[], &[]), None);
        assert_eq!(paired_ratio(&[1.0], &[0.0]), None);
        assert_eq!(paired_ratio(&[0.0], &[0.0]), None);
    }
}
