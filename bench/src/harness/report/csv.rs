//! One line a metric of a peer, for spreadsheets.

use std::io::Write;

use super::Row;

/// Writes a header and the rows.
pub(crate) fn write_csv(out: impl Write, rows: &[Row]) -> Result<(), csv::Error> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "load",
        "case",
        "peer",
        "metric",
        "unit",
        "median",
        "minimum",
        "p99",
        "cpu",
        "against",
        "ratio",
        "ratio_low",
        "ratio_high",
        "rounds",
        "noisy_rounds",
    ])?;
    for row in rows {
        let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let ratio = row.ratio.as_ref();
        csv.write_record([
            row.load.as_str(),
            &row.case,
            &row.peer,
            &row.metric,
            row.unit.symbol(),
            &row.median.to_string(),
            &row.minimum.to_string(),
            &optional(row.p99),
            &optional(row.cpu),
            ratio.map_or("", |ratio| ratio.peer.as_str()),
            &optional(ratio.map(|ratio| ratio.value)),
            &optional(ratio.map(|ratio| ratio.low)),
            &optional(ratio.map(|ratio| ratio.high)),
            &row.rounds.to_string(),
            &row.noisy_rounds.to_string(),
        ])?;
    }
    csv.flush()?;
    Ok(())
}
