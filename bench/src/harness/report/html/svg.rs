//! Just enough SVG: shapes with a class, their colors in the page's style sheet.
//!
//! Written here and not by a plotting crate: those put colors and text sizes into every element, so that a picture is
//! either light or dark, has no text that grows with the page and nothing for a screen reader; and what these pictures
//! need beyond lines, rectangles and text is an axis (`axis.rs`).

use std::fmt::{self, Display, Write as _};

/// A picture under construction; lengths are its own units, which the page scales.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

/// Where a text begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A text as part of markup.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A length: a tenth of a unit is nothing that anybody sees.
struct Length(f64);

impl Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        match tenths % 10.0 == 0.0 {
            true => write!(f, "{:.0}", tenths / 10.0),
            false => write!(f, "{:.1}", tenths / 10.0),
        }
    }
}

impl Svg {
    /// `label` says in words what the picture shows.
    pub(super) fn new(class: &str, width: f64, height: f64, label: &str) -> Svg {
        let mut svg = Svg { text: String::new() };
        let (width, height) = (Length(width), Length(height));
        svg.push(format_args!(
            r#"<svg class="{class}" viewBox="0 0 {width} {height}" role="img" aria-label="{}">"#,
            Escaped(label)
        ));
        svg
    }

    fn push(&mut self, element: fmt::Arguments<'_>) {
        self.text.write_fmt(element).expect("a String takes everything");
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (x1, y1, x2, y2) = (Length(x1), Length(y1), Length(x2), Length(y2));
        self.push(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    pub(super) fn rectangle(&mut self, class: &str, (x, y): (f64, f64), width: f64, height: f64) {
        let (x, y, width, height) = (Length(x), Length(y), Length(width.max(0.0)), Length(height));
        self.push(format_args!(r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#));
    }

    pub(super) fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let (x, y, radius) = (Length(x), Length(y), Length(radius));
        self.push(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}"/>"#));
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        self.points("polyline", class, points);
    }

    pub(super) fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        self.points("polygon", class, points);
    }

    fn points(&mut self, element: &str, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|&(x, y)| format!("{},{}", Length(x), Length(y))).collect();
        self.push(format_args!(r#"<{element} class="{class}" points="{}"/>"#, points.join(" ")));
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (Length(x), Length(y), Escaped(text));
        self.push(format_args!(r#"<text class="{class}" text-anchor="{anchor}" x="{x}" y="{y}">{text}</text>"#));
    }

    /// What `draw` draws has a title, which a browser shows under the pointer.
    pub(super) fn titled(&mut self, title: &str, draw: impl FnOnce(&mut Svg)) {
        self.push(format_args!("<g><title>{}</title>", Escaped(title)));
        draw(self);
        self.push(format_args!("</g>"));
    }

    pub(super) fn finish(mut self) -> String {
        self.push(format_args!("</svg>"));
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut svg = Svg::new("c", 10.0, 5.5, "a < \"b\"");
        svg.titled("<i>", |svg| svg.text("t", Anchor::End, (1.04, 2.06), "x & y"));
        assert_eq!(
            svg.finish(),
            "<svg class=\"c\" viewBox=\"0 0 10 5.5\" role=\"img\" aria-label=\"a &lt; &quot;b&quot;\">\
             <g><title>&lt;i&gt;</title><text class=\"t\" text-anchor=\"end\" x=\"1\" y=\"2.1\">x &amp; y</text></g></svg>"
        );
    }
}
